"""Cells of a line: how a line of a column file is split, and how values are put into its columns."""

import re
from collections.abc import Sequence

from linearcore._checks import complaint
from linearcore.tagging.readers._error import quote
from linearcore.tagging.readers._tag_columns import LAST, TagColumns

_CELL, _GAP = re.compile("[^ ]+"), re.compile(" +")


def split_cells(line: str, has_tabs: bool | None = None) -> list[str]:
    """Returns the cells of a line, which are separated by tabs or, if the table has no tabs, by spaces.

    Args:
        line: the line.
        has_tabs: whether tabs separate the cells; None decides it by this line.

    Example:
        >>> split_cells("New York\\tB-LOC"), split_cells("New  York B-LOC")
        (['New York', 'B-LOC'], ['New', 'York', 'B-LOC'])
    """
    if "\t" in line if has_tabs is None else has_tabs:
        return line.split("\t")
    # Not `split()`, which also splits at no-break spaces inside words.
    return [cell for cell in line.split(" ") if cell]


def replace_cells(line: str, values: Sequence[str], columns: TagColumns) -> str:
    """Returns the line with `values` in the cells of `columns`; the spaces between cells are unchanged.

    Raises:
        ValueError: if a value does not fit into a cell, or the line has too few columns.

    Example:
        >>> replace_cells("EU   NNP  ?", ["B-ORG"], TagColumns.parse("last"))
        'EU   NNP  B-ORG'
    """
    has_spaces = "\t" not in line and _GAP.search(line.strip(" ")) is not None
    if has_spaces:
        cells, gaps = _CELL.findall(line), _CELL.split(line)
    else:  # Also for a line with one word: a tab separator allows tags with spaces.
        cells = line.split("\t")
        gaps = ["", *["\t"] * (len(cells) - 1), ""]
    last = max(len(cells) - 1, 1)
    indices = [last if index == LAST else index for index in columns.indices]
    for index, value in sorted(zip(indices, values, strict=True)):
        check_cell("tags", value, " \t\r\n" if has_spaces else "\t\r\n")
        if index > len(cells):
            must = f"be among the file's {len(cells)} columns, or the next one"
            raise ValueError(complaint("columns", must, index + 1, "pass the column for the tag"))
        if index == len(cells):
            cells.append(value)
            gaps.insert(-1, " " if has_spaces else "\t")
        else:
            cells[index] = value
    return "".join(gap + cell for gap, cell in zip(gaps, [*cells, ""], strict=True))


def check_cell(argument: str, value: str, separators: str = "\t\r\n") -> str:
    """Returns `value`; raises if it is empty or contains a separator, so that it does not fit into a cell."""
    if not value or any(separator in value for separator in separators):
        must = "be non-empty and contain no separator of cells or lines"
        advice = {
            "tags": "rename the tag, or use a file with tab-separated columns",
            "words": "correct the word, or write JSON lines (--output-format jsonl)",
        }
        raise ValueError(complaint(argument, must, quote(value), advice[argument]))
    return value
