"""Reads label files without running code from them."""

import csv
import zipfile
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
import torch
from torch import Tensor

from linearcore._checks import complaint, one_of

_CONVERT = (
    "pass the .pt file; or, if you trust this one, convert it once: "
    "numpy.savez('labels.npz', **numpy.load(file, allow_pickle=True).item())"
)


def read_columns(path: str | PathLike[str]) -> dict[str, Tensor]:
    """Reads the named label vectors of a file.

    Pickles can run arbitrary code. A .pt file is a pickle, and so is an .npy file with a dict. So only tensors and numeric
    arrays are read from .pt files (`torch.load` with `weights_only=True`), and only numbers from .npy and .npz files.

    Args:
        path: a .pt file with a dict of vectors, an .npz file, an .npy file with one vector, or a .csv file with a header.

    Returns:
        Vectors by name; the vector of an .npy file has the empty name.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if it has another format, or cannot be read safely.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(Path(folder, "labels.npz"), clean_label=np.arange(3))
        ...     read_columns(Path(folder, "labels.npz"))
        {'clean_label': tensor([0, 1, 2])}
    """
    file = Path(path)
    suffix = file.suffix.lower()
    one_of("path", suffix, (".pt", ".npz", ".npy", ".csv"), "convert the file to one of these")
    if not file.is_file():
        raise FileNotFoundError(complaint("path", "be an existing file", f"'{file}'", "see http://www.noisylabels.com"))
    columns = _read_csv(file) if suffix == ".csv" else _read_torch(file) if suffix == ".pt" else _read_numpy(file)
    for name, column in columns.items():
        if column.dim() != 1:
            raise ValueError(complaint("path", "contain vectors", f"shape {tuple(column.shape)} for '{name}'", _CONVERT))
    return columns


def _read_torch(file: Path) -> dict[str, Tensor]:
    try:
        # The published files contain numpy arrays. This allows the constructors of arrays, under their names in numpy 1 and
        # 2, for this call only. None of them runs other code.
        with torch.serialization.safe_globals(_array_constructors()):
            content = torch.load(file, map_location="cpu", weights_only=True)
    except (UnpicklingError, RuntimeError, EOFError, ValueError, TypeError, LookupError, AttributeError) as error:
        got = f"'{file.name}', which contains other objects or is damaged"
        raise ValueError(complaint("path", "contain labels only", got, _CONVERT)) from error
    if not isinstance(content, dict):
        raise ValueError(complaint("path", "contain a dict of label vectors", type(content).__name__, _CONVERT))
    return {str(name): torch.as_tensor(column) for name, column in content.items() if _is_numeric(column)}


def _read_numpy(file: Path) -> dict[str, Tensor]:
    try:
        # Opened here, because numpy does not close a damaged file.
        with file.open("rb") as stream:
            content = np.load(stream, allow_pickle=False)
            if isinstance(content, np.ndarray):
                return {"": torch.as_tensor(content)}
            return {name: torch.as_tensor(content[name]) for name in content.files}
    except (ValueError, EOFError, TypeError, zipfile.BadZipFile) as error:
        got = f"'{file.name}', which contains objects or is damaged"
        raise ValueError(complaint("path", "contain numbers only", got, _CONVERT)) from error


def _read_csv(file: Path) -> dict[str, Tensor]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        header, *rows = [*csv.reader(lines)] or [[]]
    columns: dict[str, Tensor] = {}
    for position, name in enumerate(header):
        try:
            columns[name] = torch.tensor([int(row[position]) for row in rows if row], dtype=torch.int64)
        except (ValueError, IndexError) as error:
            advice = "write one row per image and one column per set, for example `clean_label,worse_label`"
            raise ValueError(complaint("path", f"contain integers in column '{name}'", str(error), advice)) from error
    return columns


def _is_numeric(column: object) -> bool:
    return isinstance(column, Tensor) or (isinstance(column, np.ndarray) and column.dtype.kind in "iu")


def _array_constructors() -> list[Callable[..., Any] | tuple[Callable[..., Any], str]]:
    """Returns the functions and classes that a pickled integer array refers to."""
    rebuild: Callable[..., Any] = np.empty(0).__reduce__()[0]  # type: ignore[assignment]
    dtypes = [type(np.dtype(f"{sign}{size}")) for sign in "iu" for size in (1, 2, 4, 8)]
    modules = ("numpy.core.multiarray", "numpy._core.multiarray")
    return [*((rebuild, f"{module}._reconstruct") for module in modules), np.ndarray, np.dtype, *dtypes]
