"""The base class of all tables, and the error for a table that cannot be used."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

#: A column of numbers (NaN: missing), or of text (None: missing).
Values = npt.NDArray[np.float64] | list[str | None]


class TableError(ValueError):
    """A file cannot be used as a table. The message is `FILE:LINE: what is wrong; what to do`.

    Example:
        >>> print(TableError.at("flowers.csv", 7, "3 fields, but the header has 5", "add the missing fields"))
        flowers.csv:7: 3 fields, but the header has 5; add the missing fields
    """

    @classmethod
    def at(cls, name: str, line: int | None, wrong: str, advice: str) -> "TableError":
        """Returns the error for a line of a file.

        Args:
            name: file name as the user passed it.
            line: line number from 1; None for an error of the whole file.
            wrong: what is wrong.
            advice: what to do.
        """
        location = name if line is None else f"{name}:{line}"
        return cls(f"{location}: {wrong}; {advice}")


class Table(ABC):
    """Named columns of equal length.

    Attributes:
        name: file name as the user passed it, or a description.
        columns: column names, all different.
        row_noun: what `row_name` returns: "line", "row" or "index".
    """

    name: str
    columns: tuple[str, ...]
    row_noun: str = "row"

    @abstractmethod
    def __len__(self) -> int:
        """Returns the number of rows."""

    @abstractmethod
    def values(self, column: str) -> Values:
        """Returns a column of numbers as float64, with NaN for missing values, and any other as text."""

    def is_categorical(self, column: str) -> bool:
        """Returns whether the type of a column says that its values are categories, even if they are numbers."""
        return False

    @abstractmethod
    def labels(self, column: str) -> list[object]:
        """Returns the values of a label column; None for missing values."""

    def original(self, column: str) -> Sequence[object]:
        """Returns a column as `write` writes it."""
        return self.labels(column)

    def row_name(self, row: int) -> object:
        """Returns the name of a row for the user; `row` counts from 0."""
        return row

    def error(self, row: int | None, wrong: str, advice: str) -> TableError:
        """Returns the error for a row, or for the whole table."""
        location = self.name if row is None else f"{self.name}, {self.row_noun} {self.row_name(row)!r}"
        return TableError.at(location, None, wrong, advice)

    @abstractmethod
    def write(self, path: Path, added: Mapping[str, Sequence[object]]) -> None:
        """Writes the table with added columns, as Parquet or CSV by the suffix of `path`. The file is written atomically."""


def is_parquet(path: str | Path) -> bool:
    """Returns whether a file is Parquet, by its name."""
    return Path(path).suffix.lower() in (".parquet", ".pq")
