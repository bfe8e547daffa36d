"""pandas DataFrames as tables."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linearcore._atomic import replaced_when_complete
from linearcore._checks import complaint
from linearcore._extras import require
from linearcore.tables._arrays import index_label, label_values
from linearcore.tables._table import Table, TableError, Values, is_parquet
from linearcore.tables._write import opener

if TYPE_CHECKING:
    import pandas as pd


class FrameTable(Table):
    """A DataFrame, optionally with its labels as a separate Series. Neither is copied or changed.

    Rows are named by the index, whatever it is.

    Args:
        frame: column names are strings, or are converted to strings.
        labels: a Series with the index of `frame`; it becomes the column `label_column`.
        ignore: columns that may have the labels, because they are not features.
    """

    name = "the DataFrame"
    row_noun = "index"

    def __init__(self, frame: "pd.DataFrame", labels: "pd.Series[Any] | None" = None, ignore: Collection[str] = ()) -> None:
        self.frame = frame
        self._columns: dict[str, Any] = {}
        for position, column in enumerate(frame.columns):
            if str(column) in self._columns:
                raise TableError.at(self.name, None, f"two columns are called {column!r}", "rename one of them")
            self._columns[str(column)] = frame.iloc[:, position]
        self.label_column = ""
        if labels is not None:
            if not labels.index.equals(frame.index):
                advice = "pass labels.loc[features.index]"
                raise ValueError(complaint("labels", "have the index of the features", "another index", advice))
            given = label_values(labels)
            for column, series in self._columns.items():
                if column not in ignore and label_values(series) == given:
                    advice = f"pass the name {column!r}, or drop the column"
                    raise TableError.at(
                        self.name, None, f"its column {column!r} has the labels, which would be a feature", advice
                    )
            self.label_column = str(labels.name) if labels.name is not None else "label"
            while self.label_column in self._columns:
                self.label_column = f"given {self.label_column}"
            self._columns[self.label_column] = labels
        self.columns = tuple(self._columns)
        if not len(frame):
            raise TableError.at(self.name, None, "it has no rows", "pass one row for every label")

    @property
    def index(self) -> Any:
        """The index of the DataFrame."""
        return self.frame.index

    def __len__(self) -> int:
        return len(self.frame)

    def values(self, column: str) -> Values:
        import pandas as pd

        series = self._columns[column]
        if pd.api.types.is_datetime64_any_dtype(series) or pd.api.types.is_timedelta64_dtype(series):
            advice = f"convert it to numbers, or drop it with ignore=[{column!r}]"
            raise self.error(None, f"column {column!r} has dates", advice)
        if pd.api.types.is_complex_dtype(series):
            raise self.error(None, f"column {column!r} has complex numbers", "split them into two columns")
        if pd.api.types.is_numeric_dtype(series) or pd.api.types.is_bool_dtype(series):
            numbers: Values = series.to_numpy(dtype=np.float64, na_value=np.nan)
            return numbers
        missing = series.isna().tolist()
        values = series.tolist()
        for row, value in enumerate(values):
            if pd.api.types.is_list_like(value):
                advice = f"convert it to numbers or text, or ignore=[{column!r}]"
                raise self.error(row, f"column {column!r} has a {type(value).__name__}", advice)
        texts = (None if gone else str(value).strip() for value, gone in zip(values, missing, strict=True))
        return [text or None for text in texts]

    def is_categorical(self, column: str) -> bool:
        import pandas as pd

        return isinstance(self._columns[column].dtype, pd.CategoricalDtype)

    def labels(self, column: str) -> list[object]:
        return label_values(self._columns[column])

    def row_name(self, row: int) -> object:
        return index_label(self.frame.index, row)

    def write(self, path: Path, added: Mapping[str, Sequence[object]]) -> None:
        """Writes the DataFrame with its index, its labels and the added columns."""
        labels = {self.label_column: self._columns[self.label_column]} if self.label_column else {}
        result = self.frame.assign(**labels, **{name: list(values) for name, values in added.items()})
        with replaced_when_complete(path) as temporary:
            if is_parquet(path):
                self._write_parquet(result.rename(columns=str), temporary)
            else:
                with opener(path)(temporary, "wt", encoding="utf-8", newline="") as stream:
                    result.to_csv(stream)

    def _write_parquet(self, frame: "pd.DataFrame", path: Path) -> None:
        require("pyarrow", extra="tables")
        import pyarrow as pa

        try:
            frame.to_parquet(path)
        except (pa.ArrowException, TypeError) as error:
            wrong = f"it cannot be written as Parquet: {'; '.join(map(str, error.args))}"
            raise self.error(None, wrong, "convert the column, or write a .csv file") from None
