"""CSV files; errors contain the file name and the line number."""

import csv
import lzma
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from linearcore.tables._table import Table, TableError, Values, is_parquet
from linearcore.tables._write import opener, write_csv, write_parquet

#: Longest field in characters. A missing closing quotation mark raises instead of reading the whole file as one field.
_MAX_FIELD_LENGTH = 2**20


@dataclass(frozen=True, eq=False)
class CsvTable(Table):
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
    row_noun = "line"

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[str]:
        """Returns the fields of one column, without surrounding whitespace."""
        index = self.columns.index(name)
        return [row[index].strip() for row in self.rows]

    def values(self, column: str) -> Values:
        return [field or None for field in self.column(column)]

    def labels(self, column: str) -> list[object]:
        return [field or None for field in self.column(column)]

    def original(self, column: str) -> Sequence[object]:
        index = self.columns.index(column)
        return [row[index] for row in self.rows]

    def row_name(self, row: int) -> object:
        return self.lines[row]

    def error(self, row: int | None, wrong: str, advice: str) -> TableError:
        return TableError.at(self.name, None if row is None else self.lines[row], wrong, advice)

    def write(self, path: Path, added: Mapping[str, Sequence[object]]) -> None:
        if is_parquet(path):
            write_parquet(path, {name: self.original(name) for name in self.columns} | dict(added))
        else:
            rows = ([*row, *more] for row, more in zip(self.rows, zip(*added.values(), strict=True), strict=True))
            write_csv(path, [*self.columns, *added], rows, self.delimiter)


def read_csv(file: str | Path, delimiter: str = ",") -> CsvTable:
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
        with opener(path)(path, "rt", encoding="utf-8-sig", newline="") as stream:
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


def _read(name: str, stream: IO[str], delimiter: str) -> CsvTable:
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
    return CsvTable(name, columns, rows, lines, delimiter)


def _header(name: str, line: int, columns: list[str], delimiter: str) -> tuple[str, ...]:
    """Returns the column names; raises unless they are at least two and all different."""
    if len(columns) == 1:
        other = next((mark for mark in (",", ";", "\t", "|") if mark != delimiter and mark in columns[0]), None)
        advice = "pass a label column and at least one feature" if other is None else f"choose the delimiter {other!r}"
        raise TableError.at(name, line, f"the header has one column, {columns[0]!r}", advice)
    for index, column in enumerate(columns):
        if not column:
            raise TableError.at(name, line, f"column {index + 1} has no name", "name it; pandas: to_csv(…, index=False)")
        if column in columns[:index]:
            raise TableError.at(name, line, f"two columns are called {column!r}", "rename one of them")
    return tuple(columns)
