"""Images and wrong labels of `noise` and `gradient-histogram`: CIFAR-10, or a few made-up ones for a quick look."""

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

#: What a reader calls them.
SOURCES = {"cifar10": "CIFAR-10", "made-up": "made-up images"}
_ADVICE = "pass --data DIR, where DIR has cifar-10-batches-py or cifar-10-batches-bin, as one fetches them"
#: Made-up images to train on and to test, and their sides.
_MADE, _SIDE = (480, 240), 16


@dataclass(frozen=True)
class Law:
    """How labels go wrong.

    Attributes:
        label: what a reader calls it.
        generator: a function of `linearcore.noise`.
        options: everything that makes one variant of it another law.
        sees_images: whether the images decide, too.
    """

    label: str
    generator: str
    options: Mapping[str, Any]
    sees_images: bool

    def draw(self, data: Images, rate: float, seed: int) -> NoisyLabels:
        """Wrong labels for all of `data`."""
        inputs = (data.images, data.labels) if self.sees_images else (data.labels,)
        found: NoisyLabels = getattr(noise, self.generator)(
            *inputs, rate, num_classes=data.num_classes, seed=seed, **self.options
        )
        return found

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {"generator": self.generator, **self.options}


LAWS: Mapping[str, Law] = {
    # As Xia et al. released it: bytes of pixels as they are, and projections of its own for every class. How often a label
    # is wrong has nothing to do with the image; what the paper writes about ambiguous images is another law.
    "instance": Law(
        "instance-dependent", "instance_dependent", {"inputs": "raw", "projections": "per-class", "spread": 0.1}, True
    ),
    "symmetric": Law("symmetric", "symmetric", {}, False),
}


def check_data(source: str, folder: Path | None) -> None:
    """Raises a ValueError if a folder is needed, and none is given or it is not there."""
    if source == "cifar10" and (folder is None or not folder.is_dir()):
        got = "none" if folder is None else f"{folder}, which is no folder"
        raise ValueError(complaint("data", "be a folder with CIFAR-10", got, _ADVICE))


@lru_cache(maxsize=1)
def read_images(source: str, folder: Path | None) -> ImageSets:
    """Images with true labels, read once in a process.

    Raises:
        OSError: if a part of CIFAR-10 is missing or cannot be read.
        ValueError: if all of it is missing, a file is damaged, or no folder was given.
    """
    check_data(source, folder)
    if folder is not None and source == "cifar10":
        try:
            return cifar10(folder)
        except FileNotFoundError as error:
            # Its own advice is about Python.
            if error.filename is None:
                raise ValueError(complaint("data", "be a folder with CIFAR-10", f"'{folder}' without it", _ADVICE)) from None
            raise
    train, test = (_made_up(count, seed) for seed, count in enumerate(_MADE))
    return ImageSets(train, test)


@lru_cache(maxsize=4)
def draw_labels(source: str, folder: Path | None, law: str, rate: float, seed: int) -> NoisyLabels:
    """Wrong labels for the training images; runs that share them draw them once in a process."""
    return LAWS[law].draw(read_images(source, folder).train, rate, seed)


def _made_up(count: int, seed: int) -> Images:
    """Noise in one of four colours: easy, and the same when it is moved or mirrored."""
    stream = torch.Generator().manual_seed(seed)
    classes = ("red", "green", "blue", "yellow")
    labels = torch.arange(count) % len(classes)
    glow = 90.0 * torch.tensor([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0]])[labels]
    pixels = 60 + glow[:, :, None, None] + 50 * torch.rand(count, 3, _SIDE, _SIDE, generator=stream)
    return Images(pixels.to(torch.uint8), labels, classes)
