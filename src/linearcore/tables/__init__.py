"""Reads tables and turns their columns into arrays of features and labels.

    read_table   reads a CSV or Parquet file
    FrameTable   wraps a pandas DataFrame, without a copy
    encode       numbers, categories and text with missing values → features and labels, by scikit-learn's transformers
    as_matrix    features of any kind (pandas, NumPy, SciPy sparse, torch) → an array or a CSR matrix
    repeats      groups of rows with the same features

CSV needs the standard library only. Parquet and pandas need the extra `tables`, and `encode` needs scikit-learn (extra
`cleaning`).
"""

from linearcore.tables._arrays import (
    ArrayTable,
    Matrix,
    as_matrix,
    as_values,
    is_frame,
    is_series,
    is_sparse,
    label_values,
    nonfinite_entry,
    row_index,
)
from linearcore.tables._columns import MAX_CATEGORIES, ColumnKinds
from linearcore.tables._csv import CsvTable, read_csv
from linearcore.tables._encoding import Classes, EncodedTable, classes_of, encode, encode_labels
from linearcore.tables._frame import FrameTable
from linearcore.tables._parquet import ParquetTable
from linearcore.tables._read import read_table
from linearcore.tables._repeats import Repeats, repeats
from linearcore.tables._table import Table, TableError, is_parquet

__all__ = [
    "MAX_CATEGORIES",
    "ArrayTable",
    "Classes",
    "ColumnKinds",
    "CsvTable",
    "EncodedTable",
    "FrameTable",
    "Matrix",
    "ParquetTable",
    "Repeats",
    "Table",
    "TableError",
    "as_matrix",
    "as_values",
    "classes_of",
    "encode",
    "encode_labels",
    "is_frame",
    "is_parquet",
    "is_series",
    "is_sparse",
    "label_values",
    "nonfinite_entry",
    "read_csv",
    "read_table",
    "repeats",
    "row_index",
]
