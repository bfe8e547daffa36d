"""A sentence, and the lines of the file that it came from."""

import re
from dataclasses import dataclass

from linearcore._checks import complaint
from linearcore.tagging.readers._error import quote
from linearcore.tagging.readers._tag_columns import LAST, TagColumns

_CELL, _GAP = re.compile("[^ ]+"), re.compile(" +")


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words, their tags, and what is needed to write them back where they came from.

    Attributes:
        words: the forms; never none.
        tags: as many tags, or None if they were not asked for.
        lines: all lines of the sentence without their ends: comments, CoNLL-U's ranges and empty nodes, and whatever
            stood since the sentence before, such as -DOCSTART-, are among them. Of the Penn Treebank and the Brown
            corpus, where a word has no line of its own, they are `word<TAB>tag`.
        rows: where in `lines` each word stands.
        line: number of the first of these lines in the file, counted from 1.
        is_conllu: whether the lines have CoNLL-U's ten columns.

    Example:
        >>> sentence = Sentence(["Cats", "sleep"], None, ["# a comment", "Cats\\tNN", "sleep\\t?"], [1, 2], line=1)
        >>> sentence.tagged_lines(["NNS", "VBP"], TagColumns.parse("last"))
        ['# a comment', 'Cats\\tNNS', 'sleep\\tVBP']
    """

    words: list[str]
    tags: list[str] | None
    lines: list[str]
    rows: list[int]
    line: int
    is_conllu: bool = False

    @classmethod
    def of_pairs(cls, words: list[str], tags: list[str], with_tags: bool, line: int) -> "Sentence":
        """A sentence of a corpus whose words have no lines of their own; its lines are `word<TAB>tag`."""
        lines = [f"{word}\t{tag}" for word, tag in zip(words, tags, strict=True)]
        return cls(words, tags if with_tags else None, lines, list(range(len(words))), line)

    def tagged_lines(self, tags: list[str], columns: TagColumns) -> list[str]:
        """The lines with these tags in the tag columns and everything else as it was.

        A column one beyond the last is added. In a file of bare words "last" is such a column: the words are never replaced.

        Args:
            tags: one a word.
            columns: where they go.

        Raises:
            ValueError: if there are not as many tags as words, a tag does not fit into a cell or into the columns, or
                the file has too few columns.

        Time and memory O(characters).
        """
        if len(tags) != len(self.words):
            advice = "give one tag a word"
            raise ValueError(complaint("tags", f"be as many as the {len(self.words)} words", len(tags), advice))
        lines = list(self.lines)
        for row, tag in zip(self.rows, tags, strict=True):
            lines[row] = _replaced(lines[row], columns.split(tag), columns)
        return lines


def _replaced(line: str, values: list[str], columns: TagColumns) -> str:
    """The line with `values` in the cells of `columns`. The spaces between the other cells stay as many as they are."""
    has_spaces = "\t" not in line and _GAP.search(line.strip(" ")) is not None
    if has_spaces:
        cells, gaps = _CELL.findall(line), _CELL.split(line)
    else:  # A bare word too: it has no separator yet, and a tab keeps tags with spaces whole.
        cells = line.split("\t")
        gaps = ["", *["\t"] * (len(cells) - 1), ""]
    last = max(len(cells) - 1, 1)
    places = [last if index == LAST else index for index in columns.indices]
    for place, value in sorted(zip(places, values, strict=True)):
        _check_cell(value, " \t\r\n" if has_spaces else "\t\r\n")
        if place > len(cells):
            must = f"be among the file's {len(cells)} columns, or the next one"
            raise ValueError(complaint("columns", must, place + 1, "pass the column that is to hold the tag"))
        if place == len(cells):
            cells.append(value)
            gaps.insert(-1, " " if has_spaces else "\t")
        else:
            cells[place] = value
    return "".join(gap + cell for gap, cell in zip(gaps, [*cells, ""], strict=True))


def _check_cell(value: str, separators: str) -> None:
    if not value or any(separator in value for separator in separators):
        must = "be non-empty and free of what separates cells and lines"
        advice = "rename the tag, or write to a file whose columns are separated by tabs"
        raise ValueError(complaint("tags", must, quote(value), advice))
