"""CIFAR-10's Python version, which torchvision downloads: pickles, of which none can run code here.

A pickle names functions that its reader shall call. This reader knows what makes an array and what makes bytes, and refuses
a file that names anything else.
"""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linearcore.runtime import complaint


def pickled_file(folder: Path, stem: str) -> Path:
    """Where a part lies."""
    return folder / stem


def read_pickled(folder: Path, stem: str, side: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """Images (N, 3, side, side) and labels (N,) of the file `stem`.

    Raises:
        FileNotFoundError, ValueError: in one line that names the file, if it is missing, damaged, or holds other things.
    """
    file, advice = pickled_file(folder, stem), f"fetch '{folder}' again"
    if not file.is_file():
        raise FileNotFoundError(complaint("folder", f"hold {file.name}", "none", advice))
    try:
        with file.open("rb") as stream:
            content = _Arrays(stream, encoding="bytes").load()
        # Keys are bytes where Python 2 wrote the file, text where someone wrote it anew.
        named = {key.decode() if isinstance(key, bytes) else key: value for key, value in content.items()}
        pixels, labels = named["data"], np.asarray(named["labels"], np.int64)
    except _ForeignError as error:
        raise ValueError(complaint(file.name, "hold arrays only", str(error), advice)) from None
    except Exception as error:  # Damaged pickles raise almost anything.
        got = f"a damaged file ({type(error).__name__})"
        raise ValueError(complaint(file.name, "be a part of CIFAR-10", got, advice)) from None
    fits = isinstance(pixels, np.ndarray) and pixels.dtype == np.uint8 and pixels.shape == (len(labels), 3 * side * side)
    if not fits or labels.ndim != 1 or ((labels < 0) | (labels > 255)).any():
        got = f"pixels of shape {getattr(pixels, 'shape', None)} for labels of shape {labels.shape}"
        raise ValueError(complaint(file.name, f"hold {3 * side * side} bytes for each label", got, advice))
    return pixels.reshape(-1, 3, side, side), labels.astype(np.uint8)


class _ForeignError(Exception):
    """A pickle named something that no array needs."""


class _Arrays(pickle.Unpickler):
    """Reads dicts, lists, numbers, bytes and arrays."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise _ForeignError(f"{module}.{name}") from None


def _latin1(text: str, encoding: str) -> bytes:
    """How Python 3 writes bytes in old pickles. The real function takes any codec, and some are programs."""
    if encoding not in ("latin1", "latin-1"):
        raise _ForeignError(f"the codec {encoding!r}")
    return text.encode("latin1")


_REBUILD: Callable[..., Any] = np.empty(0).__reduce__()[0]  # type: ignore[assignment]
_ALLOWED: dict[tuple[str, str], Any] = {
    # numpy 1 and 2 call the place by two names.
    ("numpy.core.multiarray", "_reconstruct"): _REBUILD,
    ("numpy._core.multiarray", "_reconstruct"): _REBUILD,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("_codecs", "encode"): _latin1,
}
