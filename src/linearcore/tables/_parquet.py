"""Parquet files, by pyarrow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linearcore._extras import require
from linearcore.tables._arrays import none_if_missing
from linearcore.tables._table import Table, TableError, Values, is_parquet
from linearcore.tables._write import write_csv, write_parquet


@dataclass(frozen=True, eq=False)
class ParquetTable(Table):
    """The content of a Parquet file.

    Attributes:
        name: file name as the user passed it.
        arrow: a `pyarrow.Table`.
    """

    name: str
    arrow: Any

    @property
    def columns(self) -> tuple[str, ...]:  # type: ignore[override]
        # pandas writes the index of a DataFrame as columns, which are no features.
        index = (self.arrow.schema.pandas_metadata or {}).get("index_columns", [])
        return tuple(name for name in self.arrow.column_names if name not in index)

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def values(self, column: str) -> Values:
        import pyarrow as pa

        array = self.arrow.column(column)
        kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
        if pa.types.is_null(kind):
            return [None] * len(self)
        if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return np.array([np.nan if value is None else value for value in array.to_pylist()], dtype=np.float64)
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            return [None if value is None else value.strip() or None for value in array.to_pylist()]
        raise self.error(
            None, f"column {column!r} has type {kind}", f"convert it to numbers or text, or ignore=[{column!r}]"
        )

    def labels(self, column: str) -> list[object]:
        return none_if_missing(self.arrow.column(column).to_pylist())

    def is_categorical(self, column: str) -> bool:
        import pyarrow as pa

        if pa.types.is_dictionary(self.arrow.column(column).type):
            return True
        # Parquet has no dictionaries of numbers; pandas notes them in its metadata.
        columns = (self.arrow.schema.pandas_metadata or {}).get("columns", [])
        return any(entry["field_name"] == column and entry["pandas_type"] == "categorical" for entry in columns)

    def original(self, column: str) -> Sequence[object]:
        values: list[object] = self.arrow.column(column).to_pylist()
        return values

    def write(self, path: Path, added: Mapping[str, Sequence[object]]) -> None:
        if is_parquet(path):
            write_parquet(path, added, self.arrow)
        else:
            columns = [*(self.original(name) for name in self.arrow.column_names), *added.values()]
            write_csv(path, [*self.arrow.column_names, *added], zip(*columns, strict=True))


def read_parquet(file: str | Path) -> ParquetTable:
    """Reads a Parquet file.

    Raises:
        MissingExtraError: if pyarrow is not installed.
        TableError: if the file cannot be read, or has no rows or two columns of the same name.
    """
    require("pyarrow", extra="tables")
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = str(file)
    if not Path(file).is_file():
        raise TableError.at(name, None, "there is no such file", "check the path")
    try:
        table = ParquetTable(name, pq.read_table(file))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".").lower()
        raise TableError.at(name, None, f"cannot read it: {reason}", "pass a Parquet file that you may read") from None
    if not len(table):
        raise TableError.at(name, None, "the file has no rows", "pass a file with a row for every label")
    for column in table.columns:
        if table.columns.count(column) > 1:
            raise TableError.at(name, None, f"two columns are called {column!r}", "rename one of them")
    return table
