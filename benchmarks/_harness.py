"""How the benchmarks measure: contenders side by side in one process, interleaved, medians and peak memory."""

import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from rich.console import Console
from rich.table import Table
from torch.profiler import ProfilerActivity, profile


@dataclass(frozen=True)
class Contender:
    """One way to do the work.

    Attributes:
        step: does it once.
        reset: puts things back so that the next step starts from the same state; not timed.
    """

    step: Callable[[], object]
    reset: Callable[[], object] = lambda: None


def interleaved_medians(contenders: Mapping[str, Contender], device: str, *, seconds: float, least: int) -> dict[str, float]:
    """Median milliseconds of each contender.

    Rounds go through all contenders in turn, so that a busy moment of the machine meets all alike, for about `seconds` and
    at least `least` rounds.
    """
    for contender in contenders.values():
        for _ in range(3):
            contender.reset()
            contender.step()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop or len(next(iter(times.values()))) < least:
        for name, contender in contenders.items():
            contender.reset()
            _wait(device)
            start = time.perf_counter()
            contender.step()
            _wait(device)
            times[name].append((time.perf_counter() - start) * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def peak_bytes(contender: Contender, device: str) -> int:
    """The most memory that one step holds at a time beyond what was there before it, its results included."""
    contender.reset()
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        contender.step()
        return torch.cuda.max_memory_allocated() - before
    with _quiet(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as trace:
        contender.step()
    events = [event for event in trace.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def show(title: str, losses: Mapping[str, Mapping[str, float]]) -> None:
    """Prints one case: a row a loss with its median, its ratio to F.cross_entropy and its peak memory."""
    table = Table(title=title)
    for column in ("loss", "median ms", "× F.cross_entropy", "peak MiB"):
        table.add_column(column, justify="left" if column == "loss" else "right")
    for name, row in losses.items():
        table.add_row(name, f"{row['median_ms']:.3f}", f"{row['ratio_to_cross_entropy']:.2f}", f"{row['peak_mib']:.1f}")
    Console().print(table)


@contextmanager
def _quiet() -> Iterator[None]:
    """Drops what the profiler's own library says about its start and stop, which goes past Python's streams."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()
