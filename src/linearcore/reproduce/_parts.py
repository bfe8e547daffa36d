"""Finished parts of an experiment on disk, so that an interrupted run goes on where it stopped.

Each part is one file. That of a plain function has the result and a key, a hash of everything the result depends on: the
settings, the source of the library and of the experiment, and the version of torch. A part whose key differs is done again.
That of a `RecordedRun` is a record, found again by settings and seed alone.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch

from linearcore.reproduce._compute import Done, Work
from linearcore.reproduce._experiment import Experiment, RecordedRun, Settings
from linearcore.reproduce._run_record import load_run, save_run
from linearcore.runtime import write_whole

_PACKAGE = Path(__file__).parents[1]


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
    for path in _sources(experiment.name):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _sources(name: str) -> list[Path]:
    """Files that can change a result: all but the command line, what draws or writes, and the other experiments."""
    reproduce = _PACKAGE / "reproduce"
    own = reproduce / "experiments" / f"{name.replace('-', '_')}.py"
    aside = (_PACKAGE / "cli", reproduce / "figures", reproduce / "report")

    def counts(path: Path) -> bool:
        if path.parent == own.parent:
            return path == own or (path.name.startswith("_") and path.name != "__init__.py")
        return not any(folder in path.parents for folder in aside)

    return sorted(path for path in _PACKAGE.rglob("*.py") if counts(path))
