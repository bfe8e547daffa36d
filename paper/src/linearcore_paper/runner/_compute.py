"""One part of an experiment: what it is, what its result depends on, and how it is computed."""

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
#: An experiment from which another one imports; modules that begin with `_` are shared by all.
_IMPORTS = re.compile(r"linearcore_paper\.experiments\.([a-z]\w*)")

#: A part that can be done now; an `After` becomes one once its results are there.
Work = PartFunction | RecordedRun


@dataclass(frozen=True)
class Done:
    """A part that is done.

    Args:
        result: JSON values, as they will be read back.
        seconds: how long it took.
        environment: where it was computed, as `linearcore.runtime.environment` tells it; empty for a plain function.
    """

    result: Any
    seconds: float
    environment: dict[str, Any] = field(default_factory=dict)


def as_work(part: Part, results: Mapping[str, Any]) -> Work | None:
    """What is to be done for a part; None while results that it needs are not there."""
    if not isinstance(part, After):
        return part
    if not all(name in results for name in part.needs):
        return None
    return part.make({name: results[name] for name in part.needs})


def compute(work: Work, environment: dict[str, Any]) -> Done:
    """Does a part, in this process.

    Raises:
        TypeError: if the result holds what is no JSON value.
        ValueError: if a number in it is not finite.
    """
    recorded = isinstance(work, RecordedRun)
    started = time.perf_counter()
    result = work.compute() if isinstance(work, RecordedRun) else work()
    seconds = time.perf_counter() - started
    # Keys of recorded runs are sorted, as in the records that are there: what is concluded must not depend on their order.
    text = json.dumps(result, allow_nan=False, sort_keys=recorded)
    return Done(json.loads(text), seconds, environment if recorded else {})


def part_key(experiment: Experiment, settings: Settings) -> str:
    """A hash of what plain functions depend on: settings, torch, and the source of library and experiment; 16 hex digits."""
    told = [experiment.name, settings.scale, settings.seed, settings.device, str(settings.data), torch.__version__]
    digest = hashlib.sha256(json.dumps(told).encode())
    for name, path in _sources(experiment.name).items():
        digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _sources(name: str) -> dict[str, Path]:
    """Files that can change a result: all but commands, what draws or writes, and experiments that it does not use."""
    aside = (_LIBRARY / "cli", *(_PAPER / folder for folder in ("cli", "demo", "drawing", "report")))
    others = {folder for folder in _EXPERIMENTS.iterdir() if folder.is_dir()} - _experiments_used(name)

    def counts(path: Path) -> bool:
        if path == _EXPERIMENTS / "__init__.py" or path.name == "figure.py":
            return False
        return not any(folder in path.parents for folder in (*aside, *others))

    return {
        path.relative_to(room.parent).as_posix(): path
        for room in (_LIBRARY, _PAPER)
        for path in sorted(room.rglob("*.py"))
        if counts(path)
    }


def _experiments_used(name: str) -> set[Path]:
    """The folder of an experiment, and those of experiments that it imports from."""
    found: set[Path] = set()
    left = [name.replace("-", "_")]
    while left:
        folder = _EXPERIMENTS / left.pop()
        if folder not in found:
            found.add(folder)
            texts = (path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
            left += [used for text in texts for used in _IMPORTS.findall(text)]
    return found
