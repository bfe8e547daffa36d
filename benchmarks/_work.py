"""Runs of long benchmarks in parallel processes, with a folder of finished runs from which a command resumes."""

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

#: Settings of a run, its function, and the arguments of the function.
Run = tuple[dict[str, Any], Callable[..., dict[str, Any]], tuple[Any, ...]]


@contextmanager
def processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Starts processes with one thread each. After an error, runs that have not started are cancelled."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, initializer=partial(torch.set_num_threads, 1))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def all_runs(runs: Sequence[Run], workers: int, work: Path | None, describe: Callable[[Any], str]) -> list[dict[str, Any]]:
    """Runs in parallel what is not in `work` yet, prints a line per run, and returns all results in order.

    Args:
        runs: settings, function (picklable) and arguments of each run.
        workers: number of processes.
        work: folder for finished runs; None saves nothing.
        describe: function from a result to the line to print.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = work or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results = {index: row for index, run in enumerate(runs) if (row := kept(folder, run[0])) is not None}
        with processes(workers) as pool, Progress() as progress, progress.part("runs", len(runs)) as part:
            part.advance(len(results))
            missing = [(index, run) for index, run in enumerate(runs) if index not in results]
            futures = {pool.submit(function, *arguments): index for index, (_, function, arguments) in missing}
            for future in as_completed(futures):
                index = futures[future]
                results[index] = future.result()
                keep(folder, runs[index][0], results[index])
                part.advance()
                print(describe(results[index]), file=sys.stderr, flush=True)
    return [results[index] for index in range(len(runs))]


def parser_for(about: str | None, *, example: str, data: str, seeds: int, out: Path) -> argparse.ArgumentParser:
    """Makes the argument parser of a long benchmark.

    Args:
        about: docstring of the script.
        example: an example command, optionally with its run time.
        data: contents of the folder of `--data`.
        seeds: default of `--seeds`.
        out: default of `--out`.
    """
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter, epilog=f"example:\n  {example}"
    )
    parser.add_argument("--data", type=Path, help=f"folder with {data}")
    parser.add_argument("--seeds", type=int, default=seeds, help="number of seeds per configuration (default: %(default)s)")
    parser.add_argument(
        "--workers", type=int, default=1, help="number of processes with one thread each (default: %(default)s)"
    )
    parser.add_argument("--work", type=Path, help="folder for finished runs; an interrupted command resumes from it")
    parser.add_argument("--quick", action="store_true", help="small synthetic data; takes seconds")
    parser.add_argument("--out", type=Path, default=out, help="result file (default: benchmarks/results)")
    return parser


def complaint_about(args: argparse.Namespace, check_data: Callable[[], object]) -> str | None:
    """Returns a one-line error message about the options or the data, or None.

    Args:
        args: options of `parser_for`.
        check_data: function that raises ValueError or OSError if the data are missing.
    """
    if min(args.workers, args.seeds) < 1:
        return f"--workers and --seeds take positive numbers, got {args.workers} and {args.seeds}"
    try:
        check_data()
    except (ValueError, OSError) as error:
        return f"{error}; or try --quick, which needs no data"
    return None


def keep(work: Path, settings: dict[str, Any], result: dict[str, Any]) -> None:
    """Saves the result of a run with its settings."""
    path, run = _file(work, settings)
    partial_file = path.with_suffix(".part")  # Renamed when complete.
    partial_file.write_text(json.dumps({"run": run, "found": result}), encoding="utf-8")
    partial_file.replace(path)


def kept(work: Path, settings: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the saved result of a run with the same settings, or None."""
    path, run = _file(work, settings)
    if not path.is_file():
        return None
    saved: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return saved["found"] if saved["run"] == run else None


def _file(work: Path, settings: dict[str, Any]) -> tuple[Path, dict[str, Any]]:
    run = json.loads(json.dumps(settings))
    return work / f"{hashlib.sha256(json.dumps(run, sort_keys=True).encode()).hexdigest()[:16]}.json", run
