"""Reads MNIST and Fashion-MNIST."""

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
    """Reads Fashion-MNIST: 60,000 training and 10,000 test images of clothes, 28 × 28 greyscale, 10 classes.

    Args:
        folder: folder with `train-images-idx3-ubyte`, `train-labels-idx1-ubyte` and the same with `t10k`, each with or
            without .gz, or with a subfolder `fashion-mnist` or torchvision's `FashionMNIST/raw` that has these files.

    Returns:
        `train` and `test`, images (N, 1, 28, 28).

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is damaged.

    Reference: Xiao, Rasul and Vollgraf, *Fashion-MNIST*, 2017.
    """
    return _read_sets(Path(folder), ("", "fashion-mnist", "FashionMNIST/raw"), _GARMENTS)


def mnist(folder: str | PathLike[str]) -> ImageSets:
    """Reads MNIST: handwritten digits, with the same files and sizes as Fashion-MNIST.

    Args:
        folder: as in `fashion_mnist`; the subfolder can be `mnist` or torchvision's `MNIST/raw`.

    Returns:
        `train` and `test`, images (N, 1, 28, 28).

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is damaged.

    Reference: LeCun, Bottou, Bengio and Haffner, *Gradient-based learning applied to document recognition*, 1998.
    """
    return _read_sets(Path(folder), ("", "mnist", "MNIST/raw"), tuple("0123456789"))


def _read_sets(folder: Path, subfolders: tuple[str, ...], classes: tuple[str, ...]) -> ImageSets:
    splits = []
    for split in ("train", "t10k"):
        images = read_idx(_find(folder, subfolders, f"{split}-images-idx3-ubyte"), dimensions=3)
        file = _find(folder, subfolders, f"{split}-labels-idx1-ubyte")
        labels = read_idx(file, dimensions=1).long()
        if len(labels) != len(images) or len(labels) == 0 or int(labels.max()) >= len(classes):
            got = f"{len(labels)} for {len(images)} images, the largest {labels.max() if len(labels) else None}"
            raise ValueError(complaint(file.name, f"hold a label below {len(classes)} per image", got, "fetch it again"))
        splits.append(Images(images.unsqueeze(1), labels, classes))
    return ImageSets(*splits)


def _find(folder: Path, subfolders: tuple[str, ...], name: str) -> Path:
    candidates = [folder / subfolder / f"{name}{suffix}" for subfolder in subfolders for suffix in ("", ".gz")]
    path = next((file for file in candidates if file.is_file()), None)
    if path is None:
        got, advice = f"'{folder}' without it", "pass the folder with the four files"
        raise FileNotFoundError(complaint("folder", f"hold {name} or {name}.gz", got, advice))
    return path


def read_idx(file: Path, dimensions: int) -> Tensor:
    """Reads an IDX file as a uint8 tensor.

    Args:
        file: the file, compressed by gzip if it ends in .gz.
        dimensions: number of dimensions that the tensor must have.

    Raises:
        ValueError: if the file is damaged or of another type; the message names it.
    """
    advice = "fetch it again"
    try:
        content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(complaint(file.name, "be compressed by gzip", type(error).__name__, advice)) from None
    header_size = 4 * (1 + dimensions)
    if content[:4] != bytes((0, 0, _UBYTE, dimensions)) or len(content) < header_size:
        must = f"be an IDX file of bytes with {dimensions} dimensions"
        raise ValueError(complaint(file.name, must, f"the header {content[:4].hex(' ') or 'of length 0'}", advice))
    sizes = struct.unpack(f">{dimensions}I", content[4:header_size])
    if len(content) - header_size != math.prod(sizes):
        must = f"hold {math.prod(sizes)} bytes after its header"
        raise ValueError(complaint(file.name, must, len(content) - header_size, advice))
    return torch.from_numpy(np.frombuffer(content, np.uint8, offset=header_size).reshape(sizes).copy())
