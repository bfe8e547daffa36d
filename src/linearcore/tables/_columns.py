"""What the columns of a table are: numbers, categories or text."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
import numpy.typing as npt

from linearcore.tables._table import Table, Values

#: Columns with more distinct values are text if they are sentences; otherwise the user has to decide.
MAX_CATEGORIES = 50
#: Values with at least so many words on average are sentences.
_SENTENCE = 3.0
#: Larger numbers have squares that are not finite, and could not be scaled.
_LARGEST = 1e150
#: Common placeholders for a missing number.
_MISSING = {"?", "-", "na", "n/a", "nan", "null", "none", "missing"}
#: Numbers such as 5,1 for 5.1.
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


@dataclass(frozen=True)
class ColumnKinds:
    """The user's choice of what columns are.

    Attributes:
        ignore: columns to drop, such as names and row numbers.
        categorical: columns to treat as categories, even if they contain numbers or more than `MAX_CATEGORIES` distinct
            values.
        text: columns to treat as text.
    """

    ignore: Collection[str] = ()
    categorical: Collection[str] = ()
    text: Collection[str] = ()

    def check(self, table: Table, label: str) -> None:
        """Raises unless all columns exist and each has one kind."""
        for column in (label, *self.ignore, *self.categorical, *self.text):
            _check_exists(table, column)
        for column in self.text:
            if column in self.categorical:
                raise table.error(None, f"column {column!r} is both categorical and text", "name it once")
        for column in (*self.ignore, *self.categorical, *self.text):
            if column == label:
                raise table.error(None, f"column {column!r} is the label", "name another column")

    def kept(self, table: Table, label: str) -> list[str]:
        """Returns the columns that are features."""
        return [column for column in table.columns if column != label and column not in self.ignore]


def column_of(table: Table, column: str, kinds: ColumnKinds) -> tuple[str, Values]:
    """Returns the kind of a column, "number", "category" or "text", and its values.

    Raises:
        TableError: if the column is empty, mixes numbers and words, has decimal commas, infinite or huge numbers, or
            strings that are not sentences and have more than `MAX_CATEGORIES` distinct values.
    """
    values = table.values(column)
    if all(map(_is_missing, values)) if isinstance(values, list) else np.isnan(values).all():
        raise table.error(None, f"column {column!r} is empty", f"drop it with ignore=[{column!r}]")
    is_chosen = column in kinds.text or column in kinds.categorical
    if is_chosen or table.is_categorical(column):
        words = values if isinstance(values, list) else _number_words(values)
        kind = "text" if column in kinds.text else "category"
        return (kind if is_chosen else _kind_of_words(table, column, words)), words
    numbers = _numbers(table, column, values) if isinstance(values, list) else values
    if numbers is None:
        assert isinstance(values, list)
        return _kind_of_words(table, column, values), values
    is_too_large = np.abs(numbers) > _LARGEST
    if is_too_large.any():
        row = int(is_too_large.argmax())
        wrong = f"column {column!r} has {numbers[row]} instead of a finite number below {_LARGEST:g}"
        raise table.error(row, wrong, "write a number, or leave the field empty")
    return "number", numbers


def _number_words(numbers: npt.NDArray[np.float64]) -> list[str | None]:
    """Returns numbers as words, different ones for different numbers."""
    return [None if number != number else np.format_float_positional(number, trim="-") for number in numbers.tolist()]


def _numbers(table: Table, column: str, fields: list[str | None]) -> npt.NDArray[np.float64] | None:
    """Returns the numbers of a column, or None for a column of words; raises at the first word in a numeric column."""
    is_missing = [_is_missing(field) for field in fields]
    values = [None if gone else _number(str(field)) for field, gone in zip(fields, is_missing, strict=True)]
    _check_no_decimal_commas(table, column, fields, is_missing, values)
    if all(value is None for value in values):
        return None
    for row, (value, gone) in enumerate(zip(values, is_missing, strict=True)):
        if value is None and not gone:
            wrong = f"column {column!r} has numbers, but here {fields[row]!r}"
            advice = f"write a number, or pass categorical=[{column!r}] if these are categories"
            raise table.error(row, wrong, advice)
    return np.array([np.nan if value is None else value for value in values])


def _check_no_decimal_commas(
    table: Table, column: str, fields: list[str | None], is_missing: list[bool], values: list[float | None]
) -> None:
    """Raises at the first decimal comma if all other fields of the column are numbers or missing."""
    if all(value is not None or gone for value, gone in zip(values, is_missing, strict=True)):
        return
    has_comma = [bool(_DECIMAL_COMMA.fullmatch(field or "")) for field in fields]
    rows = zip(has_comma, values, is_missing, strict=True)
    if any(has_comma) and all(comma or value is not None or gone for comma, value, gone in rows):
        first = has_comma.index(True)
        field = str(fields[first])
        wrong = f"column {column!r} has {field!r}, a number with a decimal comma"
        advice = f"write {field.replace(',', '.')}, or pass categorical=[{column!r}]"
        raise table.error(first, wrong, advice)


def _kind_of_words(table: Table, column: str, fields: list[str | None]) -> str:
    words = [field for field in fields if field is not None]
    distinct = len(set(words))
    is_sentences = sum(len(field.split()) for field in words) >= _SENTENCE * len(words)
    if is_sentences and distinct > min(MAX_CATEGORIES, len(words) / 2):
        return "text"
    if distinct > MAX_CATEGORIES:
        wrong = f"column {column!r} has {distinct:,} distinct values, too many for a category"
        advice = f"drop it with ignore=[{column!r}], or pass categorical=[{column!r}] or text=[{column!r}]"
        raise table.error(None, wrong, advice)
    return "category"


def _check_exists(table: Table, column: str) -> None:
    if column in table.columns:
        return
    # Shows the last columns too, since the label is often the last one.
    names = table.columns if len(table.columns) <= 10 else (*table.columns[:5], "…", *table.columns[-5:])
    by_lowercase = {name.casefold(): name for name in table.columns}
    matches = get_close_matches(str(column).strip().casefold(), by_lowercase, 1)
    hint = f"; did you mean {by_lowercase[matches[0]]!r}?" if matches else ""
    raise table.error(None, f"there is no column {column!r}", f"there are {', '.join(names)}{hint}")


def _is_missing(field: str | None) -> bool:
    return field is None or field.lower() in _MISSING


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
