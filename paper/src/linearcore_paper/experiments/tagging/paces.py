"""Time per training step of `tagging` when nothing else runs."""

import statistics
import time
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import torch

from linearcore.tagging import Batch, Corpus, Stepper
from linearcore_paper.experiments.tagging.memory import reset_memory_statistics
from linearcore_paper.experiments.tagging.text import Text, read_text
from linearcore_paper.experiments.tagging.training import ROWS, Plan, make_batches, make_model, make_stepper

#: Number of timed blocks, steps per block on a GPU and on a CPU, and steps per block of slow methods.
BLOCKS, STEPS, CPU_STEPS, SLOW_STEPS = 5, 60, 2, {"broadcast": 4, "ssvm": 4}
#: Methods with a recursion over positions, which have their own kernels; compiling does not make them faster.
RECURSIVE = ("broadcast", "crf", "ssvm")
#: Number of batches for timing, enough to contain the shapes of training.
BATCHES = 40


@torch.random.fork_rng(devices=[])  # See `train_run`.
def pace(plan: Plan, data: Path | None, device: str) -> dict[str, Any]:
    """Measures the median seconds per step over blocks of steps with the same batches.

    On a GPU a step is a CUDA graph. Methods that compiling can make faster are timed with and without a compiled loss, and
    the faster one is used.
    """
    text = read_text(plan.source, data)
    batches = _some_batches(plan, text, device)
    steps = SLOW_STEPS.get(plan.method, STEPS)
    if device == "cpu":
        steps, batches = steps // STEPS * CPU_STEPS or 1, batches[:CPU_STEPS]
    if plan.method in SLOW_STEPS:
        # Use the most frequent shape only: the graph of a broadcast CRF keeps all of its memory for each shape.
        batches = _most_frequent(batches)[:1]
    ways = ["compiled"] if device != "cpu" and plan.method not in RECURSIVE else []
    timings = {way: _time_way(plan, text, batches, steps, device, is_compiled=way == "compiled") for way in ["plain", *ways]}
    timed = [way for way in timings if "seconds" in timings[way]]
    words = statistics.mean(float(batch.mask.sum()) for batch in batches)
    facts = {
        "padded_words": sorted({batch.mask.shape[1] for batch in batches}),
        "tags": len(text.vocabulary.tags),
        "ways": timings,
        "words_a_step": round(words, 1),
    }
    if not timed:
        return facts | {"failed": timings["plain"]["failed"]}
    best = min(timed, key=lambda way: float(timings[way]["seconds"]))
    return facts | {"seconds": timings[best]["seconds"], "way": best}


def _time_way(plan: Plan, text: Text, batches: list[Batch], steps: int, device: str, *, is_compiled: bool) -> dict[str, Any]:
    reset_memory_statistics(device)
    model = make_model(plan, text, device).train()
    stepper, _ = make_stepper(model, plan, is_compiled=is_compiled)
    try:
        seconds = _time_blocks(stepper, batches, plan.rate, steps, device)
    except torch.OutOfMemoryError:
        return {"failed": "out of memory"}
    median = float(f"{statistics.median(seconds):.4g}")
    return {"blocks": [float(f"{value:.4g}") for value in seconds], "seconds": median}


def _most_frequent(batches: list[Batch]) -> list[Batch]:
    """Returns the batches with the most frequent length."""
    lengths = [batch.mask.shape[1] for batch in batches]
    return [batch for batch in batches if batch.mask.shape[1] == statistics.mode(lengths)]


def _time_blocks(stepper: Stepper, batches: list[Batch], rate: float, steps: int, device: str) -> list[float]:
    """Returns the seconds per step of each block, after each shape was run often enough to be captured as a graph."""
    shapes = {tuple(tensor.shape for tensor in (batch.mask, *batch.inputs.values())): batch for batch in batches}
    # Four times each, since the first three steps of a shape are eager.
    for batch in [batch for batch in shapes.values() for _ in range(1 if device == "cpu" else 4)]:
        stepper.step(batch, rate)
    seconds = []
    endless = cycle(batches)
    for _ in range(BLOCKS):
        block = list(islice(endless, steps))
        _synchronize(device)
        started = time.perf_counter()
        for batch in block:
            stepper.step(batch, rate)
        _synchronize(device)
        seconds.append((time.perf_counter() - started) / steps)
    return seconds


def _some_batches(plan: Plan, text: Text, device: str) -> list[Batch]:
    encoder = make_model(plan, text, "cpu").encoder
    corpus = Corpus.of(text.parts["train"][: ROWS * BATCHES], text.vocabulary, encoder)
    return make_batches(corpus, ROWS, device, torch.Generator().manual_seed(plan.seed))


def _synchronize(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()
