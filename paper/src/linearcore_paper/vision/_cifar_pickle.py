"""Reads the Python version of CIFAR-10, which torchvision downloads, without running code from its pickles.

A pickle can name any function for its reader to call. This reader allows only those that make arrays and bytes, and raises
on all others.
"""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linearcore.runtime import complaint


def pickled_file(folder: Path, stem: str) -> Path:
    """Returns the path of a file of the dataset."""
    return folder / stem


def read_pickled(folder: Path, stem: str, side: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Reads images (N, 3, side, side) and labels (N,) from the file `stem`.

    Raises:
        FileNotFoundError, ValueError: if the file is missing, damaged, or contains other objects.
    """
    file, advice = pickled_file(folder, stem), f"fetch '{folder}' again"
    if not file.is_file():
        raise FileNotFoundError(complaint("folder", f"hold {file.name}", "none", advice))
    try:
        with file.open("rb") as stream:
            content = _ArrayUnpickler(stream, encoding="bytes").load()
        # Keys are bytes if Python 2 wrote the file, and strings if Python 3 did.
        content_by_name = {key.decode() if isinstance(key, bytes) else key: value for key, value in content.items()}
        pixels, labels = content_by_name["data"], np.asarray(content_by_name["labels"], np.int64)
    except _ForbiddenNameError as error:
        raise ValueError(complaint(file.name, "hold arrays only", str(error), advice)) from None
    except Exception as error:  # Damaged pickles raise almost anything.
        got = f"a damaged file ({type(error).__name__})"
        raise ValueError(complaint(file.name, "be a part of CIFAR-10", got, advice)) from None
    is_valid = isinstance(pixels, np.ndarray) and pixels.dtype == np.uint8 and pixels.shape == (len(labels), 3 * side * side)
    if not is_valid or labels.ndim != 1 or ((labels < 0) | (labels > 255)).any():
        got = f"pixels of shape {getattr(pixels, 'shape', None)} for labels of shape {labels.shape}"
        raise ValueError(complaint(file.name, f"hold {3 * side * side} bytes for each label", got, advice))
    return pixels.reshape(-1, 3, side, side), labels.astype(np.uint8)


class _ForbiddenNameError(Exception):
    """A pickle names a function that is not allowed."""


class _ArrayUnpickler(pickle.Unpickler):
    """Reads dicts, lists, numbers, bytes and arrays."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise _ForbiddenNameError(f"{module}.{name}") from None


def _latin1(text: str, encoding: str) -> bytes:
    """Decodes bytes as Python 3 writes them in old pickles. `_codecs.encode` itself is unsafe: it accepts any codec."""
    if encoding not in ("latin1", "latin-1"):
        raise _ForbiddenNameError(f"the codec {encoding!r}")
    return text.encode("latin1")


_REBUILD: Callable[..., Any] = np.empty(0).__reduce__()[0]  # type: ignore[assignment]
_ALLOWED: dict[tuple[str, str], Any] = {
    # The module has different names in numpy 1 and 2.
    ("numpy.core.multiarray", "_reconstruct"): _REBUILD,
    ("numpy._core.multiarray", "_reconstruct"): _REBUILD,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _latin1,
}
