"""How the benchmarks measure: contenders side by side in one process, interleaved, medians and peak memory."""

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

#: Steps before the first one that counts, and the seconds after which a slow contender has warmed up anyway.
WARM_UP_STEPS = 3
WARM_UP_SECONDS = 1.0
#: Steps before the timed one where a turn is to settle first, for contenders that take less than so many seconds.
SETTLING_STEPS, QUICK = 5, 0.05
#: Folders whose records are committed.
COMMITTED = tuple(Path(__file__).parents[1] / folder for folder in ("benchmarks/results", "docs/results"))


@dataclass(frozen=True)
class Contender:
    """One way to do the work.

    Attributes:
        step: does it once.
        reset: puts things back so that the next step starts from the same state; not timed.
        peak: the bytes that a step holds, where they were measured when it was made (see `captured`).
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
    """Median milliseconds of each contender; the arguments are those of `interleaved_times`."""
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
    """Milliseconds of every step of each contender.

    Rounds go through all contenders in turn, so that a busy moment of the machine meets all alike, for about `seconds` and
    at least `least` rounds.

    Args:
        few: where contenders differ a thousandfold, one that cannot do `least` steps in its share of the time does as many
            as it can, at least `few`, and sits out rounds so that they spread over the whole run. None: everyone is in
            every round.
        settle: a turn begins with `SETTLING_STEPS` that are not timed, for contenders under `QUICK` seconds: in training a
            step follows itself, and one that follows another contender's finds the host's caches cold, which can take longer
            than a small step. None: on accelerators.
    """
    settle = device != "cpu" if settle is None else settle
    paces = {name: _warm_up(contender, device) for name, contender in contenders.items()}
    share = seconds / len(contenders)
    wanted = {name: least if few is None else min(least, max(few, int(share / pace))) for name, pace in paces.items()}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    start = time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds or any(len(times[name]) < wanted[name] for name in times):
        for name, contender in contenders.items():
            done = len(times[name])
            if wanted[name] == least or (done < wanted[name] and passed >= done * seconds / wanted[name]):
                if settle and paces[name] < QUICK:
                    for _ in range(SETTLING_STEPS):
                        milliseconds(contender, device)
                times[name].append(milliseconds(contender, device))
    return times


def milliseconds(contender: Contender, device: str) -> float:
    """The time of one step from a fresh start, waited for."""
    contender.reset()
    _wait(device)
    start = time.perf_counter()
    contender.step()
    _wait(device)
    return (time.perf_counter() - start) * 1e3


def captured(contender: Contender) -> Contender:
    """The same step recorded as a CUDA graph: one launch instead of many. What it computed lies where it was recorded.

    Raises:
        RuntimeError: if the step does something that cannot be recorded, such as waiting for the device.
    """
    torch.cuda.empty_cache()  # Another stream has memory of its own, and what is cached would count twice.
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
    # On the stream that has warmed up: cuBLAS keeps a workspace a stream, which is not this step's.
    with torch.cuda.graph(graph, stream=stream):
        contender.step()
    return Contender(graph.replay, peak=torch.cuda.max_memory_allocated() - before)


def free_bytes(device: str) -> int:
    """The memory that a step may still take."""
    if device != "cpu":
        torch.cuda.empty_cache()
        return torch.cuda.mem_get_info()[0]
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("/proc/meminfo does not tell how much memory is free")


def peak_bytes(contender: Contender, device: str) -> int:
    """The most memory that one step holds at a time beyond what was there before it, its results included."""
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
    held = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def show(title: str, losses: Mapping[str, Mapping[str, float | None]], ratios: Mapping[str, str]) -> None:
    """Prints one case: a row a loss with its median, ratios and peak memory.

    Args:
        losses: by name, with `median_ms`, `peak_mib` and the ratios; None is shown as a dash.
        ratios: the heading of a column, and the key under which a row has it.
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


def data_folder(given: Path | None) -> Path | None:
    """The folder of data sets: the one that was given, or the one that the variable LINEARCORE_DATA names."""
    named = os.environ.get("LINEARCORE_DATA")
    return given or (Path(named) if named else None)


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options of a benchmark. It ends here if its record is to be committed and the code that makes it is not."""
    parser.add_argument(
        "--allow-dirty",
        action="store_true",
        help="write a record that is committed although the checkout has uncommitted changes; the record says so",
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
    """What to type for the same figures; where files lie is nobody's business."""
    kept: list[str] = []
    words = iter(sys.argv[1:])
    for word in words:
        name, _, value = word.partition("=")
        if name in ("--out", "--data", "--work") and not value:
            next(words, None)
        kept += {"--out": [], "--work": [], "--data": ["--data DIR"]}.get(name, [shlex.quote(word)])
    return " ".join([f"python benchmarks/{script}", *kept])


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


def _warm_up(contender: Contender, device: str) -> float:
    """Runs a few steps and gives the seconds of the last one."""
    stop = time.perf_counter() + WARM_UP_SECONDS
    for _ in range(WARM_UP_STEPS):
        pace = milliseconds(contender, device) / 1e3
        if time.perf_counter() > stop:
            break
    return pace


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()
