"""A sentence and its lines in the file."""

import re
from dataclasses import dataclass

from linearcore._checks import complaint
from linearcore.tagging.readers._error import quote
from linearcore.tagging.readers._tag_columns import LAST, TagColumns

_CELL, _GAP = re.compile("[^ ]+"), re.compile(" +")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with its words, tags, and the lines that are needed to write it with other tags.

    Attributes:
        words: the words, at least one.
        tags: one tag per word, or None if tags were not requested.
        lines: all lines of the sentence without line ends, including comments, CoNLL-U ranges and empty nodes, and lines
            before the sentence such as -DOCSTART-. For the Penn Treebank and the Brown corpus, which do not have one line
            per word, they are `word<TAB>tag`.
        rows: index in `lines` of each word.
        line: line number, from 1, of the first of these lines in the file.
        is_conllu: whether the lines have the ten columns of CoNLL-U.

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
        """Returns a sentence of a corpus that does not have one line per word; its lines are `word<TAB>tag`."""
        lines = [f"{word}\t{tag}" for word, tag in zip(words, tags, strict=True)]
        return cls(words, tags if with_tags else None, lines, list(range(len(words))), line)

    def tagged_lines(self, tags: list[str], columns: TagColumns) -> list[str]:
        """Returns the lines with these tags in the tag columns; all other columns are unchanged.

        A column directly after the last one is added. In a file with words only, "last" is such a column, so words are never
        replaced.

        Args:
            tags: one tag per word.
            columns: the columns for the tags.

        Raises:
            ValueError: if the numbers of tags and words differ, a tag does not fit into a cell or into the columns, or
                the file has too few columns.

        Time and memory O(characters).
        """
        if len(tags) != len(self.words):
            advice = "pass one tag per word"
            raise ValueError(complaint("tags", f"be as many as the {len(self.words)} words", len(tags), advice))
        lines = list(self.lines)
        for row, tag in zip(self.rows, tags, strict=True):
            lines[row] = _replace_cells(lines[row], columns.split(tag), columns)
        return lines


def _replace_cells(line: str, values: list[str], columns: TagColumns) -> str:
    """Returns the line with `values` in the cells of `columns`; the spaces between cells are unchanged."""
    has_spaces = "\t" not in line and _GAP.search(line.strip(" ")) is not None
    if has_spaces:
        cells, gaps = _CELL.findall(line), _CELL.split(line)
    else:  # Also for a line with one word: a tab separator allows tags with spaces.
        cells = line.split("\t")
        gaps = ["", *["\t"] * (len(cells) - 1), ""]
    last = max(len(cells) - 1, 1)
    indices = [last if index == LAST else index for index in columns.indices]
    for index, value in sorted(zip(indices, values, strict=True)):
        _check_cell(value, " \t\r\n" if has_spaces else "\t\r\n")
        if index > len(cells):
            must = f"be among the file's {len(cells)} columns, or the next one"
            raise ValueError(complaint("columns", must, index + 1, "pass the column for the tag"))
        if index == len(cells):
            cells.append(value)
            gaps.insert(-1, " " if has_spaces else "\t")
        else:
            cells[index] = value
    return "".join(gap + cell for gap, cell in zip(gaps, [*cells, ""], strict=True))


def _check_cell(value: str, separators: str) -> None:
    if not value or any(separator in value for separator in separators):
        must = "be non-empty and contain no separator of cells or lines"
        advice = "rename the tag, or use a file with tab-separated columns"
        raise ValueError(complaint("tags", must, quote(value), advice))
