"""Reads a table from a CSV file; errors contain the file name and the line number."""

import bz2
import csv
import gzip
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

#: Functions that open compressed files, by suffix.
OPENERS: dict[str, Callable[..., IO[Any]]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
#: Longest field in characters. A missing closing quotation mark raises instead of reading the whole file as one field.
_MAX_FIELD_LENGTH = 2**20


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


@dataclass(frozen=True, eq=False)
class Table:
    """The content of a CSV file.

    Attributes:
        name: file name as the user passed it.
        columns: column names, all different.
        rows: fields of every row, as text.
        lines: line number of the start of every row, from 1.
        delimiter: field separator.
    """

    name: str
    columns: tuple[str, ...]
    rows: list[list[str]]
    lines: list[int]
    delimiter: str

    def column(self, name: str) -> list[str]:
        """Returns the fields of one column, without surrounding whitespace."""
        index = self.columns.index(name)
        return [row[index].strip() for row in self.rows]


def read_table(file: str | Path, delimiter: str = ",") -> Table:
    """Reads a UTF-8 CSV file with a header, possibly compressed as .gz, .xz or .bz2. Empty lines are skipped.

    Args:
        file: path of the file.
        delimiter: field separator, one character.

    Raises:
        TableError: if the file does not exist, has no header or no rows, has missing or duplicate column names, or has a row
            that is longer or shorter than the header.

    Cost: the whole file is in memory, as text.
    """
    name, path = str(file), Path(file)
    if len(delimiter) != 1:
        raise TableError.at(name, None, f"the delimiter {delimiter!r} is not one character", "pass ',' or ';' for example")
    previous_limit = csv.field_size_limit(_MAX_FIELD_LENGTH)
    try:
        with OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8-sig", newline="") as stream:
            return _read(name, stream, delimiter)
    except UnicodeDecodeError:
        raise TableError.at(name, None, "this is not UTF-8 text", "save it as CSV in UTF-8") from None
    except FileNotFoundError:
        raise TableError.at(name, None, "there is no such file", "check the path") from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TableError.at(name, None, f"cannot read it: {reason.lower()}", "pass a CSV file that you may read") from None
    finally:
        csv.field_size_limit(previous_limit)


def _read(name: str, stream: IO[str], delimiter: str) -> Table:
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    columns: tuple[str, ...] | None = None
    first_line = 1
    try:
        for fields in reader:
            if not fields:
                pass
            elif columns is None:
                columns = _header(name, first_line, [field.strip() for field in fields], delimiter)
            elif len(fields) != len(columns):
                wrong = f"{len(fields)} field{'s' * (len(fields) > 1)}, but the header has {len(columns)}"
                too_few, too_many = "add the missing fields", "put fields that contain the delimiter into quotation marks"
                raise TableError.at(name, first_line, wrong, too_few if len(fields) < len(columns) else too_many)
            else:
                rows.append(fields)
                lines.append(first_line)
            first_line = reader.line_num + 1
    except csv.Error as error:
        raise TableError.at(name, first_line, f"not valid CSV: {error}", "check the quotation marks") from None
    if columns is None:
        raise TableError.at(name, None, "the file is empty", "pass a CSV file with a header and rows")
    if not rows:
        raise TableError.at(name, None, "the file has a header but no rows", "pass a CSV file with a row for every label")
    return Table(name, columns, rows, lines, delimiter)


def _header(name: str, line: int, columns: list[str], delimiter: str) -> tuple[str, ...]:
    """Returns the column names; raises unless they are at least two and all different."""
    if len(columns) == 1:
        other = next((mark for mark in (",", ";", "\t", "|") if mark != delimiter and mark in columns[0]), None)
        advice = "pass a label column and at least one feature" if other is None else f"pass --delimiter {other!r}"
        raise TableError.at(name, line, f"the header has one column, {columns[0]!r}", advice)
    for index, column in enumerate(columns):
        if not column:
            raise TableError.at(name, line, f"column {index + 1} has no name", "name it; pandas: to_csv(…, index=False)")
        if column in columns[:index]:
            raise TableError.at(name, line, f"two columns are called {column!r}", "rename one of them")
    return tuple(columns)
