"""What came of a run, in memory and in a folder."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from linearcore.runtime import autocast_dtype, complaint, group_tensors, read_store, write_store
from linearcore_paper.vision._evaluation import scores_of
from linearcore_paper.vision._images import check_images
from linearcore_paper.vision._settings import Recipe
from linearcore_paper.vision._views import Normal
from linearcore_paper.vision.networks import NETWORKS

KIND = "trained network"


@dataclass(frozen=True, eq=False)
class Trained:
    """A finished run.

    Attributes:
        recipe: how it was trained.
        loss: the name of the loss, as the caller gave it.
        classes: names of the classes.
        history: a row for each epoch: `epoch`, `loss` (mean over its steps, unscaled), `test_accuracy` and
            `validation_accuracy` in per cent (None without such images or in an epoch that was not looked at), `rate` of its
            last step, `seconds`; and `train_loss` and `train_accuracy` where they were asked for.
        network: with its last weights; None if they were not kept.
        normal: what the network's inputs are normalised by.
        kept_scores: (N, C) float32 scores of the training images by epoch, on the CPU.
        failed: why it ended early; None if it did not.
        name: that the run was given.
        key: what it was made of: settings, loss, and hashes of the data.
        resumed: the epoch (from 1) and the step at which a saved run was taken up; None if it began at the beginning.
        was_finished: nothing was done, since the folder held this very run.
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
        how = (
            f"{self.recipe.network}, {len(self.history)} of {self.recipe.epochs} epochs"
            if self.failed is None
            else self.failed
        )
        loss = f", loss={self.loss}" if self.loss else ""
        return f"Trained({f'{self.name}: ' if self.name else ''}{how}, {len(self.classes)} classes{loss})"

    def scores(self, images: Tensor) -> Tensor:
        """(N, C) float32 scores of images (N, channels, height, width) uint8, without augmentation, on the network's device.

        Raises:
            TypeError, ValueError: if the images are others, or the weights were not kept.
        """
        if self.network is None:
            raise ValueError(complaint("network", "be there", None, "train with keep_weights=True"))
        check_images(images, len(self.normal.mean))
        device = self.normal.mean.device
        return scores_of(self.network, images.to(device), self.normal, autocast_dtype(self.recipe.precision, device))

    def save(self, folder: str | PathLike[str]) -> None:
        """Writes it as JSON and safetensors, which `load` reads on any machine."""
        told = {
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
        write_store(Path(folder), KIND, settings=told, tensors=tensors)

    @classmethod
    def load(cls, folder: str | PathLike[str], device: torch.device | str = "cpu") -> "Trained":
        """Reads what `save` wrote.

        Raises:
            StoreError: in one line, if the folder holds no such thing or is damaged.
        """
        stored = read_store(Path(folder), KIND)
        told = stored.settings
        recipe = Recipe(**told["recipe"])
        tensors = group_tensors(stored.tensors)
        normal = Normal(*(tensors["normal"][name].to(device) for name in ("mean", "deviation")))
        weights = tensors.get("network", {})
        network = None
        if weights:
            network = new_network(recipe, len(told["classes"]), len(normal.mean)).to(device)
            network.load_state_dict(weights)
        kept = {int(epoch): scores for epoch, scores in tensors.get("scores", {}).items()}
        texts = {name: told[name] for name in ("loss", "history", "failed", "name", "key")}
        return cls(recipe, classes=tuple(told["classes"]), network=network, normal=normal, kept_scores=kept, **texts)


def new_network(recipe: Recipe, num_classes: int, channels: int) -> nn.Module:
    """An untrained network on the CPU, in the memory order that convolutions like; torch's own random stream stays."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(recipe.seed)
        network = NETWORKS[recipe.network](num_classes, channels, recipe.width)
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]
