"""Finished parts of an experiment on disk, so that an interrupted run goes on where it stopped.

Each part is one file with the result and a key. The key is a hash of everything the result depends on: the settings, the
source of the library and of the experiment, and the version of torch. A part whose key differs is done again.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch

from linearcore.reproduce._experiment import Experiment, Settings

_PACKAGE = Path(__file__).parents[1]


class PartStore:
    """The finished parts of one experiment with one key.

    Args:
        folder: where its files lie; it must exist.
        key: of the run that wants them.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.folder = folder
        self.key = key

    def load(self, name: str) -> tuple[bool, Any]:
        """Whether the part is there with the right key, and its result."""
        try:
            kept = json.loads(self._path(name).read_text(encoding="utf-8"))
            return kept["key"] == self.key, kept["result"]
        except (OSError, ValueError, KeyError, TypeError):
            # Missing, or written by hand: to be done again.
            return False, None

    def save(self, name: str, result: Any, seconds: float) -> Any:
        """Keeps a result and returns it as it will be read back: readers see a whole file or none."""
        text = json.dumps({"key": self.key, "result": result, "seconds": round(seconds, 3)}, allow_nan=False)
        path = self._path(name)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            temporary.write_text(text + "\n", encoding="utf-8")
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return json.loads(text)["result"]

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
