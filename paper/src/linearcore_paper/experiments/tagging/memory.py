"""What a step of `tagging` holds in memory, and the largest batch that fits."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from linearcore.tagging import Batch, Corpus, Stepper
from linearcore_paper.experiments.tagging.text import Text, read_text
from linearcore_paper.experiments.tagging.training import ROWS, Plan, make_batches, make_model, make_stepper

#: Memories for which the largest batch is looked for, in GB = 10⁹ bytes, and how closely.
MEMORIES, CLOSELY = (16, 40, 140), 0.02
#: Sequences of the two steps from which the size of a batch is guessed.
ROWS_MEASURED = (2, 6)
GB = 10**9
_NO_GPU = {"failed": "it takes a GPU"}


def step_memory(plan: Plan, data: Path | None, device: str) -> dict[str, Any]:
    """GB that an eager step of training holds at most, with a batch of sequences of 128 words, and between two steps.

    The latter are weights and what the optimiser keeps of them.
    """
    if torch.device(device).type != "cuda":
        return _NO_GPU
    _eager(plan, data)  # Libraries make themselves a place to work in, and may hold on to what others have left.
    count_anew("cuda")
    before = torch.cuda.memory_allocated()
    text, eager, base = _eager(plan, data)
    held = torch.cuda.memory_allocated()
    peak = _peak(eager, base, ROWS, plan.rate)
    if peak is None:
        return {"failed": "out of memory"}
    told = {"sequences": ROWS, "words": base.mask.shape[1], "tags": len(text.vocabulary.tags)}
    return told | {"peak_gb": _in_gb(peak - before), "kept_gb": _in_gb(held - before)}


def largest_batches(plan: Plan, data: Path | None, device: str) -> dict[str, Any]:
    """The most sequences of 128 words that one eager step of training fits for, on a GPU, in each of `MEMORIES`."""
    if torch.device(device).type != "cuda":
        return _NO_GPU
    text, eager, base = _eager(plan, data)
    held = torch.cuda.get_device_properties(0).total_memory
    few, more = (_peak(eager, base, rows, plan.rate) for rows in ROWS_MEASURED)
    found = {}
    for memory in MEMORIES:
        limit = min(memory * GB, held - 2 * GB)

        def fits(rows: int, limit: int = limit) -> bool:
            peak = _peak(eager, base, rows, plan.rate)
            return peak is not None and peak <= limit

        found[str(memory)] = _largest(fits, _guess(few, more, limit))
    return {"sequences": found, "words": base.mask.shape[1], "tags": len(text.vocabulary.tags), "held_gb": held // GB}


def _eager(plan: Plan, data: Path | None) -> tuple[Text, Stepper, Batch]:
    """A text, steps that have been begun, and one of its sequences. Eager, since a graph keeps what it was recorded with."""
    text = read_text(plan.source, data)
    model = make_model(plan, text, "cuda").train()
    stepper, _ = make_stepper(model, plan)
    eager = Stepper(model, stepper.optimizer, stepper.clip, stepper.dtype)
    base = _rectangle(plan, text, model.encoder)
    eager.step(_repeated(base, 1), plan.rate)  # Makes the state of the optimiser, which counts as well.
    eager.optimizer.zero_grad(set_to_none=True)
    return text, eager, base


def _guess(few: int | None, more: int | None, limit: int) -> int:
    """How many sequences fit, if each takes as much as those between the two that were measured."""
    if few is None or more is None:
        return 1
    each = (more - few) / (ROWS_MEASURED[1] - ROWS_MEASURED[0])
    return max(1, int((limit - few) / each + ROWS_MEASURED[0]))


def _peak(stepper: Stepper, base: Batch, rows: int, rate: float) -> int | None:
    """Bytes held at most in a step with so many sequences; None if they do not fit."""
    count_anew("cuda")
    try:
        stepper.step(_repeated(base, rows), rate)
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()
    except torch.OutOfMemoryError:
        return None
    finally:
        stepper.optimizer.zero_grad(set_to_none=True)


def _largest(fits: Callable[[int], bool], guess: int) -> int:
    """The largest number that fits, to within `CLOSELY`; 0 if not even one does. A good guess saves tries.

    Example:
        >>> _largest(lambda rows: rows <= 37, guess=36)
        37
        >>> _largest(lambda rows: rows <= 37, guess=500)
        37
    """
    low, high = 0, max(1, int(1.02 * guess) + 1)
    while fits(high):
        low, high = high, 2 * high
    near = int(0.97 * guess)
    if low < near < high and fits(near):
        low = near
    while high - low > max(1, int(CLOSELY * low)):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _rectangle(plan: Plan, text: Text, encoder: Any) -> Batch:
    """One sequence of 128 words without padding."""
    words = [word for sequence, _ in text.parts["train"][:3] for word in sequence][:128]
    tags = [tag for _, sequence in text.parts["train"][:3] for tag in sequence][:128]
    corpus = Corpus.of([(words, tags)], text.vocabulary, encoder)
    return make_batches(corpus, 1, "cuda")[0]


def _repeated(base: Batch, rows: int) -> Batch:
    inputs = {name: tensor.repeat(rows, *[1] * (tensor.dim() - 1)) for name, tensor in base.inputs.items()}
    if "index" in inputs:
        width = base.inputs["input_ids"].shape[1]
        inputs["index"] = inputs["index"] + width * torch.arange(rows, device=base.mask.device).unsqueeze(-1)
    return Batch(base.mask.repeat(rows, 1), inputs, base.tags.repeat(rows, 1))


def count_anew(device: str) -> None:
    """Gives back what nobody holds, and begins to count anew."""
    gc.collect()
    if device != "cpu":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _in_gb(held: int) -> float:
    return round(held / GB, 4)
