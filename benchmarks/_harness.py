"""Measurement for the benchmarks: interleaved timing of contenders in one process, medians, and peak memory."""

import argparse
import os
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch.profiler import ProfilerActivity, profile

from linearcore.runtime import check_committed

#: Number of warm-up steps, and the time after which the warm-up of a slow contender ends earlier.
WARM_UP_STEPS = 3
WARM_UP_SECONDS = 1.0
#: Untimed steps before each timed one with `settle`, for contenders whose step takes less than `QUICK` seconds.
SETTLING_STEPS, QUICK = 5, 0.05
#: Folders whose records are committed.
COMMITTED = tuple(Path(__file__).parents[1] / folder for folder in ("benchmarks/results", "docs/results"))


@dataclass(frozen=True)
class Contender:
    """One implementation to measure.

    Attributes:
        step: function that runs one step.
        reset: function that restores the state before a step; not timed.
        peak: peak memory of a step in bytes, if `captured` has measured it.
    """

    step: Callable[[], object]
    reset: Callable[[], object] = lambda: None
    peak: int | None = None


def interleaved_medians(
    contenders: Mapping[str, Contender],
    device: str,
    *,
    seconds: float,
    least: int,
    few: int | None = None,
    settle: bool | None = None,
) -> dict[str, float]:
    """Returns the median milliseconds of each contender; the arguments are those of `interleaved_times`."""
    times = interleaved_times(contenders, device, seconds=seconds, least=least, few=few, settle=settle)
    return {name: statistics.median(values) for name, values in times.items()}


def interleaved_times(
    contenders: Mapping[str, Contender],
    device: str,
    *,
    seconds: float,
    least: int,
    few: int | None = None,
    settle: bool | None = None,
) -> dict[str, list[float]]:
    """Returns the milliseconds of every step of each contender.

    Every round runs all contenders in turn, so that other load on the machine affects them equally. It runs for about
    `seconds` and at least `least` rounds.

    Args:
        few: for contenders of very different speed. One that cannot run `least` steps in its part of the time runs as many
            as it can, at least `few`, spread over all rounds. None: every contender runs in every round.
        settle: run `SETTLING_STEPS` untimed steps first, for contenders faster than `QUICK` seconds. Directly after another
            contender the caches of the host are cold, which can take longer than a small step. None: on accelerators.
    """
    settle = device != "cpu" if settle is None else settle
    step_seconds = {name: _warm_up(contender, device) for name, contender in contenders.items()}
    share = seconds / len(contenders)
    num_steps = {
        name: least if few is None else min(least, max(few, int(share / pace))) for name, pace in step_seconds.items()
    }
    times: dict[str, list[float]] = {name: [] for name in contenders}
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start) < seconds or any(len(times[name]) < num_steps[name] for name in times):
        for name, contender in contenders.items():
            done = len(times[name])
            if num_steps[name] == least or (done < num_steps[name] and elapsed >= done * seconds / num_steps[name]):
                if settle and step_seconds[name] < QUICK:
                    for _ in range(SETTLING_STEPS):
                        milliseconds(contender, device)
                times[name].append(milliseconds(contender, device))
    return times


def milliseconds(contender: Contender, device: str) -> float:
    """Resets, runs one step and returns its time, with GPU synchronisation."""
    contender.reset()
    _synchronize(device)
    start = time.perf_counter()
    contender.step()
    _synchronize(device)
    return (time.perf_counter() - start) * 1e3


def captured(contender: Contender) -> Contender:
    """Captures a step as a CUDA graph; replays write to the tensors of the capture.

    Raises:
        RuntimeError: if the step cannot be captured, for example because it synchronises with the GPU.
    """
    torch.cuda.empty_cache()  # Another stream has its own memory, and cached memory would count twice.
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP_STEPS):
            contender.reset()
            contender.step()
    torch.cuda.current_stream().wait_stream(stream)
    contender.reset()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before, graph = torch.cuda.memory_allocated(), torch.cuda.CUDAGraph()
    # On the warm-up stream: cuBLAS allocates a workspace per stream, which must not count for this step.
    with torch.cuda.graph(graph, stream=stream):
        contender.step()
    return Contender(graph.replay, peak=torch.cuda.max_memory_allocated() - before)


