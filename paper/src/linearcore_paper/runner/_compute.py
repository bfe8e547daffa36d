"""Computes one part of an experiment, and hashes the source files that its result depends on."""

import hashlib
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import linearcore
from linearcore_paper.runner._experiment import After, Experiment, Part, PartFunction, RecordedRun, Settings

_LIBRARY = Path(linearcore.__file__).parent
_PAPER = Path(__file__).parents[1]
_EXPERIMENTS = _PAPER / "experiments"
#: Matches an import from another experiment; modules that begin with `_` are shared by all.
_IMPORTS = re.compile(r"linearcore_paper\.experiments\.([a-z]\w*)")

#: A part that can run now; an `After` becomes one when the results that it needs are available.
Work = PartFunction | RecordedRun


@dataclass(frozen=True)
class PartResult:
    """The result of a part.

    Args:
        result: JSON values, as read back from the file.
        seconds: run time.
        environment: value of `linearcore.runtime.environment` during the run; empty for a plain function.
    """

    result: Any
    seconds: float
    environment: dict[str, Any] = field(default_factory=dict)


def as_work(part: Part, results: Mapping[str, Any]) -> Work | None:
    """Returns the function or run of a part, or None if results that the part needs are missing."""
    if not isinstance(part, After):
        return part
    if not all(name in results for name in part.needs):
        return None
    return part.make({name: results[name] for name in part.needs})


def compute(work: Work, environment: dict[str, Any]) -> PartResult:
    """Runs a part in this process.

    Raises:
        TypeError: if the result contains a value that is not a JSON value.
        ValueError: if a number in the result is not finite.
    """
    is_recorded = isinstance(work, RecordedRun)
    start = time.perf_counter()
    result = work.compute() if isinstance(work, RecordedRun) else work()
    seconds = time.perf_counter() - start
    # Sorted as in existing records, so that the conclusion does not depend on the order of keys.
    text = json.dumps(result, allow_nan=False, sort_keys=is_recorded)
    return PartResult(json.loads(text), seconds, environment if is_recorded else {})


def part_key(experiment: Experiment, settings: Settings) -> str:
    """Hashes settings, torch version and the source of library and experiment to 16 hex digits, for plain functions."""
    values = [experiment.name, settings.scale, settings.seed, settings.device, str(settings.data), torch.__version__]
    digest = hashlib.sha256(json.dumps(values).encode())
    for name, path in _sources(experiment.name).items():
        digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _sources(name: str) -> dict[str, Path]:
    """Lists the files that can change a result: not commands, drawing, the report, or experiments that are not used."""
    ignored = (_LIBRARY / "cli", *(_PAPER / name for name in ("cli", "demo", "drawing.py", "report")))
    others = {folder for folder in _EXPERIMENTS.iterdir() if folder.is_dir()} - _experiments_used(name)

    def is_relevant(path: Path) -> bool:
        if path == _EXPERIMENTS / "__init__.py" or path.name == "figure.py":
            return False
        return not any(name in (path, *path.parents) for name in (*ignored, *others))

    return {
        path.relative_to(package.parent).as_posix(): path
        for package in (_LIBRARY, _PAPER)
        for path in sorted(package.rglob("*.py"))
        if is_relevant(path)
    }


def _experiments_used(name: str) -> set[Path]:
    """Lists the folders of an experiment and of the experiments that it imports from."""
    folders: set[Path] = set()
    queue = [name.replace("-", "_")]
    while queue:
        folder = _EXPERIMENTS / queue.pop()
        if folder not in folders:
            folders.add(folder)
            texts = (path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
            queue += [imported for text in texts for imported in _IMPORTS.findall(text)]
    return folders
