"""Reads a file as a table."""

from pathlib import Path

from linearcore.tables._csv import read_csv
from linearcore.tables._parquet import read_parquet
from linearcore.tables._table import Table, is_parquet


def read_table(file: str | Path, delimiter: str = ",") -> Table:
    """Reads a Parquet file (.parquet, .pq), or a UTF-8 CSV file with a header, possibly compressed as .gz, .xz or .bz2.

    Args:
        file: path of the file.
        delimiter: field separator of CSV, one character.

    Raises:
        MissingExtraError: for Parquet, if pyarrow is not installed.
        TableError: if the file does not exist or cannot be read, has no rows, or has missing or duplicate column names.

    Cost: the whole file is in memory.
    """
    return read_parquet(file) if is_parquet(file) else read_csv(file, delimiter)
