"""Memory of a training step of `tagging`, and the largest batch that fits."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from linearcore.tagging import Batch, Corpus, Stepper
from linearcore_paper.experiments.tagging.text import Text, read_text
from linearcore_paper.experiments.tagging.training import ROWS, Plan, make_batches, make_model, make_stepper

#: Memory sizes for which the largest batch is searched, in GB = 10⁹ bytes, and relative tolerance of the search.
MEMORIES, TOLERANCE = (16, 40, 140), 0.02
#: Batch sizes of the two steps from which the largest batch is estimated.
ROWS_MEASURED = (2, 6)
GB = 10**9
_NO_GPU = {"failed": "needs a GPU"}


def step_memory(plan: Plan, data: Path | None, device: str) -> dict[str, Any]:
    """Measures the peak memory in GB of an eager training step with sequences of 128 words, and the memory between steps.

    The memory between steps is that of the weights and the optimiser state.
    """
    if torch.device(device).type != "cuda":
        return _NO_GPU
    _eager(plan, data)  # Warm-up: libraries allocate workspaces, which may reuse freed memory.
    reset_memory_statistics("cuda")
    before = torch.cuda.memory_allocated()
    text, eager, base = _eager(plan, data)
    held = torch.cuda.memory_allocated()
    peak = _peak(eager, base, ROWS, plan.rate)
    if peak is None:
        return {"failed": "out of memory"}
    sizes = {"sequences": ROWS, "words": base.mask.shape[1], "tags": len(text.vocabulary.tags)}
    return sizes | {"peak_gb": _in_gb(peak - before), "kept_gb": _in_gb(held - before)}


def largest_batches(plan: Plan, data: Path | None, device: str) -> dict[str, Any]:
    """Finds the largest number of sequences of 128 words for one eager training step in each of `MEMORIES`, on a GPU."""
    if torch.device(device).type != "cuda":
        return _NO_GPU
    text, eager, base = _eager(plan, data)
    held = torch.cuda.get_device_properties(0).total_memory
    few, more = (_peak(eager, base, rows, plan.rate) for rows in ROWS_MEASURED)
    largest = {}
    for memory in MEMORIES:
        limit = min(memory * GB, held - 2 * GB)

        def fits(rows: int, limit: int = limit) -> bool:
            peak = _peak(eager, base, rows, plan.rate)
            return peak is not None and peak <= limit

        largest[str(memory)] = _largest(fits, _guess(few, more, limit))
    return {"sequences": largest, "words": base.mask.shape[1], "tags": len(text.vocabulary.tags), "held_gb": held // GB}


def _eager(plan: Plan, data: Path | None) -> tuple[Text, Stepper, Batch]:
    """Returns a text, a stepper after its first step, and one sequence. Eager, since a CUDA graph keeps its memory."""
    text = read_text(plan.source, data)
    model = make_model(plan, text, "cuda").train()
    stepper, _ = make_stepper(model, plan)
    eager = Stepper(model, stepper.optimizer, stepper.clip, stepper.dtype)
    base = _rectangle(plan, text, model.encoder)
    eager.step(_repeated(base, 1), plan.rate)  # Allocates the optimiser state, which is part of the measured memory.
    eager.optimizer.zero_grad(set_to_none=True)
    return text, eager, base


def _guess(few: int | None, more: int | None, limit: int) -> int:
    """Estimates how many sequences fit, by linear extrapolation from two measurements."""
    if few is None or more is None:
        return 1
    each = (more - few) / (ROWS_MEASURED[1] - ROWS_MEASURED[0])
    return max(1, int((limit - few) / each + ROWS_MEASURED[0]))


def _peak(stepper: Stepper, base: Batch, rows: int, rate: float) -> int | None:
    """Returns the peak memory in bytes of a step with `rows` sequences; None if they do not fit."""
    reset_memory_statistics("cuda")
    try:
        stepper.step(_repeated(base, rows), rate)
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated()
    except torch.OutOfMemoryError:
        return None
    finally:
        stepper.optimizer.zero_grad(set_to_none=True)


def _largest(fits: Callable[[int], bool], guess: int) -> int:
    """Returns the largest number that fits, within `TOLERANCE`; 0 if not even one does. A good guess saves trials.

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
    while high - low > max(1, int(TOLERANCE * low)):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _rectangle(plan: Plan, text: Text, encoder: Any) -> Batch:
    """Returns one sequence of 128 words without padding."""
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


def reset_memory_statistics(device: str) -> None:
    """Frees unused memory and resets the peak statistics."""
    gc.collect()
    if device != "cpu":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def _in_gb(num_bytes: int) -> float:
    return round(num_bytes / GB, 4)
