"""Encodes a table as numbers: one feature per numeric column, and one-hot features for text columns."""

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches

import torch
from torch import Tensor

from linearcore.cleaning._table import Table, TableError

#: Text columns with more distinct values are probably names or free text; they raise unless listed in `categorical`.
MAX_CATEGORIES = 50
#: Common placeholders for a missing number.
_MISSING = {"?", "-", "na", "n/a", "nan", "null", "none", "missing"}
#: Numbers such as 5,1 for 5.1.
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


@dataclass(frozen=True, eq=False)
class EncodedTable:
    """A table encoded as numbers.

    Attributes:
        label: name of the label column.
        features: (N, D) float64.
        labels: (N,) int64, indices into `classes`.
        classes: distinct labels, in numeric order if all are numbers, and in alphabetic order otherwise.
        numbers: names of the numeric columns, one feature each.
        categories: names of the categorical columns, one feature per value.
    """

    label: str
    features: Tensor
    labels: Tensor
    classes: tuple[str, ...]
    numbers: tuple[str, ...]
    categories: tuple[str, ...]


def encode(table: Table, label: str, *, ignore: Collection[str] = (), categorical: Collection[str] = ()) -> EncodedTable:
    """Encodes one column as labels and all other columns as features.

    Args:
        table: the input table.
        label: name of the label column.
        ignore: columns to drop, such as names and row numbers.
        categorical: columns to treat as categorical, even if they contain numbers or more than `MAX_CATEGORIES` values.

    Raises:
        TableError: if a column does not exist; if a value is missing; if a column mixes numbers and text, has decimal commas
            or more than `MAX_CATEGORIES` text values; if no feature is left; or if the labels are not classes.
    """
    for column in (label, *ignore, *categorical):
        _check_exists(table, column)
    labels, classes = _labels(table, label)
    parts: list[Tensor] = []
    numbers, categories = [], []
    for column in table.columns:
        if column == label or column in ignore:
            continue
        fields = table.column(column)
        _check_not_empty(table, column, fields)
        values = None if column in categorical else _numbers(table, column, fields)
        if values is None:
            parts.append(_one_hot(table, column, fields, is_limited=column not in categorical))
            categories.append(column)
        else:
            parts.append(torch.tensor(values, dtype=torch.float64).unsqueeze(1))
            numbers.append(column)
    if not parts:
        raise TableError.at(table.name, None, "no column is left to learn from", "ignore fewer")
    return EncodedTable(label, torch.cat(parts, 1), labels, classes, tuple(numbers), tuple(categories))


def _check_exists(table: Table, column: str) -> None:
    if column in table.columns:
        return
    # Shows the last columns too, since the label is often the last one.
    names = table.columns if len(table.columns) <= 10 else (*table.columns[:5], "…", *table.columns[-5:])
    by_lowercase = {name.casefold(): name for name in table.columns}
    matches = get_close_matches(column.strip().casefold(), by_lowercase, 1)
    hint = f"; did you mean {by_lowercase[matches[0]]!r}?" if matches else ""
    raise TableError.at(table.name, None, f"there is no column {column!r}", f"there are {', '.join(names)}{hint}")


def _labels(table: Table, label: str) -> tuple[Tensor, tuple[str, ...]]:
    fields = table.column(label)
    _check_not_empty(table, label, fields)
    names = set(fields)
    classes = tuple(sorted(names, key=lambda name: (_number(name) or 0.0, name)) if _all_numbers(names) else sorted(names))
    if len(classes) == 1:
        wrong = f"all labels in column {label!r} are {classes[0]!r}"
        raise TableError.at(table.name, None, wrong, "pass a column with at least two classes")
    if len(fields) < 2 * len(classes):
        wrong = f"column {label!r} has {len(classes):,} different labels in {len(fields):,} rows"
        advice = "pass more rows, or a column that contains classes, not measurements or names"
        raise TableError.at(table.name, None, wrong, advice)
    class_index = {name: index for index, name in enumerate(classes)}
    return torch.tensor([class_index[field] for field in fields]), classes


def _check_not_empty(table: Table, column: str, fields: list[str]) -> None:
    for field, line in zip(fields, table.lines, strict=True):
        if not field:
            raise TableError.at(table.name, line, f"column {column!r} is empty", "fill it in, or remove the row")


def _numbers(table: Table, column: str, fields: list[str]) -> list[float] | None:
    """Returns the numbers of a column, or None for a text column; raises at the first text in a numeric column."""
    values = [_number(field) for field in fields]
    _check_no_decimal_commas(table, column, fields, values)
    if all(value is None for value in values):
        return None
    for value, field, line in zip(values, fields, table.lines, strict=True):
        if value is not None and math.isfinite(value):
            continue
        if field.lower() in _MISSING or value is not None:
            wrong = f"column {column!r} has {field!r} instead of a number"
            advice = "fill in a number, or remove the row or the column"
        else:
            wrong = f"column {column!r} has numbers, but here {field!r}"
            advice = f"write a number, or pass --categorical {column!r} if these are categories"
        raise TableError.at(table.name, line, wrong, advice)
    return [value for value in values if value is not None]


def _check_no_decimal_commas(table: Table, column: str, fields: list[str], values: list[float | None]) -> None:
    """Raises at the first decimal comma if all other fields of the column are numbers or missing."""
    has_comma = [bool(_DECIMAL_COMMA.fullmatch(field)) for field in fields]
    rows = zip(has_comma, values, fields, strict=True)
    if any(has_comma) and all(comma or value is not None or field.lower() in _MISSING for comma, value, field in rows):
        first = has_comma.index(True)
        wrong = f"column {column!r} has {fields[first]!r}, a number with a decimal comma"
        advice = f"write {fields[first].replace(',', '.')}, or name the column in --categorical"
        raise TableError.at(table.name, table.lines[first], wrong, advice)


def _one_hot(table: Table, column: str, fields: list[str], *, is_limited: bool) -> Tensor:
    """Returns the one-hot encoding (N, K) of a column with K values, in alphabetic order."""
    value_index = {value: index for index, value in enumerate(sorted(set(fields)))}
    if is_limited and len(value_index) > MAX_CATEGORIES:
        wrong = f"column {column!r} has {len(value_index):,} different words, too many for a category"
        advice = f"drop it with --ignore {column!r}, or pass --categorical {column!r} to get one feature per word"
        raise TableError.at(table.name, None, wrong, advice)
    indices = torch.tensor([value_index[field] for field in fields])
    return torch.nn.functional.one_hot(indices, len(value_index)).double()


def _all_numbers(words: Collection[str]) -> bool:
    return all(_number(word) is not None for word in words)


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
