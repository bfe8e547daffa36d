"""Reads CIFAR-10 from any of three file formats."""

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from linearcore.runtime import Progress, complaint
from linearcore_paper.vision._cifar_pickle import pickled_file, read_pickled
from linearcore_paper.vision._download import download as fetch
from linearcore_paper.vision._images import Images, ImageSets
from linearcore_paper.vision._sheets import read_sheet, sheet_file

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_SIDE = 32
_IMAGES_PER_FILE = 10_000
_TRAIN, _TEST = tuple(f"data_batch_{number}" for number in range(1, 6)), ("test_batch",)
_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
_MD5 = "c32a1d4ab5d03f1284b67883e8d87530"
_FOLDER = "cifar-10-batches-bin"

_Part: TypeAlias = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]


def _binary_file(folder: Path, stem: str) -> Path:
    """Returns the path of a file of the binary version."""
    return folder / f"{stem}.bin"


def _read_binary(folder: Path, stem: str, side: int) -> _Part:
    """Reads images (N, 3, side, side) and labels (N,) from `stem.bin`: records of a label and 3,072 bytes of pixels.

    Raises:
        FileNotFoundError, ValueError: if the file is missing or incomplete; the message names it.
    """
    file = _binary_file(folder, stem)
    if not file.is_file():
        raise FileNotFoundError(complaint("folder", f"hold {file.name}", "none", f"fetch '{folder}' again"))
    content = np.frombuffer(file.read_bytes(), np.uint8)
    record = 1 + 3 * side * side
    if len(content) == 0 or len(content) % record:
        must = f"consist of records of {record} bytes"
        raise ValueError(complaint(file.name, must, f"{len(content)} bytes", f"fetch '{folder}' again"))
    records = content.reshape(-1, record)
    return records[:, 1:].reshape(-1, 3, side, side), records[:, 0]


@dataclass(frozen=True)
class _Layout:
    """A file format of the six files, and the folders where they can be."""

    folders: tuple[str, ...]
    file: Callable[[Path, str], Path]
    read: Callable[[Path, str, int], _Part]

    def find(self, folder: Path) -> Path | None:
        """Returns the subfolder with at least one of the files, or None; files that are missing raise later."""
        folders = [folder / parent / child for parent in ("", "cifar10") for child in self.folders]
        return next((path for path in folders if any(self.file(path, stem).is_file() for stem in _TRAIN + _TEST)), None)


_LAYOUTS = (
    _Layout(("",), sheet_file, read_sheet),
    _Layout(("", _FOLDER), _binary_file, _read_binary),
    _Layout(("", "cifar-10-batches-py"), pickled_file, read_pickled),
)


def cifar10(folder: str | PathLike[str], *, download: bool = False, progress: Progress | None = None) -> ImageSets:
    """Reads CIFAR-10: 50,000 training and 10,000 test images, 32 × 32 RGB, 10 classes.

    Detects the format in `folder` or `folder/cifar10`: lossless sheets of tiles (`data_batch_1.webp` … with
    `data_batch_1.labels.u8` …), the binary version (`cifar-10-batches-bin`), or the Python version of torchvision
    (`cifar-10-batches-py`), whose pickles are read without running code. All formats give equal tensors.

    Args:
        folder: folder with the dataset.
        download: download the binary version (162 MiB) into `folder` if no files are sets.
        progress: progress display of the download; None makes one.

    Returns:
        `train` in the order of the files, and `test`.

    Raises:
        MissingExtraError: if the format is sheets and pillow is not installed.
        FileNotFoundError: if files are missing.
        ValueError: if a file is damaged.
        DownloadError: if the download fails.

    Cost: 184 MB of memory; a few seconds for sheets, less for the other formats.

    Reference: Krizhevsky, *Learning Multiple Layers of Features from Tiny Images*, 2009.
    """
    sets = read_cifar10(Path(folder), _IMAGES_PER_FILE)
    if sets is None and download:
        fetch(_URL, _MD5, Path(folder) / _FOLDER, [_binary_file(Path(), stem).name for stem in _TRAIN + _TEST], progress)
        sets = read_cifar10(Path(folder), _IMAGES_PER_FILE)
    if sets is None:
        advice = "pass download=True, or the folder in which torchvision keeps cifar-10-batches-py"
        raise FileNotFoundError(complaint("folder", "hold CIFAR-10", f"'{folder}' without it", advice))
    return sets


def read_cifar10(folder: Path, count: int) -> ImageSets | None:
    """Works like `cifar10` for files with `count` images each; returns None if there are no files."""
    for layout in _LAYOUTS:
        path = layout.find(folder)
        if path is not None:
            splits = ([_read(layout, path, stem, count) for stem in stems] for stems in (_TRAIN, _TEST))
            return ImageSets(*(_join(split) for split in splits))
    return None


def _read(layout: _Layout, path: Path, stem: str, count: int) -> _Part:
    images, labels = layout.read(path, stem, _SIDE)
    name = layout.file(path, stem).name
    if len(labels) != count:
        raise ValueError(complaint(name, f"hold {count} images", len(labels), f"fetch '{path}' again"))
    if labels.max() >= len(CLASSES):
        must = f"hold labels below {len(CLASSES)}"
        raise ValueError(complaint(name, must, int(labels.max()), f"fetch '{path}' again"))
    return images, labels


def _join(parts: list[_Part]) -> Images:
    images, labels = (torch.from_numpy(np.concatenate(arrays)) for arrays in zip(*parts, strict=True))
    return Images(images, labels.long(), CLASSES)
