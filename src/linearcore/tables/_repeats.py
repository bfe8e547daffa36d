"""Rows with the same features."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linearcore.tables._arrays import Matrix, is_sparse
from linearcore.tables._table import Table

#: Number of rows that are copied at a time.
_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Repeats:
    """Groups of rows with the same features.

    Attributes:
        group: (N,) int64, number of the group of each row; groups are numbered by their first row.
        groups: row indices of every group with at least two rows, in the order of their first row.
    """

    group: npt.NDArray[np.int64]
    groups: tuple[tuple[int, ...], ...]

    @property
    def num_extra(self) -> int:
        """Number of rows that repeat an earlier row."""
        return sum(len(rows) - 1 for rows in self.groups)

    def with_different(self, labels: npt.NDArray[np.int64]) -> tuple[tuple[int, ...], ...]:
        """Returns the groups whose rows have different labels: at least one of the labels is wrong."""
        return tuple(rows for rows in self.groups if len(set(labels[list(rows)].tolist())) > 1)


def repeats(data: "Table | Matrix", columns: Iterable[str] = ()) -> Repeats:
    """Finds rows with the same features.

    Args:
        data: a table, an array (N, D), or a CSR array.
        columns: of a table, the columns to compare. White space around a field does not count.

    Example:
        >>> repeats(np.array([[1, 2], [3, 4], [1, 2]])).groups
        ((0, 2),)
    """
    members: dict[Hashable, list[int]] = {}
    group = []
    for row, key in enumerate(_table_keys(data, columns) if isinstance(data, Table) else _matrix_keys(data)):
        rows = members.setdefault(key, [])
        rows.append(row)
        group.append(rows[0])
    _, numbers = np.unique(np.array(group, dtype=np.int64), return_inverse=True)
    return Repeats(numbers.astype(np.int64), tuple(tuple(rows) for rows in members.values() if len(rows) > 1))


def _table_keys(table: Table, columns: Iterable[str]) -> Iterable[Hashable]:
    parts = []
    for column in columns:
        values = table.values(column)
        # NaN differs from itself.
        parts.append(
            values if isinstance(values, list) else [None if value != value else value for value in values.tolist()]
        )
    return zip(*parts, strict=True)


def _matrix_keys(matrix: Matrix) -> Iterable[Hashable]:
    if not is_sparse(matrix):
        parts = (matrix[start : start + _CHUNK] for start in range(0, len(matrix), _CHUNK))
        return (row.tobytes() for part in parts for row in part + 0)  # + 0: −0.0 becomes 0.0.
    rows = matrix.sorted_indices()
    return (
        (rows.indices[start:stop].tobytes(), rows.data[start:stop].tobytes())
        for start, stop in zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True)
    )
