"""A run that was interrupted, or killed, saved so that it goes on as if nothing had happened."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from linearcore.runtime import differences, is_store, read_store, write_store
from linearcore_paper.vision._result import under

KIND = "training run on images"
FOLDER = "checkpoint"


@dataclass
class State:
    """How far a run is.

    Attributes:
        epoch: epochs that are done.
        step: steps of the next that are done.
        seconds: spent on it.
        history: a row for each epoch that is done.
        kept: scores of the training images, by epoch.
        failed: why it ended early.
    """

    epoch: int = 0
    step: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    kept: dict[int, Tensor] = field(default_factory=dict)
    failed: str | None = None


def save_checkpoint(out: Path, key: Mapping[str, Any], state: State, tensors: Mapping[str, Tensor]) -> None:
    """Writes everything that decides how the run goes on; `key` names the run: settings, loss and data."""
    told = {name: value for name, value in vars(state).items() if name != "kept"}
    named = {f"run.{name}": value for name, value in tensors.items()}
    named |= {f"kept.{epoch}": scores for epoch, scores in state.kept.items()}
    write_store(out / FOLDER, KIND, settings={"key": dict(key), "state": told}, tensors=named)


def load_checkpoint(out: Path, key: Mapping[str, Any]) -> tuple[State, dict[str, Tensor]] | None:
    """A saved run and its tensors; None if there is none.

    Raises:
        ValueError: if the run that is saved there has another `key`.
    """
    if not is_store(out / FOLDER):
        return None
    stored = read_store(out / FOLDER, KIND)
    refuse_other(out, "an unfinished run", key, stored.settings["key"])
    kept = {int(epoch): scores for epoch, scores in under("kept.", stored.tensors).items()}
    return State(**stored.settings["state"], kept=kept), under("run.", stored.tensors)


def refuse_other(out: Path, what: str, key: Mapping[str, Any], other: Mapping[str, Any]) -> None:
    """Raises ValueError if a folder holds something that was made of other settings or data."""
    differ = differences(key, other)
    if differ:
        raise ValueError(f"{out} holds {what} with another {differ}; pass fresh=True to begin anew, or another `out`")
