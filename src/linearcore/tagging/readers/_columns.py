"""Reader for column files: one word per line, columns separated by tabs or spaces, a blank line after each sentence."""

from collections.abc import Iterable, Iterator

from linearcore.tagging.readers._blocks import Preamble, blocks
from linearcore.tagging.readers._error import ReaderError
from linearcore.tagging.readers._sentence import Sentence
from linearcore.tagging.readers._tag_columns import LAST, TagColumns

_DOCSTART = "-DOCSTART-"


def columns_file(lines: Iterable[str], name: str, columns: TagColumns | None) -> Iterator[Sentence]:
    """Yields the sentences of a column file. The first column holds the words; there are no comments, because # is a word.

    The first line determines the number of columns and whether tabs or spaces separate them. Lines that start with
    -DOCSTART- are not words; they are kept before the next sentence.

    Args:
        lines: lines of the file.
        name: file name for messages.
        columns: the tag columns; None reads no tags, and then one column is enough.

    Raises:
        ReaderError: if a line has another number of columns or another separator than the first line, a tag column is
            missing, or a word or a tag is empty.

    Example:
        >>> for sentence in columns_file(["A DET", "dog NOUN", "", "Sit VERB"], "dogs.txt", TagColumns.parse("last")):
        ...     print(sentence.line, sentence.words, sentence.tags)
        1 ['A', 'dog'] ['DET', 'NOUN']
        4 ['Sit'] ['VERB']

    Time O(characters), memory O(longest sentence).
    """
    preamble, table = Preamble(name), None
    for first, block in blocks(lines, name):
        rows = list(range(len(block)))
        if any(line.startswith(_DOCSTART) for line in block):
            rows = [row for row in rows if not block[row].startswith(_DOCSTART)]
        if not rows:
            preamble.add(first, block)
            continue
        if table is None:
            table = _Table(name, block[rows[0]], first + rows[0])
            table.require(columns, first + rows[0])
        words, tags = table.read([block[row] for row in rows], columns, [first + row for row in rows])
        first, block, rows = preamble.before(first, block, rows)
        yield Sentence(words, tags, block, rows, first)
    preamble.require_none(table is not None)


class _Table:
    """The number of columns and the separator of one file."""

    def __init__(self, name: str, line: str, number: int) -> None:
        self._name, self._number = name, number
        self._has_tabs = "\t" in line
        self._width = len(self._cells(line))

    def _cells(self, line: str) -> list[str]:
        # Not `split()`, which also splits at no-break spaces inside words.
        return line.split("\t") if self._has_tabs else [cell for cell in line.split(" ") if cell]

    def require(self, columns: TagColumns | None, number: int) -> None:
        """Raises if a tag column is missing or is the column of the words."""
        if columns is None:
            return
        if self._width == 1:
            advice = "separate word and tag by a tab or a space"
            raise ReaderError.at(self._name, number, "one column, but a tag column is required", advice)
        if 0 in columns.indices:
            wrong = f"tag column {columns} was requested, but the first column holds the words"
            raise ReaderError.at(self._name, number, wrong, f"use a column from 2 to {self._width}, or 'last'")
        if max(columns.indices) >= self._width:
            wrong = f"{self._width} columns, but tag column {columns} was requested"
            raise ReaderError.at(self._name, number, wrong, f"use a column from 2 to {self._width}, or 'last'")
        if LAST in columns.indices and self._width - 1 in columns.indices:
            wrong = f"{columns} names the last of the {self._width} columns twice"
            raise ReaderError.at(self._name, number, wrong, "name it once")

    def read(self, lines: list[str], columns: TagColumns | None, numbers: list[int]) -> tuple[list[str], list[str] | None]:
        """Returns the words and tags of a sentence."""
        cells = [self._cells(line) for line in lines]
        if set(map(len, cells)) != {self._width} or (not self._has_tabs and any("\t" in line for line in lines)):
            self._raise_malformed(lines, cells, numbers)
        by_column = list(zip(*cells, strict=True))
        words = list(by_column[0])
        if "" in words:
            raise ReaderError.at(self._name, numbers[words.index("")], "the word is empty", "write it in the first column")
        return words, None if columns is None else columns.read(by_column, self._name, numbers)

    def _raise_malformed(self, lines: list[str], cells: list[list[str]], numbers: list[int]) -> None:
        for line, row, number in zip(lines, cells, numbers, strict=True):
            if not self._has_tabs and "\t" in line:
                wrong = f"a tab, but line {self._number} separates its columns by spaces"
                raise ReaderError.at(self._name, number, wrong, "use one separator in the whole file")
            if len(row) != self._width:
                separator = "tabs" if self._has_tabs else "spaces"
                wrong = f"{len(row)} columns separated by {separator}, but line {self._number} has {self._width}"
                raise ReaderError.at(self._name, number, wrong, "use the same number of columns in every line")
