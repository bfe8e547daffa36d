"""Long benchmarks: processes side by side, and a folder of finished runs from which the same command goes on."""

import hashlib
import json
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch


@contextmanager
def processes(workers: int) -> Iterator[ProcessPoolExecutor]:
    """Processes of one thread each. What was not begun is dropped when something goes wrong."""
    fresh = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, fresh, initializer=partial(torch.set_num_threads, 1))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


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
