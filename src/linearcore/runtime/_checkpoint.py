"""Checkpoints: the saved state of an unfinished run, from which the run can be resumed."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from linearcore.runtime._folder_lock import FolderLock
from linearcore.runtime._store import CHECKPOINT_FOLDER, StoreError, group_tensors, is_store, read_store, write_store

Restored = TypeVar("Restored")


@dataclass(frozen=True)
class Checkpoint:
    """The saved state of a run, which only a run with the same key can resume.

    The state is a store (`write_store`) in the subfolder `checkpoint` of the result folder and is written atomically.

    Args:
        out: folder of the result.
        kind: type of the run, for example "training run of a tagger".
        key: everything that determines the result (settings, names, data hashes), as JSON values.
        advice: end of every error message, for example "pass --fresh to start again".
    """

    out: Path
    kind: str
    key: Mapping[str, Any]
    advice: str

    def lock(self) -> FolderLock:
        """Returns the lock of the result folder, which a run must hold from before `resume` until its end."""
        return FolderLock(self.out)

    def save(self, state: Mapping[str, Any], **tensors: Mapping[str, Tensor]) -> None:
        """Replaces the saved state by JSON values and groups of tensors."""
        flat = {f"{group}.{name}": tensor for group, members in tensors.items() for name, tensor in members.items()}
        write_store(self._folder, self.kind, settings={"key": self._key, "state": dict(state)}, tensors=flat)

    def resume(self, restore: Callable[[dict[str, Any], dict[str, dict[str, Tensor]]], Restored]) -> Restored | None:
        """Calls `restore` with the saved state and groups of tensors; returns its result, or None if nothing is saved.

        Raises:
            ValueError: if the saved run has a different key.
            StoreError: if the files are corrupted, or `restore` cannot use a state of an older version.
        """
        if not self.exists:
            return None
        stored = read_store(self._folder, self.kind, advice=self.advice)
        self.require_same("an unfinished run", stored.settings.get("key", {}), self._key)
        try:
            return restore(stored.settings["state"], group_tensors(stored.tensors))
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            versions = ", ".join(f"{name} {version}" for name, version in stored.written_by.items())
            message = f"{self._folder} must be a {self.kind} of this version, got one of {versions} ({reason})"
            raise StoreError(f"{message}; {self.advice}") from None

    def load_finished(self, load: Callable[[Path], Restored]) -> Restored:
        """Returns `load(out)`, the finished result; to the message about a damaged folder the advice is added.

        Raises:
            StoreError: if `load` raises it.
        """
        try:
            return load(self.out)
        except StoreError as error:
            raise StoreError(f"{error}, or {self.advice}") from None

    def require_same(self, what: str, saved: Mapping[str, Any], key: Mapping[str, Any] | None = None) -> None:
        """Raises ValueError if the key `saved` differs from `key`; `what` describes the saved run in the message."""
        names = differences(self.key if key is None else key, saved)
        if names:
            raise ValueError(f"{self.out} holds {what} with another {names}; {self.advice}")

    def remove(self) -> None:
        """Deletes the saved state, if any."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def exists(self) -> bool:
        """Whether a state is saved."""
        return is_store(self._folder)

    @property
    def is_finished(self) -> bool:
        """Whether the folder has a result and no saved state. A state beside a result is that of a later, unfinished run."""
        return is_store(self.out) and not self.exists

    @property
    def _folder(self) -> Path:
        return self.out / CHECKPOINT_FOLDER

    @property
    def _key(self) -> dict[str, Any]:
        # Another version of torch may compute slightly different numbers, so it cannot resume the run.
        return {**self.key, "torch": torch.__version__}


def differences(key: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Names of the entries and settings that differ between the keys of two runs; an empty string if none do.

    Example:
        >>> differences({"settings": {"rate": 1, "seed": 0}, "dev": "x"}, {"settings": {"rate": 2, "seed": 1}, "dev": "y"})
        'dev, rate and seed'
    """
    left, right = ({**run, **run.get("settings", {}), "settings": None} for run in (key, other))
    names = sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