def free_bytes(device: str) -> int:
    """Returns the free memory in bytes."""
    if device != "cpu":
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info()[0]
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("/proc/meminfo has no line MemAvailable; run this on Linux")


def peak_bytes(contender: Contender, device: str) -> int:
    """Returns the peak memory of one step in bytes, including its results, without memory allocated before."""
    if contender.peak is not None:
        return contender.peak
    contender.reset()
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        contender.step()
        return torch.cuda.max_memory_allocated() - before
    with _quiet(), profile(activities=[ProfilerActivity.CPU], profile_memory=True) as trace:
        contender.step()
    events = [event for event in trace.profiler.kineto_results.events() if event.name() == "[memory]"]
    allocated = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        allocated += event.nbytes()
        peak = max(peak, allocated)
    return peak


def show(title: str, losses: Mapping[str, Mapping[str, float | None]], ratios: Mapping[str, str]) -> None:
    """Prints a table of one case: a row per loss with its median, ratios and peak memory.

    Args:
        losses: rows by name, with `median_ms`, `peak_mib` and the ratios; None is printed as a dash.
        ratios: keys of the ratios by column heading.
    """
    columns = {"median ms": ("median_ms", ".3f"), **{head: (key, ".2f") for head, key in ratios.items()}}
    columns["peak MiB"] = ("peak_mib", ".1f")
    table = Table(title=title)
    table.add_column("loss", no_wrap=True)
    for head in columns:
        table.add_column(head, justify="right")
    for name, row in losses.items():
        table.add_row(name, *["–" if row[key] is None else f"{row[key]:{form}}" for key, form in columns.values()])
    Console().print(table)


def data_folder(option: Path | None) -> Path | None:
    """Returns the folder with datasets: the option, or else the environment variable LINEARCORE_DATA."""
    variable = os.environ.get("LINEARCORE_DATA")
    return option or (Path(variable) if variable else None)


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parses the options; exits if the result file belongs to the repository and the code has uncommitted changes."""
    parser.add_argument(
        "--allow-dirty",
        action="store_true",
        help="write a result file of the repository despite uncommitted changes; the file will show it",
    )
    args = parser.parse_args()
    if args.out is None or any(args.out.resolve().is_relative_to(folder) for folder in COMMITTED):
        try:
            check_committed(parser.prog, args.allow_dirty)
        except ValueError as error:
            print(f"{parser.prog}: {error}", file=sys.stderr)
            sys.exit(2)
    return args


def command(script: str) -> str:
    """Returns the command that reproduces the results, without paths."""
    without_paths = {
        "--out": [],
        "--work": [],
        "--data": ["--data DIR"],
        "--peers": ["--peers DIR"],
        "--before": ["--before DIR"],
    }
    arguments: list[str] = []
    words = iter(sys.argv[1:])
    for word in words:
        name, _, value = word.partition("=")
        if name in without_paths and not value:
            next(words, None)
        arguments += without_paths.get(name, [shlex.quote(word)])
    return " ".join([f"python benchmarks/{script}", *arguments])


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses messages of the profiler library, which writes directly to file descriptor 2."""
    stderr, devnull = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(devnull)


def _warm_up(contender: Contender, device: str) -> float:
    """Runs a few steps and returns the seconds of the last one."""
    stop = time.perf_counter() + WARM_UP_SECONDS
    for _ in range(WARM_UP_STEPS):
        seconds = milliseconds(contender, device) / 1e3
        if time.perf_counter() > stop:
            break
    return seconds


def _synchronize(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()
