"""Writes tables as CSV or Parquet. A reader never sees an incomplete file."""

import bz2
import csv
import gzip
import lzma
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from linearcore._atomic import replaced_when_complete
from linearcore._extras import require

#: Functions that open compressed files, by suffix.
_OPENERS: dict[str, Callable[..., IO[Any]]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}


def opener(path: Path) -> Callable[..., IO[Any]]:
    """Returns the function that opens a file, by its suffix."""
    return _OPENERS.get(path.suffix.lower(), open)


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]], delimiter: str = ",") -> None:
    """Writes UTF-8 CSV, compressed if the name ends in .gz, .xz or .bz2. None is written as an empty field."""
    with replaced_when_complete(path) as temporary, opener(path)(temporary, "wt", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def write_parquet(path: Path, columns: Mapping[str, Sequence[object]], beside: Any = None) -> None:
    """Writes columns as Parquet, to the right of the columns and metadata of the `pyarrow.Table` `beside`, if there is one.

    Raises:
        MissingExtraError: if pyarrow is not installed.
    """
    require("pyarrow", extra="tables")
    import pyarrow as pa
    import pyarrow.parquet as pq

    with replaced_when_complete(path) as temporary:
        if beside is None:
            table = pa.table([_arrow(column) for column in columns.values()], names=list(columns))
        else:
            table = beside
            for name, column in columns.items():
                table = table.append_column(name, _arrow(column))
        pq.write_table(table, temporary)


def _arrow(column: Sequence[object]) -> Any:
    """Returns a pyarrow array; a column of several types becomes text."""
    import pyarrow as pa

    try:
        return pa.array(column)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in column])
