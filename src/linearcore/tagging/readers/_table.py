"""The number of columns and the separator of a column file, and the checks that depend on them."""

from linearcore.tagging.readers._cells import split_cells
from linearcore.tagging.readers._error import ReaderError
from linearcore.tagging.readers._tag_columns import LAST, TagColumns

#: Number of lines after which a column of ids, or comma-separated values, can be distinguished from words.
_MIN_LINES = 3


class Table:
    """The number of columns and the separator of one file, given by a line that is a word.

    Args:
        name: file name for messages.
        line: the line.
        number: its line number.
    """

    def __init__(self, name: str, line: str, number: int) -> None:
        self._name, self._number = name, number
        self._has_tabs = "\t" in line
        self._width = len(split_cells(line, self._has_tabs))
        # Whether all sentences up to now consist of the numbers 1, 2, 3, …
        self._has_ids = True

    def require(self, columns: TagColumns | None) -> None:
        """Raises if a tag column is missing or is the column of the words."""
        if columns is None:
            return
        if self._width == 1:
            advice = "separate word and tag by a tab or a space"
            raise ReaderError.at(self._name, self._number, "one column, but a tag column is required", advice)
        if 0 in columns.indices:
            wrong = f"tag column {columns} was requested, but the first column holds the words"
            raise ReaderError.at(self._name, self._number, wrong, f"use a column from 2 to {self._width}, or 'last'")
        if max(columns.indices) >= self._width:
            wrong = f"{self._width} columns, but tag column {columns} was requested"
            raise ReaderError.at(self._name, self._number, wrong, f"use a column from 2 to {self._width}, or 'last'")
        if LAST in columns.indices and self._width - 1 in columns.indices:
            wrong = f"{columns} names the last of the {self._width} columns twice"
            raise ReaderError.at(self._name, self._number, wrong, "name it once")

    def is_comment(self, line: str, number: int, comments: bool | None) -> bool:
        """Whether a line that starts with # before the first word of a sentence is a comment.

        Raises:
            ReaderError: if it may be a comment or a word, and `comments` is None.
        """
        if len(split_cells(line, self._has_tabs)) != self._width:
            return True
        if not line.startswith("# "):
            return False
        if comments is None:
            wrong = f"this line starts with # and has {self._width} columns, so it may be a comment or a word"
            raise ReaderError.at(self._name, number, wrong, "pass --comments or --no-comments")
        return comments

    def read(self, lines: list[str], columns: TagColumns | None, numbers: list[int]) -> tuple[list[str], list[str] | None]:
        """Returns the words and tags of a sentence.

        Raises:
            ReaderError: if the lines do not fit the table, or the first column does not hold words.
        """
        cells = [split_cells(line, self._has_tabs) for line in lines]
        if set(map(len, cells)) != {self._width} or (not self._has_tabs and any("\t" in line for line in lines)):
            self._raise_malformed(lines, cells, numbers)
        by_column = list(zip(*cells, strict=True))
        words = list(by_column[0])
        if "" in words:
            raise ReaderError.at(self._name, numbers[words.index("")], "the word is empty", "write it in the first column")
        if self._has_ids:
            self._require_words(words, numbers)
        return words, None if columns is None else columns.read(by_column, self._name, numbers)

    def _require_words(self, words: list[str], numbers: list[int]) -> None:
        """Raises if the first sentences consist of ids or of comma-separated values."""
        self._has_ids = words == [str(number) for number in range(1, len(words) + 1)]
        if len(words) < _MIN_LINES:
            return
        if self._has_ids:
            advice = "remove the column of ids, for example with cut -f2-"
            raise ReaderError.at(
                self._name, numbers[0], "the first column holds the numbers 1, 2, 3, … and no words", advice
            )
        for separator in ",;" if self._width == 1 else "":
            counts = {word.count(separator) for word in words}
            if len(counts) == 1 and counts != {0}:
                wrong = f"every line has the same number of {separator!r} and no tab or space, so this looks like CSV"
                raise ReaderError.at(self._name, numbers[0], wrong, "separate the columns by tabs")

    def _raise_malformed(self, lines: list[str], cells: list[list[str]], numbers: list[int]) -> None:
        for line, row, number in zip(lines, cells, numbers, strict=True):
            if not self._has_tabs and "\t" in line:
                wrong = f"a tab, but line {self._number} separates its columns by spaces"
                raise ReaderError.at(self._name, number, wrong, "use one separator in the whole file")
            if len(row) != self._width:
                separator = "tabs" if self._has_tabs else "spaces"
                wrong = f"{len(row)} columns separated by {separator}, but line {self._number} has {self._width}"
                advice = "use the same number of columns in every line, or name another format, such as --format text"
                raise ReaderError.at(self._name, number, wrong, advice)
