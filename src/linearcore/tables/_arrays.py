"""Arrays of any kind: pandas, NumPy, SciPy sparse matrices and torch tensors.

An object of pandas or SciPy exists only if the package is imported, so nothing optional is imported to recognise one.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore._extras import require
from linearcore.tables._table import Table, Values, is_parquet
from linearcore.tables._write import write_csv, write_parquet

#: A NumPy array, or a `scipy.sparse.csr_array`.
Matrix = Any


def is_frame(data: object) -> bool:
    """Returns whether `data` is a pandas DataFrame."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def is_series(data: object) -> bool:
    """Returns whether `data` is a pandas Series."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.Series)


def is_sparse(data: object) -> bool:
    """Returns whether `data` is a SciPy sparse matrix or array."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(data))


def row_index(data: object) -> Any:
    """Returns the index of a DataFrame or Series, and None for anything else."""
    return data.index if is_frame(data) or is_series(data) else None  # type: ignore[attr-defined]


def index_label(index: Any, row: int) -> object:
    """Returns an entry of an index, as a Python number where it is one."""
    label = index[row]
    parts = [
        part.item() if isinstance(part, np.generic) else part for part in (label if isinstance(label, tuple) else [label])
    ]
    return tuple(parts) if isinstance(label, tuple) else parts[0]


def as_matrix(name: str, data: object) -> Matrix:
    """Returns numbers with one row per label: (N, D), as an array or a CSR array.

    Arrays and tensors on the CPU share their memory with the result, unless a DataFrame has columns of several types.

    Args:
        name: argument name for messages.
        data: a DataFrame of numbers, an array, a sparse matrix or a tensor; more dimensions than two are flattened.

    Raises:
        TypeError: if these are not real numbers.
        ValueError: if there are fewer than two dimensions.
    """
    if isinstance(data, Tensor) and data.layout != torch.strided:
        data = _from_sparse_tensor(data)
    matrix = _as_csr(data) if is_sparse(data) else as_values(name, data)
    if matrix.dtype.kind not in "biuf":
        raise TypeError(complaint(name, "be real numbers", matrix.dtype, "convert them, for example to float32"))
    if matrix.ndim < 2:
        must = "have one row per label"
        raise ValueError(complaint(name, must, f"shape {tuple(matrix.shape)}", "pass shape (N, …)"))
    return matrix.reshape(len(matrix), -1) if matrix.ndim > 2 else matrix


def as_values(name: str, data: object) -> npt.NDArray[Any]:
    """Returns pandas, NumPy or torch data, or a list, as an array, which shares its memory where possible."""
    if is_frame(data):
        if odd := [column for column, dtype in data.dtypes.items() if not _is_numeric(dtype)]:  # type: ignore[attr-defined]
            advice = "encode it first, or pass the DataFrame and its label column to find_wrong_labels"
            raise TypeError(complaint(name, "be columns of numbers", f"column {odd[0]!r}, which has none", advice))
        array: npt.NDArray[Any] = data.to_numpy()  # type: ignore[attr-defined]
        # Nullable columns become objects, with pandas.NA for missing values.
        return array if array.dtype.kind in "biuf" else data.to_numpy(np.float64, na_value=np.nan)  # type: ignore[attr-defined]
    if is_series(data):
        return np.asarray(data)
    if isinstance(data, Tensor):
        tensor = data.detach().cpu()
        return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    if is_sparse(data):
        return np.asarray(data.toarray())  # type: ignore[attr-defined]
    if np.ma.is_masked(data):
        raise ValueError(complaint(name, "have no masked entries", "a masked array", "fill them, or drop the rows"))
    try:
        values = np.asarray(data)
    except ValueError:
        got = type(data).__name__
        raise TypeError(complaint(name, "be rows of equal length", got, "use numpy.asarray")) from None
    # NumPy makes words of everything in a list with words: NaN would become the word "nan".
    return np.array(data, dtype=object) if values.dtype.kind in "US" and isinstance(data, (list, tuple)) else values


def label_values(labels: object) -> list[object]:
    """Returns labels of any kind as Python objects, with None for missing ones; a DataFrame has to have one column."""
    if is_frame(labels) and labels.shape[1] == 1:  # type: ignore[attr-defined]
        labels = labels.iloc[:, 0]  # type: ignore[attr-defined]
    values = labels if is_series(labels) else as_values("labels", labels).reshape(-1)
    return none_if_missing(values.tolist())  # type: ignore[attr-defined]


def none_if_missing(labels: Iterable[object]) -> list[object]:
    """Returns labels with None for missing ones: None, NaN, NaT, pandas.NA and the empty text."""
    return [None if _is_missing_label(label) else label for label in labels]


def _is_missing_label(label: object) -> bool:
    if label is None or (isinstance(label, str) and not label):
        return True
    try:
        return bool(label != label)
    except TypeError:  # pandas.NA
        return True
    except ValueError:  # An array, which is no label.
        return False


def nonfinite_entry(matrix: Matrix) -> tuple[int, int] | None:
    """Returns row and column of the first NaN or infinity in an array or a CSR array, or None."""
    values = matrix.data if is_sparse(matrix) else matrix
    if values.dtype.kind != "f" or bool(np.isfinite(values).all()):
        return None
    place = int(np.isfinite(values).argmin())
    if is_sparse(matrix):
        return int(np.searchsorted(matrix.indptr, place, side="right")) - 1, int(matrix.indices[place])
    row, column = divmod(place, int(matrix.shape[1]))
    return row, column


def _is_numeric(dtype: Any) -> bool:
    from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype

    return bool(is_numeric_dtype(dtype) or is_bool_dtype(dtype)) and not is_complex_dtype(dtype)


def _as_csr(data: object) -> Matrix:
    from scipy.sparse import csr_array

    return csr_array(data)


def _from_sparse_tensor(tensor: Tensor) -> Matrix:
    """Returns a sparse tensor as a SciPy matrix."""
    require("scipy", extra="cleaning")
    from scipy.sparse import coo_array

    entries = tensor.detach().cpu().to_sparse_coo().coalesce()
    return coo_array((as_values("values", entries.values()), tuple(entries.indices().numpy())), shape=tuple(tensor.shape))


class ArrayTable(Table):
    """Rows of an array, for the names of rows and the output. Its file has one line per row and no features."""

    name = "the features"

    def __init__(self, rows: int, index: Any = None) -> None:
        self.rows = rows
        self.index = index
        self.columns = ()
        if index is not None:
            self.row_noun = "index"

    def __len__(self) -> int:
        return self.rows

    def values(self, column: str) -> Values:
        raise KeyError(column)

    def labels(self, column: str) -> list[object]:
        raise KeyError(column)

    def row_name(self, row: int) -> object:
        return row if self.index is None else index_label(self.index, row)

    def write(self, path: Path, added: Mapping[str, Sequence[object]]) -> None:
        """Writes the added columns, with the name of each row."""
        columns = {self.row_noun: [self.row_name(row) for row in range(self.rows)], **added}
        if is_parquet(path):
            write_parquet(path, columns)
        else:
            write_csv(path, list(columns), zip(*columns.values(), strict=True))
