"""The state of an unfinished run, saved so that the run goes on as if nothing had happened."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from linearcore.runtime._store import UNFINISHED, StoreError, grouped, is_store, read_store, write_store

Restored = TypeVar("Restored")


@dataclass(frozen=True)
class Checkpoint:
    """Saves how far a run is, and takes it up again if it is the same run.

    It is a store (`write_store`) in the folder `checkpoint` below that of the result, written whole or not at all.

    Args:
        out: folder of the result.
        kind: what is saved, for example "training run of a tagger".
        key: everything that decides the result: settings, names, hashes of data, as JSON values.
        advice: what a user can do instead, for example "pass --fresh to start again"; error messages end with it.
    """

    out: Path
    kind: str
    key: Mapping[str, Any]
    advice: str

    def save(self, state: Mapping[str, Any], **tensors: Mapping[str, Tensor]) -> None:
        """Writes a state of JSON values and groups of tensors, in the place of what was saved before."""
        flat = {f"{group}.{name}": tensor for group, some in tensors.items() for name, tensor in some.items()}
        write_store(self._folder, self.kind, settings={"key": self._key, "state": dict(state)}, tensors=flat)

    def resume(self, restore: Callable[[dict[str, Any], dict[str, dict[str, Tensor]]], Restored]) -> Restored | None:
        """What `restore` makes of the state and the groups of tensors that were saved; None if there are none.

        Raises:
            ValueError: if the run that is saved there has another key.
            StoreError: in one line, if the files are damaged, or `restore` cannot use what an older version saved.
        """
        if not self.exists:
            return None
        stored = read_store(self._folder, self.kind, advice=self.advice)
        self.require_same("an unfinished run", stored.settings.get("key", {}), self._key)
        try:
            return restore(stored.settings["state"], grouped(stored.tensors))
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            versions = ", ".join(f"{name} {version}" for name, version in stored.written_by.items())
            must = f"{self._folder} must be a {self.kind} of this version, got one of {versions} ({reason})"
            raise StoreError(f"{must}; {self.advice}") from None

    def require_same(self, what: str, saved: Mapping[str, Any], key: Mapping[str, Any] | None = None) -> None:
        """Raises ValueError if `out` holds something of another key; `what` it is, for example "a finished run"."""
        differ = differences(self.key if key is None else key, saved)
        if differ:
            raise ValueError(f"{self.out} holds {what} with another {differ}; {self.advice}")

    def remove(self) -> None:
        """Deletes the state, if there is one."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def exists(self) -> bool:
        """Whether a state is saved there."""
        return is_store(self._folder)

    @property
    def _folder(self) -> Path:
        return self.out / UNFINISHED

    @property
    def _key(self) -> dict[str, Any]:
        # Another version of torch may compute other bits, so a run does not go on with it; a finished one needs no more.
        return {**self.key, "torch": torch.__version__}


def differences(key: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The names of what two runs differ in, settings by their own names; nothing if they are the same.

    Example:
        >>> differences({"settings": {"rate": 1, "seed": 0}, "dev": "x"}, {"settings": {"rate": 2, "seed": 1}, "dev": "y"})
        'dev, rate and seed'
    """
    one, two = ({**run, **run.get("settings", {}), "settings": None} for run in (key, other))
    names = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
