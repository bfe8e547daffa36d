"""A sentence and its lines in the file."""

from collections.abc import Sequence
from dataclasses import dataclass

from linearcore._checks import complaint
from linearcore.tagging.readers._cells import replace_cells
from linearcore.tagging.readers._tag_columns import TagColumns


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with its words, tags, and the lines that are needed to write it with other tags.

    Attributes:
        words: the words. At least one, but JSON lines may have a sentence without words.
        tags: one tag per word, or None if tags were not requested.
        lines: all lines of the sentence without line ends, including comments, CoNLL-U ranges and empty nodes, and lines
            before the sentence such as -DOCSTART-; the line of a JSON object; empty if the format cannot be written.
        rows: index in `lines` of each word; empty if the format does not have one line per word.
        line: line number, from 1, of the first of these lines in the file; for running text, of its paragraph.
        format: name of the format of the file, one of `FORMATS`.

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
    format: str = "columns"

    def tagged_lines(self, tags: Sequence[str], columns: TagColumns) -> list[str]:
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
        require_one_each(self.words, tags)
        lines = list(self.lines)
        for row, tag in zip(self.rows, tags, strict=True):
            lines[row] = replace_cells(lines[row], columns.split(tag), columns)
        return lines


def require_one_each(words: Sequence[str], tags: Sequence[str]) -> None:
    """Raises if the numbers of words and tags differ."""
    if len(tags) != len(words):
        raise ValueError(complaint("tags", f"be as many as the {len(words)} words", len(tags), "pass one tag per word"))
