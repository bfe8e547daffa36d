"""How long a step of `tagging` takes when nothing else runs."""

import statistics
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import torch

from linearcore.tagging import Batch, Corpus, Stepper
from linearcore_paper.experiments.tagging.memory import count_anew
from linearcore_paper.experiments.tagging.text import Text, read_text
from linearcore_paper.experiments.tagging.training import ROWS, Plan, make_batches, make_model, make_stepper

#: Blocks of timed steps, and steps of a block: where a GPU has to settle, and on a CPU. A step of the broadcast CRF takes as
#: long as a block of others, and so does a search.
BLOCKS, STEPS, FEW, SLOW = 5, 60, 2, {"broadcast": 4, "ssvm": 4}
#: What follows one position after another has kernels of its own, and nothing to gain from a compiler.
RECURSIVE = ("broadcast", "crf", "ssvm")
#: Batches that the timed steps go through, with as many shapes as training has.
BATCHES = 40


@torch.random.fork_rng(devices=[])  # As in `train_run`.
def pace(plan: Plan, data: Path | None, device: str) -> dict[str, Any]:
    """Median seconds of a step, over blocks of steps through the same batches.

    On a GPU a step is a CUDA graph, with and without the loss compiled first where a compiler can gain something; the
    faster of the two counts.
    """
    text = read_text(plan.source, data)
    batches = _some_batches(plan, text, device)
    steps = SLOW.get(plan.method, STEPS)
    if device == "cpu":
        steps, batches = steps // STEPS * FEW or 1, batches[:FEW]
    if plan.method in SLOW:
        # One shape, the most frequent one: the graph of a broadcast CRF holds all of its memory for each.
        batches = _most_frequent(batches)[:1]
    ways = ["compiled"] if device != "cpu" and plan.method not in RECURSIVE else []
    found = {way: _paced(plan, text, batches, steps, device, is_compiled=way == "compiled") for way in ["plain", *ways]}
    timed = [way for way in found if "seconds" in found[way]]
    words = statistics.mean(float(batch.mask.sum()) for batch in batches)
    told = {
        "padded_words": sorted({batch.mask.shape[1] for batch in batches}),
        "tags": len(text.vocabulary.tags),
        "ways": found,
        "words_a_step": round(words, 1),
    }
    if not timed:
        return told | {"failed": found["plain"]["failed"]}
    best = min(timed, key=lambda way: float(found[way]["seconds"]))
    return told | {"seconds": found[best]["seconds"], "way": best}


def _paced(plan: Plan, text: Text, batches: list[Batch], steps: int, device: str, *, is_compiled: bool) -> dict[str, Any]:
    count_anew(device)
    model = make_model(plan, text, device).train()
    stepper, _ = make_stepper(model, plan, is_compiled=is_compiled)
    try:
        seconds = _timed(stepper, batches, plan.rate, steps, device)
    except torch.OutOfMemoryError:
        return {"failed": "out of memory"}
    median = float(f"{statistics.median(seconds):.4g}")
    return {"blocks": [float(f"{value:.4g}") for value in seconds], "seconds": median}


def _most_frequent(batches: list[Batch]) -> list[Batch]:
    """Those of the length that most have."""
    lengths = [batch.mask.shape[1] for batch in batches]
    return [batch for batch in batches if batch.mask.shape[1] == statistics.mode(lengths)]


def _timed(stepper: Stepper, batches: list[Batch], rate: float, steps: int, device: str) -> list[float]:
    """Seconds of a step in each block, after all shapes have been met often enough to be recorded."""
    shapes = {tuple(tensor.shape for tensor in (batch.mask, *batch.inputs.values())): batch for batch in batches}
    # Four times each: the first three are eager.
    for batch in [batch for batch in shapes.values() for _ in range(1 if device == "cpu" else 4)]:
        stepper.step(batch, rate)
    found = []
    around = cycle(batches)
    for _ in range(BLOCKS):
        block = list(islice(around, steps))
        _wait(device)
        started = time.perf_counter()
        for batch in block:
            stepper.step(batch, rate)
        _wait(device)
        found.append((time.perf_counter() - started) / steps)
    return found


def _some_batches(plan: Plan, text: Text, device: str) -> list[Batch]:
    encoder = make_model(plan, text, "cpu").encoder
    corpus = Corpus.of(text.parts["train"][: ROWS * BATCHES], text.vocabulary, encoder)
    return make_batches(corpus, ROWS, device, torch.Generator().manual_seed(plan.seed))


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()
