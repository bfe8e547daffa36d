"""Reads a table from a CSV file, and says file and line where it is not one."""

import bz2
import csv
import gzip
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

#: What opens a file that is packed, by the end of its name.
OPENERS: dict[str, Callable[..., IO[Any]]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
#: A field may be as long as a short book, but an open quotation mark must not swallow a whole file in silence.
_LONGEST_FIELD = 2**20


class TableError(ValueError):
    """A file that cannot be used as a table. Its text is `FILE:LINE: what is wrong; what to do`.

    Example:
        >>> print(TableError.at("flowers.csv", 7, "3 fields, and the header has 5", "add what is missing"))
        flowers.csv:7: 3 fields, and the header has 5; add what is missing
    """

    @classmethod
    def at(cls, name: str, line: int | None, wrong: str, advice: str) -> "TableError":
        """The error for a place in a file.

        Args:
            name: the file as the user gave it.
            line: counted from 1; None if the file as a whole is meant.
            wrong: what is wrong.
            advice: what to do.
        """
        place = name if line is None else f"{name}:{line}"
        return cls(f"{place}: {wrong}; {advice}")


@dataclass(frozen=True, eq=False)
class Table:
    """A table as it stands in its file.

    Attributes:
        name: the file as the user gave it.
        columns: names, all different.
        rows: the fields of every row, as text.
        lines: the line of the file on which every row begins, from 1.
        delimiter: what stands between two fields.
    """

    name: str
    columns: tuple[str, ...]
    rows: list[list[str]]
    lines: list[int]
    delimiter: str

    def column(self, name: str) -> list[str]:
        """The fields of one column, without spaces around them."""
        place = self.columns.index(name)
        return [row[place].strip() for row in self.rows]


def read_table(file: str | Path, delimiter: str = ",") -> Table:
    """Reads a CSV file with a header: UTF-8, plain or packed as .gz, .xz or .bz2. Empty lines are passed over.

    Args:
        file: the path.
        delimiter: one character.

    Raises:
        TableError: if there is no such file, or it is no table: no header, no rows, names that are missing or double, rows
            that are longer or shorter than the header.

    Cost: the whole file is in memory, as text.
    """
    name, path = str(file), Path(file)
    if len(delimiter) != 1:
        raise TableError.at(name, None, f"the delimiter {delimiter!r} is not one character", "pass ',' or ';' for example")
    before = csv.field_size_limit(_LONGEST_FIELD)
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
        csv.field_size_limit(before)


def _read(name: str, stream: IO[str], delimiter: str) -> Table:
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    columns: tuple[str, ...] | None = None
    begins = 1
    try:
        for fields in reader:
            if not fields:
                pass
            elif columns is None:
                columns = _header(name, begins, [field.strip() for field in fields], delimiter)
            elif len(fields) != len(columns):
                wrong = f"{len(fields)} field{'s' * (len(fields) > 1)}, and the header has {len(columns)}"
                short, long = "add what is missing", "put fields that contain the delimiter into quotation marks"
                raise TableError.at(name, begins, wrong, short if len(fields) < len(columns) else long)
            else:
                rows.append(fields)
                lines.append(begins)
            begins = reader.line_num + 1
    except csv.Error as error:
        raise TableError.at(name, begins, f"this is no CSV: {error}", "look for a quotation mark too many") from None
    if columns is None:
        raise TableError.at(name, None, "the file is empty", "pass a CSV file with a header and rows")
    if not rows:
        raise TableError.at(name, None, "there is a header and no rows", "pass a CSV file with a row for every label")
    return Table(name, columns, rows, lines, delimiter)


def _header(name: str, line: int, columns: list[str], delimiter: str) -> tuple[str, ...]:
    """The names of the columns, which must be able to tell them apart."""
    if len(columns) == 1:
        other = next((mark for mark in (",", ";", "\t", "|") if mark != delimiter and mark in columns[0]), None)
        advice = "a label and a feature are the least" if other is None else f"pass --delimiter {other!r}"
        raise TableError.at(name, line, f"the header has one column, {columns[0]!r}", advice)
    for place, column in enumerate(columns):
        if not column:
            raise TableError.at(name, line, f"column {place + 1} has no name", "name it; pandas: to_csv(…, index=False)")
        if column in columns[:place]:
            raise TableError.at(name, line, f"two columns are called {column!r}", "rename one of them")
    return tuple(columns)
