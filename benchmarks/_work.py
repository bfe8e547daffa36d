"""Long benchmarks: processes side by side, and a folder of finished runs from which the same command goes on."""

import argparse
import hashlib
import json
import multiprocessing
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch

from linearcore.runtime import Progress

#: What a run depends on, what does it, and with which arguments.
Run = tuple[dict[str, Any], Callable[..., dict[str, Any]], tuple[Any, ...]]


@contextmanager
def processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes of one thread each. What was not begun is dropped when something goes wrong."""
    fresh = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, fresh, initializer=partial(torch.set_num_threads, 1))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def all_runs(runs: Sequence[Run], workers: int, work: Path | None, say: Callable[[Any], str]) -> list[dict[str, Any]]:
    """What all runs found, in their order: side by side, without those that `work` holds, and a line for each.

    Args:
        runs: what each depends on, a function that can be sent to another process, and its arguments.
        workers: how many at a time.
        work: a folder for what is finished; None keeps nothing.
        say: what a run found ↦ a line for whoever waits.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = work or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        found = {place: row for place, run in enumerate(runs) if (row := kept(folder, run[0])) is not None}
        with processes(workers) as pool, Progress() as progress, progress.part("runs", len(runs)) as part:
            part.advance(len(found))
            waiting = {pool.submit(do, *with_): place for place, (_, do, with_) in enumerate(runs) if place not in found}
            for future in as_completed(waiting):
                place = waiting[future]
                found[place] = future.result()
                keep(folder, runs[place][0], found[place])
                part.advance()
                print(say(found[place]), file=sys.stderr, flush=True)
    return [found[place] for place in range(len(runs))]


def parser_for(about: str | None, *, example: str, data: str, seeds: int, out: Path) -> argparse.ArgumentParser:
    """What long benchmarks have in common.

    Args:
        about: the script's docstring.
        example: a command, and perhaps how long it takes.
        data: what the folder of `--data` holds.
        seeds: how many there are unless told otherwise.
        out: where the record goes unless told otherwise.
    """
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter, epilog=f"example:\n  {example}"
    )
    parser.add_argument("--data", type=Path, help=f"the folder that holds {data}")
    parser.add_argument("--seeds", type=int, default=seeds, help="runs of each kind (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=1, help="runs side by side, a thread each (default: %(default)s)")
    parser.add_argument("--work", type=Path, help="folder for finished runs, from which an interrupted command goes on")
    parser.add_argument("--quick", action="store_true", help="made-up data, and not all of it, in seconds")
    parser.add_argument("--out", type=Path, default=out, help="the record (default: benchmarks/results)")
    return parser


def complaint_about(args: argparse.Namespace, check_data: Callable[[], object]) -> str | None:
    """What is wrong with those options, or with the data, in a line; None if nothing is.

    Args:
        args: from the parser above.
        check_data: raises a ValueError or an OSError if the data are not there.
    """
    if min(args.workers, args.seeds) < 1:
        return f"--workers and --seeds take positive numbers, got {args.workers} and {args.seeds}"
    try:
        check_data()
    except (ValueError, OSError) as error:
        return f"{error}; or look at toy size with --quick"
    return None


def keep(work: Path, what: dict[str, Any], found: dict[str, Any]) -> None:
    """Writes what a run has found, with all that it depends on."""
    path, told = _file(work, what)
    partial_file = path.with_suffix(".part")  # A file with the right name is a whole one.
    partial_file.write_text(json.dumps({"run": told, "found": found}), encoding="utf-8")
    partial_file.replace(path)


def kept(work: Path, what: dict[str, Any]) -> dict[str, Any] | None:
    """What a run that depends on the same found before; None if there was none."""
    path, told = _file(work, what)
    if not path.is_file():
        return None
    before: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return before["found"] if before["run"] == told else None


def _file(work: Path, what: dict[str, Any]) -> tuple[Path, dict[str, Any]]:
    told = json.loads(json.dumps(what))
    return work / f"{hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]}.json", told
