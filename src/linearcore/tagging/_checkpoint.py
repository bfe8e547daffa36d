"""A run that was interrupted, or killed, saved so that it goes on as if nothing had happened."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from linearcore.runtime import differences, is_store, read_store, write_store
from linearcore.tagging._model import TaggingModel

KIND = "training run of a tagger"
FOLDER = "checkpoint"


@dataclass
class State:
    """How far a run is.

    Attributes:
        epoch: the epoch in hand, from 0.
        batch: batches of it that are done.
        losses: sum over the words of this epoch of their loss.
        words: words of this epoch so far.
        seconds: spent on training steps in this epoch, for the pace.
        history: a row for each finished epoch.
        best: the accuracy on dev of the best epoch so far, in percent; −1 before the first.
        waited: epochs since.
        weights: those of the best epoch.
    """

    epoch: int = 0
    batch: int = 0
    losses: float = 0.0
    words: int = 0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    best: float = -1.0
    waited: int = 0
    weights: dict[str, Tensor] = field(default_factory=dict)


def save_checkpoint(
    out: Path, key: dict[str, Any], state: State, model: TaggingModel, optimizer: torch.optim.Optimizer
) -> None:
    """Writes everything that decides how the run goes on; `key` names the run: settings and data."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in state.weights.items()}
    saved = optimizer.state_dict()
    for number, values in saved["state"].items():
        tensors |= {f"optimizer.{number}.{name}": value for name, value in values.items() if isinstance(value, Tensor)}
    tensors["random.cpu"] = torch.get_rng_state()
    if model.projection.weight.is_cuda:
        tensors["random.cuda"] = torch.cuda.get_rng_state(model.projection.weight.device)
    told = {name: value for name, value in vars(state).items() if name != "weights"}
    write_store(out / FOLDER, KIND, settings={"key": key, "state": told}, tensors=tensors)


def load_checkpoint(out: Path, key: dict[str, Any], model: TaggingModel, optimizer: torch.optim.Optimizer) -> State | None:
    """Puts a saved run back into `model`, `optimizer` and torch's random numbers; None if there is none.

    Raises:
        ValueError: if the run that is saved there has another `key`.
    """
    if not is_store(out / FOLDER):
        return None
    stored = read_store(out / FOLDER, KIND)
    differ = differences(key, stored.settings["key"])
    if differ:
        advice = "pass --fresh (fresh=True) to begin anew, or another --out"
        raise ValueError(f"{out} holds an unfinished run with another {differ}; {advice}")
    model.load_state_dict(_under("model.", stored.tensors))
    _load_optimizer(optimizer, stored.tensors)
    torch.set_rng_state(stored.tensors["random.cpu"])
    if model.projection.weight.is_cuda and "random.cuda" in stored.tensors:
        torch.cuda.set_rng_state(stored.tensors["random.cuda"], model.projection.weight.device)
    return State(**stored.settings["state"], weights=_under("best.", stored.tensors))


def _load_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in _under("optimizer.", tensors).items():
        number, _, key = name.partition(".")
        state.setdefault(int(number), {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
