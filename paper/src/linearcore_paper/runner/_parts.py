"""Finished parts of an experiment on disk, so that an interrupted run goes on where it stopped.

Each part is one file. That of a plain function has the result and a key, a hash of everything the result depends on: the
settings, the source of the library and of the experiment, and the version of torch. A part whose key differs is done again.
That of a `RecordedRun` is a record, found again by settings and seed alone.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import torch

import linearcore
from linearcore.runtime import write_whole
from linearcore_paper.runner._compute import Done, Work
from linearcore_paper.runner._experiment import Experiment, RecordedRun, Settings
from linearcore_paper.runner._run_record import load_run, save_run

_LIBRARY = Path(linearcore.__file__).parent
_PAPER = Path(__file__).parents[1]
_EXPERIMENTS = _PAPER / "experiments"
#: An experiment from which another one imports; modules that begin with `_` are shared by all.
_IMPORTS = re.compile(r"linearcore_paper\.experiments\.([a-z]\w*)")


class PartStore:
    """The finished parts of one experiment.

    Args:
        folder: where its files lie; it must exist.
        key: of the plain functions of the run that wants them.
        command: what does the experiment; records of runs say it, and name the part behind it.
    """

    def __init__(self, folder: Path, key: str, command: str) -> None:
        self.folder = folder
        self.key = key
        self.command = command

    def load(self, name: str, work: Work) -> Done | None:
        """The part, if it is there and is what `work` would give."""
        if isinstance(work, RecordedRun):
            return load_run(self._path(name), work)
        try:
            kept = json.loads(self._path(name).read_text(encoding="utf-8"))
            return Done(kept["result"], kept["seconds"]) if kept["key"] == self.key else None
        except (OSError, ValueError, KeyError, TypeError):
            # Missing, or written by hand: to be done again.
            return None

    def save(self, name: str, work: Work, done: Done) -> None:
        """Keeps a part: readers see a whole file or none.

        Raises:
            OSError: if it cannot be written.
        """
        if isinstance(work, RecordedRun):
            save_run(self._path(name), work, done, f"{self.command} --parts {name}")
            return
        kept: dict[str, Any] = {"key": self.key, "result": done.result, "seconds": round(done.seconds, 3)}
        write_whole(self._path(name), json.dumps(kept, allow_nan=False) + "\n")

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.json"


def part_key(experiment: Experiment, settings: Settings) -> str:
    """The key of an experiment's parts: 16 hex digits."""
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
