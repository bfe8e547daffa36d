"""Ranks the labels of a table, or of features, by suspicion."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from linearcore._checks import complaint, one_of
from linearcore.cleaning._findings import ADDED_COLUMNS, Findings
from linearcore.cleaning._folds import normalised
from linearcore.cleaning._inputs import check_features, shared_index
from linearcore.cleaning._losses import RowLoss
from linearcore.cleaning._model_scores import model_scores
from linearcore.cleaning._models import NetworkSettings
from linearcore.cleaning._suspects import MEASURES, suspects
from linearcore.runtime import Progress
from linearcore.tables import (
    ArrayTable,
    ColumnKinds,
    EncodedTable,
    FrameTable,
    Table,
    as_matrix,
    as_values,
    encode,
    encode_labels,
    is_frame,
    is_series,
    is_sparse,
    label_values,
    repeats,
)


def find_wrong_labels(
    data: Any,
    label: Any,
    *,
    model: str = "auto",
    measure: str = "margin",
    loss: str | RowLoss | None = None,
    folds: int = 5,
    epochs: int | None = None,
    learning_rate: float | None = None,
    seed: int = 0,
    ignore: Collection[str] = (),
    categorical: Collection[str] = (),
    text: Collection[str] = (),
    progress: Progress | None = None,
) -> Findings:
    """Ranks rows by how strongly a cross-validated model disagrees with their label.

    Args:
        data: a DataFrame, a table from `read_table`, or features (N, D) as an array, sparse matrix or tensor.
        label: name of the label column, or the labels (N,), of any kind. A Series must have the index of the DataFrame.
        model: "auto" or a key of `MODELS`; see `model_scores`.
        measure: "margin" or "log_odds", as in `suspects`.
        loss, epochs, learning_rate: options of the network, as in `out_of_fold_scores`.
        folds, seed, progress: as in `model_scores`. Rows with the same features are in the same fold, unless more than half
            of the rows repeat an earlier one.
        ignore: names of columns to drop.
        categorical: columns to treat as categorical, even if they contain numbers.
        text: columns to treat as text.

    Returns:
        `Findings`: `most_suspicious`, `estimate` and `by_class` to read, `to_frame`, `write` and `write_page` to save.

    Raises:
        MissingExtraError: if scikit-learn is not installed.
        TableError: if the table cannot be used; the message names the row where there is one.
        TypeError: if `data` is not a DataFrame, table, array, sparse matrix or tensor.
        ValueError: if an option is out of range.

    Example:
        >>> rows = [[float(row)] for row in range(90)]
        >>> labels = ["child" if row < 40 else "adult" for row in range(90)]
        >>> labels[5] = "adult"
        >>> find_wrong_labels(rows, labels).most_suspicious(1)
        [Suspect(rank=1, row=5, given_label='adult', suggested_label='child', suspicion=...)]

    Cost: that of `model_scores`.
    """
    one_of("measure", measure, MEASURES)
    given = {"loss": loss, "epochs": epochs, "learning_rate": learning_rate}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    kinds = ColumnKinds(*((names,) if isinstance(names, str) else tuple(names) for names in (ignore, categorical, text)))
    table, encoded = _encoded(data, label, kinds)
    copies = repeats(table, kinds.kept(table, encoded.label)) if table.columns else repeats(encoded.features)
    # In a table with only a few categorical columns most rows are repeats. Folds then ignore repeats; otherwise all rows
    # with the same categories would be held out together.
    is_raw = isinstance(table, ArrayTable) and not is_sparse(encoded.features)
    scores = model_scores(
        # The columns of a table are scaled already, and the other models do not depend on it.
        normalised(encoded.features) if model == "linear" and is_raw else encoded.features,
        encoded.labels,
        num_classes=len(encoded.classes),
        model=model,
        network=NetworkSettings(**options) if options else None,
        folds=folds,
        seed=seed,
        groups=copies.group if 0 < copies.num_extra <= len(table) / 2 else None,
        progress=progress,
    )
    ranking = suspects(scores.scores, encoded.labels, measure=measure, probabilities=False)
    return Findings(table, encoded, scores, replace(ranking, classes=encoded.classes), copies)


def _encoded(data: Any, label: Any, kinds: ColumnKinds) -> tuple[Table, EncodedTable]:
    """Returns the table of any input, and its features and labels."""
    if isinstance(data, str | Path):
        raise TypeError(complaint("data", "be a table, a DataFrame or features", repr(str(data)), "pass read_table(path)"))
    if is_frame(data) or isinstance(data, Table):
        if isinstance(label, str) or (is_frame(data) and _is_column(data, label)):
            table = FrameTable(data) if is_frame(data) else data
            name = str(label)
        elif isinstance(data, Table):
            raise TypeError(
                complaint("label", "be the name of a column", type(label).__name__, "add the labels to the table")
            )
        else:
            table = FrameTable(data, _as_series(label, data), ignore=kinds.ignore)
            name = table.label_column
        _check_no_added_columns(table)
        return table, encode(table, name, kinds)
    if kinds != ColumnKinds():
        advice = "pass a DataFrame for named columns"
        raise ValueError(complaint("ignore", "be empty, like `categorical` and `text`, for an array", "columns", advice))
    if isinstance(label, str):
        advice = "pass one label per row, or a DataFrame with a column of this name"
        raise TypeError(complaint("label", "be labels, because `data` has no column names", repr(label), advice))
    matrix = as_matrix("data", data)
    check_features("data", matrix)
    names = label_values(label)
    if len(names) != matrix.shape[0]:
        advice = "pass one label per row of `data`"
        raise ValueError(complaint("label", f"be {matrix.shape[0]} labels", len(names), advice))
    table = ArrayTable(len(names), shared_index(data, label, "data", "label"))
    labels, classes = encode_labels(table, names, "`label`")
    return table, EncodedTable("label", matrix, labels, classes)


def _is_column(frame: Any, label: Any) -> bool:
    try:
        return not is_series(label) and label in frame.columns
    except (TypeError, ValueError):  # Arrays and lists have no hash.
        return False


def _as_series(labels: Any, frame: Any) -> Any:
    """Returns labels as a Series with the index of the features; a Series must have it already."""
    import pandas as pd

    if is_frame(labels) and labels.shape[1] == 1:
        return labels.iloc[:, 0]
    if is_series(labels):
        return labels
    must = f"be {len(frame)} labels, or the name of a column"
    if is_frame(labels):
        raise ValueError(complaint("label", must, f"a DataFrame with {labels.shape[1]} columns", "pass one of its columns"))
    values = as_values("label", labels)
    if values.shape != (len(frame),):
        raise ValueError(complaint("label", must, f"shape {values.shape}", "pass one label per row"))
    return pd.Series(values, index=frame.index)


def _check_no_added_columns(table: Table) -> None:
    """Raises if the table already has an output column.

    A column of suggested labels, used as a feature, would reveal the label.
    """
    existing = [name for name in ADDED_COLUMNS if name in table.columns]
    if existing:
        wrong = f"the table already has the output column {existing[0]!r}"
        raise table.error(None, wrong, "pass the original file, or rename the column")
