"""Column files: a word a line, its columns separated by tabs or else by spaces, a blank line after each sentence."""

from collections.abc import Iterable, Iterator

from linearcore.tagging.readers._blocks import Preamble, blocks
from linearcore.tagging.readers._error import ReaderError
from linearcore.tagging.readers._sentence import Sentence
from linearcore.tagging.readers._tag_columns import LAST, TagColumns

_DOCSTART = "-DOCSTART-"


def columns_file(lines: Iterable[str], name: str, columns: TagColumns | None) -> Iterator[Sentence]:
    """The sentences of a column file. The word is in the first column; there are no comments, since # is a word.

    The first line tells how many columns there are and whether tabs separate them. Lines that begin with -DOCSTART- are
    no words; they stay before the next sentence.

    Args:
        lines: of the file.
        name: the file, for messages.
        columns: of the tag; None for none, and then one column is enough.

    Raises:
        ReaderError: if a line has another number of columns than the first or separates them otherwise, the tag's column
            is not there, or a word or a tag is empty.

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
    """How the lines of one file are divided into cells."""

    def __init__(self, name: str, line: str, number: int) -> None:
        self._name, self._number = name, number
        self._has_tabs = "\t" in line
        self._width = len(self._cells(line))

    def _cells(self, line: str) -> list[str]:
        # Not `split()`, which would also part words at the no-break spaces in them.
        return line.split("\t") if self._has_tabs else [cell for cell in line.split(" ") if cell]

    def require(self, columns: TagColumns | None, number: int) -> None:
        """Raises unless the tag's columns are there, and are not the words."""
        if columns is None:
            return
        if self._width == 1:
            advice = "separate word and tag by a tab or a space"
            raise ReaderError.at(self._name, number, "one column, where a tag is to stand beside each word", advice)
        if 0 in columns.indices:
            wrong = f"the tag is asked for in {columns}, and the first column holds the words"
            raise ReaderError.at(self._name, number, wrong, f"name one from 2 to {self._width}, or 'last'")
        if max(columns.indices) >= self._width:
            wrong = f"{self._width} columns, and the tag is asked for in {columns}"
            raise ReaderError.at(self._name, number, wrong, f"name one from 2 to {self._width}, or 'last'")
        if LAST in columns.indices and self._width - 1 in columns.indices:
            wrong = f"{columns} names the last of the {self._width} columns twice"
            raise ReaderError.at(self._name, number, wrong, "leave one out")

    def read(self, lines: list[str], columns: TagColumns | None, numbers: list[int]) -> tuple[list[str], list[str] | None]:
        """Words and tags of a sentence."""
        cells = [self._cells(line) for line in lines]
        if set(map(len, cells)) != {self._width} or (not self._has_tabs and any("\t" in line for line in lines)):
            self._refuse(lines, cells, numbers)
        by_column = list(zip(*cells, strict=True))
        words = list(by_column[0])
        if "" in words:
            raise ReaderError.at(self._name, numbers[words.index("")], "the word is empty", "write it in the first column")
        return words, None if columns is None else columns.read(by_column, self._name, numbers)

    def _refuse(self, lines: list[str], cells: list[list[str]], numbers: list[int]) -> None:
        for line, found, number in zip(lines, cells, numbers, strict=True):
            if not self._has_tabs and "\t" in line:
                wrong = f"a tab, where line {self._number} separates its columns by spaces"
                raise ReaderError.at(self._name, number, wrong, "use one separator in the whole file")
            if len(found) != self._width:
                separator = "tabs" if self._has_tabs else "spaces"
                wrong = f"{len(found)} columns separated by {separator}, where line {self._number} has {self._width}"
                raise ReaderError.at(self._name, number, wrong, "give every line as many")
