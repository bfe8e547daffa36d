"""MNIST and the data sets that come in its files."""

import gzip
import math
import struct
import zlib
from os import PathLike
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from linearcore.runtime import complaint
from linearcore_paper.vision._images import Images, ImageSets

_GARMENTS = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
_UBYTE = 0x08


def fashion_mnist(folder: str | PathLike[str]) -> ImageSets:
    """Fashion-MNIST: 60,000 images of garments to train on and 10,000 to test, 28 × 28 in grey, 10 classes.

    Args:
        folder: holds `train-images-idx3-ubyte`, `train-labels-idx1-ubyte` and the same with `t10k`, each plain or .gz; or a
            folder `fashion-mnist` or torchvision's `FashionMNIST/raw` with them.

    Returns:
        `train` and `test`, images (N, 1, 28, 28).

    Raises:
        FileNotFoundError: if a file is not there.
        ValueError: if one is damaged.

    Reference: Xiao, Rasul and Vollgraf, *Fashion-MNIST*, 2017.
    """
    return _read_sets(Path(folder), ("", "fashion-mnist", "FashionMNIST/raw"), _GARMENTS)


def mnist(folder: str | PathLike[str]) -> ImageSets:
    """MNIST: handwritten digits, in the same files and of the same size as `fashion_mnist`.

    Args:
        folder: as there; or it holds a folder `mnist`, or torchvision's `MNIST/raw`.

    Returns:
        `train` and `test`, images (N, 1, 28, 28).

    Raises:
        FileNotFoundError: if a file is not there.
        ValueError: if one is damaged.

    Reference: LeCun, Bottou, Bengio and Haffner, *Gradient-based learning applied to document recognition*, 1998.
    """
    return _read_sets(Path(folder), ("", "mnist", "MNIST/raw"), tuple("0123456789"))


def _read_sets(folder: Path, places: tuple[str, ...], classes: tuple[str, ...]) -> ImageSets:
    halves = []
    for half in ("train", "t10k"):
        images = read_idx(_find(folder, places, f"{half}-images-idx3-ubyte"), dimensions=3)
        file = _find(folder, places, f"{half}-labels-idx1-ubyte")
        labels = read_idx(file, dimensions=1).long()
        if len(labels) != len(images) or len(labels) == 0 or int(labels.max()) >= len(classes):
            got = f"{len(labels)} for {len(images)} images, the largest {labels.max() if len(labels) else None}"
            raise ValueError(complaint(file.name, f"hold a label below {len(classes)} an image", got, "fetch it again"))
        halves.append(Images(images.unsqueeze(1), labels, classes))
    return ImageSets(*halves)


def _find(folder: Path, places: tuple[str, ...], name: str) -> Path:
    candidates = [folder / place / f"{name}{ending}" for place in places for ending in ("", ".gz")]
    found = next((file for file in candidates if file.is_file()), None)
    if found is None:
        got, advice = f"'{folder}' without it", "name the folder in which the four files lie"
        raise FileNotFoundError(complaint("folder", f"hold {name} or {name}.gz", got, advice))
    return found


def read_idx(file: Path, dimensions: int) -> Tensor:
    """The bytes of an IDX file as a uint8 tensor.

    Args:
        file: plain, or packed by gzip if it ends in .gz.
        dimensions: how many the tensor must have.

    Raises:
        ValueError: in one line that names the file, if it is damaged or of another kind.
    """
    advice = "fetch it again"
    try:
        content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(complaint(file.name, "be packed by gzip", type(error).__name__, advice)) from None
    begin = 4 * (1 + dimensions)
    if content[:4] != bytes((0, 0, _UBYTE, dimensions)) or len(content) < begin:
        must = f"be an IDX file of bytes with {dimensions} dimensions"
        raise ValueError(complaint(file.name, must, f"a beginning of {content[:4].hex(' ') or 'nothing'}", advice))
    sizes = struct.unpack(f">{dimensions}I", content[4:begin])
    if len(content) - begin != math.prod(sizes):
        must = f"hold {math.prod(sizes)} bytes after its beginning"
        raise ValueError(complaint(file.name, must, len(content) - begin, advice))
    return torch.from_numpy(np.frombuffer(content, np.uint8, offset=begin).reshape(sizes).copy())
