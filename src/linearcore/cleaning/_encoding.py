"""Turns the text of a table into numbers: one feature for a column of numbers, one for each value of a column of words."""

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches

import torch
from torch import Tensor

from linearcore.cleaning._table import Table, TableError

#: A column with more different words than this is a name or a text, unless the user says that it is a category.
MOST_CATEGORIES = 50
#: What programs write where a number is missing.
_MISSING = {"?", "-", "na", "n/a", "nan", "null", "none", "missing"}
#: 5,1 where 5.1 is meant.
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


@dataclass(frozen=True, eq=False)
class Encoded:
    """A table as numbers.

    Attributes:
        label: the column with the labels.
        features: (N, D) float64.
        labels: (N,) int64, places in `classes`.
        classes: the different labels, in the order of numbers if all are numbers and else of the alphabet.
        numbers: columns that became one feature.
        categories: columns that became one feature for each of their values.
    """

    label: str
    features: Tensor
    labels: Tensor
    classes: tuple[str, ...]
    numbers: tuple[str, ...]
    categories: tuple[str, ...]


def encode(table: Table, label: str, *, ignore: Collection[str] = (), categorical: Collection[str] = ()) -> Encoded:
    """Takes labels from one column and features from the others.

    Args:
        table: what was read.
        label: the column with the labels.
        ignore: columns to leave out, such as names and numbers of rows.
        categorical: columns whose values are categories even if they look like numbers, or are very many.

    Raises:
        TableError: if a column is not there, a value is missing, a column mixes numbers and words, or has decimal commas, or
            more than `MOST_CATEGORIES` different words, no feature is left, or the labels are no classes.
    """
    for column in (label, *ignore, *categorical):
        _refuse_unknown(table, column)
    labels, classes = _labels(table, label)
    parts: list[Tensor] = []
    numbers, categories = [], []
    for column in table.columns:
        if column == label or column in ignore:
            continue
        fields = table.column(column)
        _refuse_empty(table, column, fields)
        values = None if column in categorical else _numbers(table, column, fields)
        if values is None:
            parts.append(_one_hot(table, column, fields, limited=column not in categorical))
            categories.append(column)
        else:
            parts.append(torch.tensor(values, dtype=torch.float64).unsqueeze(1))
            numbers.append(column)
    if not parts:
        raise TableError.at(table.name, None, "no column is left to learn from", "ignore fewer")
    return Encoded(label, torch.cat(parts, 1), labels, classes, tuple(numbers), tuple(categories))


def _refuse_unknown(table: Table, column: str) -> None:
    if column in table.columns:
        return
    # The label is often the last.
    some = table.columns if len(table.columns) <= 10 else (*table.columns[:5], "…", *table.columns[-5:])
    shown = ", ".join(some)
    folded = {name.casefold(): name for name in table.columns}
    close = get_close_matches(column.strip().casefold(), folded, 1)
    meant = f"; did you mean {folded[close[0]]!r}?" if close else ""
    raise TableError.at(table.name, None, f"there is no column {column!r}", f"there are {shown}{meant}")


def _labels(table: Table, label: str) -> tuple[Tensor, tuple[str, ...]]:
    fields = table.column(label)
    _refuse_empty(table, label, fields)
    found = set(fields)
    classes = tuple(sorted(found, key=lambda word: (_number(word) or 0.0, word)) if _all_numbers(found) else sorted(found))
    if len(classes) == 1:
        wrong = f"all labels in column {label!r} are {classes[0]!r}"
        raise TableError.at(table.name, None, wrong, "at least two classes are needed to tell them apart")
    if len(fields) < 2 * len(classes):
        wrong = f"column {label!r} has {len(classes):,} different labels in {len(fields):,} rows"
        advice = "pass more rows, or the column with classes and not a measurement or a name"
        raise TableError.at(table.name, None, wrong, advice)
    place = {name: number for number, name in enumerate(classes)}
    return torch.tensor([place[field] for field in fields]), classes


def _refuse_empty(table: Table, column: str, fields: list[str]) -> None:
    for field, line in zip(fields, table.lines, strict=True):
        if not field:
            raise TableError.at(table.name, line, f"column {column!r} is empty", "fill it in, or take the row out")


def _numbers(table: Table, column: str, fields: list[str]) -> list[float] | None:
    """The numbers of a column; None for a column of words. A mixture is refused, at the first field that is no number."""
    values = [_number(field) for field in fields]
    _refuse_decimal_commas(table, column, fields, values)
    if all(value is None for value in values):
        return None
    for value, field, line in zip(values, fields, table.lines, strict=True):
        if value is not None and math.isfinite(value):
            continue
        if field.lower() in _MISSING or value is not None:
            wrong, advice = (
                f"column {column!r} has {field!r} and no number",
                "fill one in, or take the row or the column out",
            )
        else:
            wrong = f"column {column!r} has numbers, and here {field!r}"
            advice = f"write a number, or pass --categorical {column!r} if these are categories"
        raise TableError.at(table.name, line, wrong, advice)
    return [value for value in values if value is not None]


def _refuse_decimal_commas(table: Table, column: str, fields: list[str], values: list[float | None]) -> None:
    """Raises at the first decimal comma of a column that would be one of numbers without it; words are left alone."""
    commas = [bool(_DECIMAL_COMMA.fullmatch(field)) for field in fields]
    rest = zip(commas, values, fields, strict=True)
    if any(commas) and all(comma or value is not None or field.lower() in _MISSING for comma, value, field in rest):
        first = commas.index(True)
        wrong = f"column {column!r} has {fields[first]!r}, a number with a decimal comma"
        advice = f"write {fields[first].replace(',', '.')}, or name the column in --categorical"
        raise TableError.at(table.name, table.lines[first], wrong, advice)


def _one_hot(table: Table, column: str, fields: list[str], *, limited: bool) -> Tensor:
    """(N, K): 1 where a row has the value, for each of the K values in alphabetic order."""
    place = {word: number for number, word in enumerate(sorted(set(fields)))}
    if limited and len(place) > MOST_CATEGORIES:
        wrong = f"column {column!r} has {len(place):,} different words, too many for a category"
        advice = f"leave it out with --ignore {column!r}, or pass --categorical {column!r} to have a feature for each"
        raise TableError.at(table.name, None, wrong, advice)
    columns = torch.tensor([place[field] for field in fields])
    return torch.nn.functional.one_hot(columns, len(place)).double()


def _all_numbers(words: Collection[str]) -> bool:
    return all(_number(word) is not None for word in words)


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
