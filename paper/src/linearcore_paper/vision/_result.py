"""The result of a training run, and how it is saved."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from linearcore.runtime import StoreContents, StoreError, autocast_dtype, complaint, group_tensors, read_store, write_store
from linearcore_paper.vision._evaluation import scores_of
from linearcore_paper.vision._images import check_images
from linearcore_paper.vision._settings import Recipe
from linearcore_paper.vision._views import Normal
from linearcore_paper.vision.networks import NETWORKS

KIND = "trained network"


@dataclass(frozen=True, eq=False)
class Trained:
    """The result of a run.

    Attributes:
        recipe: training settings.
        loss: `loss_name` of the run.
        classes: names of the classes.
        history: a row per epoch: `epoch`, `loss` (mean over its steps, unscaled), `test_accuracy` and
            `validation_accuracy` in per cent (None if not evaluated in this epoch), `rate` (learning rate of its
            last step), `seconds`; with `watch_train` also `train_loss` and `train_accuracy`.
        network: the network with its last weights; None if the weights were not saved.
        normal: normalisation of the inputs.
        kept_scores: (N, C) float32 scores of the training images by epoch, on the CPU.
        failed: reason why the run ended early; None if it did not.
        name: name of the run.
        key: settings, loss name, and hashes of the data.
        resumed: epoch (from 1) and step at which a saved run was resumed; None if it was not resumed.
        was_finished: whether the result was read from `out` instead of trained.
    """

    recipe: Recipe
    loss: str
    classes: tuple[str, ...]
    history: list[dict[str, Any]]
    network: nn.Module | None
    normal: Normal
    kept_scores: Mapping[int, Tensor] = field(default_factory=dict)
    failed: str | None = None
    name: str = ""
    key: Mapping[str, Any] = field(default_factory=dict)
    resumed: tuple[int, int] | None = None
    was_finished: bool = False

    def __repr__(self) -> str:
        summary = (
            f"{self.recipe.network}, {len(self.history)} of {self.recipe.epochs} epochs"
            if self.failed is None
            else self.failed
        )
        loss = f", loss={self.loss}" if self.loss else ""
        return f"Trained({f'{self.name}: ' if self.name else ''}{summary}, {len(self.classes)} classes{loss})"

    def scores(self, images: Tensor) -> Tensor:
        """Computes scores (N, C) float32 of images (N, channels, height, width) uint8 on the network's device.

        Raises:
            TypeError, ValueError: if dtype or shape of the images is wrong, or the weights were not saved.
        """
        if self.network is None:
            raise ValueError(complaint("network", "have its weights", None, "train with keep_weights=True"))
        check_images(images, len(self.normal.mean))
        device = self.normal.mean.device
        return scores_of(self.network, images.to(device), self.normal, autocast_dtype(self.recipe.precision, device))

    def save(self, folder: str | PathLike[str]) -> None:
        """Saves the result as JSON and safetensors."""
        settings = {
            "recipe": self.recipe.to_json(),
            "loss": self.loss,
            "classes": list(self.classes),
            "history": self.history,
            "failed": self.failed,
            "name": self.name,
            "key": dict(self.key),
        }
        weights = {} if self.network is None else self.network.state_dict()
        tensors = {f"network.{name}": value for name, value in weights.items()}
        tensors |= {f"scores.{epoch}": scores for epoch, scores in self.kept_scores.items()}
        tensors |= {"normal.mean": self.normal.mean, "normal.deviation": self.normal.deviation}
        write_store(Path(folder), KIND, settings=settings, tensors=tensors)

    @classmethod
    def load(cls, folder: str | PathLike[str], device: torch.device | str = "cpu") -> "Trained":
        """Reads a result written by `save`.

        Raises:
            StoreError: if the folder is not a saved result, is damaged, or needs a network that this version does not have.
        """
        stored = read_store(Path(folder), KIND)
        try:
            return cls._from_store(stored, device)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())[:200]
            advice = f"train it again, or load it with linearcore {stored.written_by.get('linearcore', 'of that time')}"
            raise StoreError(f"{folder} does not fit this version of linearcore: {reason}; {advice}") from None

    @classmethod
    def _from_store(cls, stored: StoreContents, device: torch.device | str) -> "Trained":
        settings = stored.settings
        recipe = Recipe.from_json(settings["recipe"])
        tensors = group_tensors(stored.tensors)
        normal = Normal(*(tensors["normal"][name].to(device) for name in ("mean", "deviation")))
        weights = tensors.get("network", {})
        network = None
        if weights:
            network = new_network(recipe, len(settings["classes"]), len(normal.mean)).to(device)
            network.load_state_dict(weights)
        saved_scores = {int(epoch): scores for epoch, scores in tensors.get("scores", {}).items()}
        texts = {name: settings[name] for name in ("loss", "history", "failed", "name", "key")}
        return cls(
            recipe, classes=tuple(settings["classes"]), network=network, normal=normal, kept_scores=saved_scores, **texts
        )


def new_network(recipe: Recipe, num_classes: int, channels: int) -> nn.Module:
    """Builds an untrained network on the CPU in channels-last format; keeps the state of torch's random generator."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(recipe.seed)
        network = NETWORKS[recipe.network](num_classes, channels, recipe.width)
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]
