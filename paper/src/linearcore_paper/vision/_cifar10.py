"""CIFAR-10, in whichever of three ways it lies on the disk."""

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
_IN_A_FILE = 10_000
_TRAIN, _TEST = tuple(f"data_batch_{number}" for number in range(1, 6)), ("test_batch",)
_URL = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
_MD5 = "c32a1d4ab5d03f1284b67883e8d87530"
_FOLDER = "cifar-10-batches-bin"

_Part: TypeAlias = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]


def _binary_file(folder: Path, stem: str) -> Path:
    """Where a part of the binary version lies."""
    return folder / f"{stem}.bin"


def _read_binary(folder: Path, stem: str, side: int) -> _Part:
    """Images (N, 3, side, side) and labels (N,) of `stem.bin`: records of a label and 3,072 bytes of pixels.

    Raises:
        FileNotFoundError, ValueError: in one line that names the file, if it is missing or cut short.
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
    """A way in which the six parts lie in a folder."""

    folders: tuple[str, ...]
    file: Callable[[Path, str], Path]
    read: Callable[[Path, str, int], _Part]

    def find(self, folder: Path) -> Path | None:
        """The folder below `folder` that holds at least one part; a missing one is then worth a complaint."""
        places = [folder / above / below for above in ("", "cifar10") for below in self.folders]
        return next((place for place in places if any(self.file(place, stem).is_file() for stem in _TRAIN + _TEST)), None)


_LAYOUTS = (
    _Layout(("",), sheet_file, read_sheet),
    _Layout(("", _FOLDER), _binary_file, _read_binary),
    _Layout(("", "cifar-10-batches-py"), pickled_file, read_pickled),
)


def cifar10(folder: str | PathLike[str], *, download: bool = False, progress: Progress | None = None) -> ImageSets:
    """CIFAR-10: 50,000 images to train on and 10,000 to test, 32 × 32 in colour, 10 classes.

    Finds by itself what lies in `folder`, or in `folder/cifar10`: lossless sheets of tiles (`data_batch_1.webp` … with
    `data_batch_1.labels.u8` …), the binary version (`cifar-10-batches-bin`), or the Python version that torchvision
    downloads (`cifar-10-batches-py`), whose pickles are read without running anything. All give equal tensors.

    Args:
        folder: where to look.
        download: fetch the binary version from its home (162 MiB) if nothing is there, into `folder`.
        progress: an open one that shows the download; None opens its own.

    Returns:
        `train` in the order of the files, and `test`.

    Raises:
        MissingExtraError: if there are sheets and pillow is not installed.
        FileNotFoundError: if nothing is there, or a part is missing.
        ValueError: if a file is damaged.
        DownloadError: if it cannot be fetched.

    Cost: 184 MB of memory; a few seconds for sheets, less for the others.

    Reference: Krizhevsky, *Learning Multiple Layers of Features from Tiny Images*, 2009.
    """
    found = read_cifar10(Path(folder), _IN_A_FILE)
    if found is None and download:
        fetch(_URL, _MD5, Path(folder) / _FOLDER, [_binary_file(Path(), stem).name for stem in _TRAIN + _TEST], progress)
        found = read_cifar10(Path(folder), _IN_A_FILE)
    if found is None:
        advice = "pass download=True, or the folder in which torchvision keeps cifar-10-batches-py"
        raise FileNotFoundError(complaint("folder", "hold CIFAR-10", f"'{folder}' without it", advice))
    return found


def read_cifar10(folder: Path, count: int) -> ImageSets | None:
    """As `cifar10`, with `count` images in each of the six files; None if no file is there."""
    for layout in _LAYOUTS:
        place = layout.find(folder)
        if place is not None:
            halves = ([_read(layout, place, stem, count) for stem in stems] for stems in (_TRAIN, _TEST))
            return ImageSets(*(_join(half) for half in halves))
    return None


def _read(layout: _Layout, place: Path, stem: str, count: int) -> _Part:
    images, labels = layout.read(place, stem, _SIDE)
    name = layout.file(place, stem).name
    if len(labels) != count:
        raise ValueError(complaint(name, f"hold {count} images", len(labels), f"fetch '{place}' again"))
    if labels.max() >= len(CLASSES):
        must = f"hold labels below {len(CLASSES)}"
        raise ValueError(complaint(name, must, int(labels.max()), f"fetch '{place}' again"))
    return images, labels


def _join(parts: list[_Part]) -> Images:
    images, labels = (torch.from_numpy(np.concatenate(arrays)) for arrays in zip(*parts, strict=True))
    return Images(images, labels.long(), CLASSES)
