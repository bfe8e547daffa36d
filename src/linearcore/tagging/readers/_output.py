"""Writes sentences back with other tags."""

from typing import Protocol

from linearcore.tagging.readers._sentence import Sentence
from linearcore.tagging.readers._tag_columns import TagColumns


class TextStream(Protocol):
    """Where text can be written."""

    def write(self, text: str, /) -> object:
        """Takes the text."""


def write_sentence(stream: TextStream, sentence: Sentence, tags: list[str], columns: TagColumns) -> None:
    """Writes the sentence's lines with these tags, and a blank line.

    CoNLL-U and column files come out as they were but for the tag (line ends become the stream's, several blank lines
    one); the Penn Treebank and the Brown corpus come out as `word<TAB>tag`, a word a line.

    Args:
        stream: to write to.
        sentence: as it was read.
        tags: one a word.
        columns: where the tags go.

    Raises:
        ValueError: as `Sentence.tagged`.

    Example:
        >>> import sys
        >>> sentence = Sentence(["A", "dog"], None, ["A ? x", "dog ? y"], [0, 1], line=1)
        >>> write_sentence(sys.stdout, sentence, ["DET", "NOUN"], TagColumns.parse("2"))
        A DET x
        dog NOUN y
        <BLANKLINE>
    """
    stream.write("\n".join(sentence.tagged(tags, columns)) + "\n\n")
