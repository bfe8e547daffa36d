"""Images and wrong labels of `noise` and `gradient-histogram`: CIFAR-10, or a few generated images at smoke scale."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from linearcore import noise
from linearcore.noise import NoisyLabels
from linearcore.runtime import complaint
from linearcore_paper.vision import Images, ImageSets, cifar10

#: Names of the data sets in figures.
SOURCES = {"cifar10": "CIFAR-10", "made-up": "made-up images"}
_ADVICE = "pass --data DIR, where DIR contains cifar-10-batches-py or cifar-10-batches-bin"
#: Numbers of generated images for training and test, and their width and height.
_GENERATED, _SIDE = (480, 240), 16


@dataclass(frozen=True)
class Law:
    """A distribution of wrong labels.

    Attributes:
        label: name in figures.
        generator: name of a function in `linearcore.noise`.
        options: arguments of the generator that select the variant.
        uses_images: whether wrong labels depend on the images.
    """

    label: str
    generator: str
    options: Mapping[str, Any]
    uses_images: bool

    def draw(self, data: Images, rate: float, seed: int) -> NoisyLabels:
        """Draws wrong labels for all of `data`."""
        inputs = (data.images, data.labels) if self.uses_images else (data.labels,)
        labels: NoisyLabels = getattr(noise, self.generator)(
            *inputs, rate, num_classes=data.num_classes, seed=seed, **self.options
        )
        return labels

    def to_json(self) -> dict[str, Any]:
        """Returns JSON values."""
        return {"generator": self.generator, **self.options}


LAWS: Mapping[str, Law] = {
    # The code released by Xia et al.: raw pixel bytes and one projection per class. The probability that a label is wrong
    # does not depend on the image, unlike the paper's description of ambiguous images.
    "instance": Law(
        "instance-dependent", "instance_dependent", {"inputs": "raw", "projections": "per-class", "spread": 0.1}, True
    ),
    "symmetric": Law("symmetric", "symmetric", {}, False),
}


def check_data(source: str, folder: Path | None) -> None:
    """Raises ValueError if a folder is needed and it is not given or does not exist."""
    if source == "cifar10" and (folder is None or not folder.is_dir()):
        got = "none" if folder is None else f"{folder}, which is not a folder"
        raise ValueError(complaint("data", "be a folder with CIFAR-10", got, _ADVICE))


@lru_cache(maxsize=1)
def read_images(source: str, folder: Path | None) -> ImageSets:
    """Returns images with true labels. They are read once per process.

    Raises:
        OSError: if a file of CIFAR-10 is missing or cannot be read.
        ValueError: if all of its files are missing, a file is damaged, or no folder was given.
    """
    check_data(source, folder)
    if folder is not None and source == "cifar10":
        try:
            return cifar10(folder)
        except FileNotFoundError as error:
            # The advice in the original message is for Python callers.
            if error.filename is None:
                raise ValueError(complaint("data", "be a folder with CIFAR-10", f"'{folder}' without it", _ADVICE)) from None
            raise
    train, test = (_made_up(count, seed) for seed, count in enumerate(_GENERATED))
    return ImageSets(train, test)


@lru_cache(maxsize=4)
def draw_labels(source: str, folder: Path | None, law: str, rate: float, seed: int) -> NoisyLabels:
    """Draws wrong labels for the training images; cached, so that runs in one process share them."""
    return LAWS[law].draw(read_images(source, folder).train, rate, seed)


def _made_up(count: int, seed: int) -> Images:
    """Generates noise images in one of four colours; the class does not change under shifts and mirroring."""
    stream = torch.Generator().manual_seed(seed)
    classes = ("red", "green", "blue", "yellow")
    labels = torch.arange(count) % len(classes)
    colour = 90.0 * torch.tensor([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])[labels]
    pixels = 60 + colour[:, :, None, None] + 50 * torch.rand(count, 3, _SIDE, _SIDE, generator=stream)
    return Images(pixels.to(torch.uint8), labels, classes)
