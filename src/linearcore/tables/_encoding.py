"""Encodes a table as features and labels, by scikit-learn's transformers."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linearcore._extras import require
from linearcore.tables._arrays import Matrix
from linearcore.tables._columns import ColumnKinds, column_of
from linearcore.tables._table import Table

#: The most frequent words of a text column that become features.
MAX_WORDS = 50_000
#: Features with more entries than this (512 MiB of float64) stay sparse.
_MAX_DENSE = 2**26

#: Distinct labels.
Classes = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class EncodedTable:
    """A table encoded as numbers.

    Attributes:
        label: name of the label column.
        features: (N, D) float64: an array, or a CSR array if there is text or there are more than 2**26 entries.
        labels: (N,) int64, indices into `classes`.
        classes: distinct labels, in numeric order if all are numbers, and in alphabetic order otherwise.
        numbers: names of the numeric columns: one scaled feature each, and one more if values are missing.
        categories: names of the categorical columns, one feature per value.
        texts: names of the text columns, one TF-IDF feature per word.
        num_missing: number of missing values in the numeric columns, which are replaced by the median.
    """

    label: str
    features: Matrix
    labels: npt.NDArray[np.int64]
    classes: Classes
    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    num_missing: int = 0


def encode(table: Table, label: str, kinds: ColumnKinds | None = None) -> EncodedTable:
    """Encodes one column as labels and all other columns as features.

    Numbers are scaled to mean 0 and standard deviation 1; missing ones become the median, with a feature that marks them.
    Categories become one-hot features, where a missing value is a category. Text becomes TF-IDF features (1 + log count) of
    the words that occur in at least two rows, or of all words if there are none. The transformers are fitted on all rows
    and use no labels.

    Args:
        table: the input table.
        label: name of the label column.
        kinds: which columns to drop, and which are categories or text. By default a column of strings is text if they have
            three or more words on average and most of them are distinct. Other strings are categorical; more than 50
            distinct values raise an error.

    Raises:
        MissingExtraError: if scikit-learn is not installed.
        TableError: if a column does not exist; if a label is missing; if a column mixes numbers and text, has decimal commas
            or too many categories; if no feature is left; or if there are fewer than two
            classes, or fewer than two rows per class on average.
    """
    require("sklearn", extra="cleaning")
    kinds = kinds or ColumnKinds()
    kinds.check(table, label)
    labels, classes = encode_labels(table, table.labels(label), f"column {label!r}")
    names: dict[str, list[str]] = {"number": [], "category": [], "text": []}
    parts: list[Any] = []
    columns: list[npt.NDArray[np.float64]] = []
    for column in kinds.kept(table, label):
        kind, values = column_of(table, column, kinds)
        names[kind].append(column)
        if isinstance(values, list):
            parts.append(_one_hot(values) if kind == "category" else _tf_idf(table, column, values))
        else:
            columns.append(values)
    if not parts and not columns:
        raise table.error(None, "no column is left to learn from", "ignore fewer")
    numbers = np.stack(columns, 1) if columns else np.empty((len(table), 0))
    if columns:
        parts.insert(0, _scaled(numbers))
    features = _side_by_side(parts, is_sparse=bool(names["text"]))
    return EncodedTable(
        label,
        features,
        labels,
        classes,
        numbers=tuple(names["number"]),
        categories=tuple(names["category"]),
        texts=tuple(names["text"]),
        num_missing=int(np.isnan(numbers).sum()),
    )


def classes_of(labels: Sequence[Any]) -> Classes:
    """Returns the distinct labels, in numeric order if all are numbers, and in alphabetic order otherwise."""
    names = set(labels)
    try:
        return tuple(sorted(names, key=lambda name: (float(name), str(name))))
    except (TypeError, ValueError):
        return tuple(sorted(names, key=str))


def encode_labels(table: Table, fields: Sequence[Any], name: str) -> tuple[npt.NDArray[np.int64], Classes]:
    """Returns class indices (N,) and the classes.

    Args:
        table: the table, for messages.
        fields: the labels, of any type; None if missing.
        name: how error messages refer to the labels, for example "column 'kind'".

    Raises:
        TableError: if a label is missing or a list, all are the same, or there are more classes than half of the rows.
    """
    for row, field in enumerate(fields):
        if field is None:
            raise table.error(row, f"{name} is empty", "fill in the label, or remove the row")
        if not isinstance(field, Hashable):
            raise table.error(row, f"{name} has {field!r}", "pass one number or word per row")
    classes = classes_of(fields)
    if len(classes) < 2:
        wrong = f"all labels in {name} are {classes[0]!r}" if classes else "there are no labels"
        raise table.error(None, wrong, "pass at least two classes")
    if len(fields) < 2 * len(classes):
        wrong = f"{name} has {len(classes):,} different labels in {len(fields):,} rows"
        raise table.error(None, wrong, "pass more rows, or a column that contains classes, not measurements or names")
    class_index = {name: index for index, name in enumerate(classes)}
    return np.array([class_index[field] for field in fields], dtype=np.int64), classes


def _scaled(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Replaces missing values by the median, adds missing-value indicators, and standardises all columns."""
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import StandardScaler

    filled = SimpleImputer(strategy="median", add_indicator=True).fit_transform(numbers)
    scaled: npt.NDArray[np.float64] = StandardScaler().fit_transform(filled)
    return scaled


def _one_hot(values: list[str | None]) -> Any:
    """Returns the one-hot encoding (N, K) of a column with K values, in alphabetic order, as a sparse matrix."""
    from sklearn.preprocessing import OneHotEncoder

    column = np.array([["" if value is None else value] for value in values], dtype=object)
    return OneHotEncoder(sparse_output=True).fit_transform(column)


def _tf_idf(table: Table, column: str, values: list[str | None]) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = ["" if value is None else value for value in values]
    for min_df in (2, 1):
        try:
            return TfidfVectorizer(sublinear_tf=True, min_df=min_df, max_features=MAX_WORDS).fit_transform(texts)
        except ValueError:  # No word is left.
            continue
    raise table.error(None, f"column {column!r} has no words", f"drop it with ignore=[{column!r}]")


def _side_by_side(parts: list[Any], *, is_sparse: bool) -> Matrix:
    from scipy.sparse import csr_array, hstack

    rows, width = parts[0].shape[0], sum(part.shape[1] for part in parts)
    if is_sparse or rows * width > _MAX_DENSE:
        return csr_array(hstack([csr_array(part) for part in parts], format="csr"))
    return np.concatenate([part if isinstance(part, np.ndarray) else part.toarray() for part in parts], 1)
