"""Writes sentences back with other tags."""

from typing import Protocol

from linearcore._checks import complaint
from linearcore.tagging.readers._sentence import Sentence
from linearcore.tagging.readers._tag_columns import CONLLU_NAMES, TagColumns


class TextStream(Protocol):
    """Where text can be written."""

    def write(self, text: str, /) -> object:
        """Takes the text."""


def columns_for(sentence: Sentence, trained: TagColumns) -> TagColumns:
    """Where the tags of a tagger go in a file, if nobody says: into the columns it was trained on, where there are such.

    In a file without named columns it is the last one, which for bare words is a new one.

    Raises:
        ValueError: if the file is CoNLL-U and the tagger was trained on something else: any column might be meant.

    Example:
        >>> bare = Sentence(["A", "dog"], None, ["A", "dog"], [0, 1], line=1)
        >>> str(columns_for(bare, TagColumns.parse("upos+feats")))
        'last'
    """
    if sentence.is_conllu and (trained.has_last or max(trained.indices) >= len(CONLLU_NAMES)):
        advice = "say where the tags go, for example --tag upos"
        raise ValueError(complaint("tag", "name a column of CoNLL-U", f"{trained}, from training", advice))
    return TagColumns.parse("last") if trained.has_conllu_names and not sentence.is_conllu else trained


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
        ValueError: as `Sentence.tagged_lines`.

    Example:
        >>> import sys
        >>> sentence = Sentence(["A", "dog"], None, ["A ? x", "dog ? y"], [0, 1], line=1)
        >>> write_sentence(sys.stdout, sentence, ["DET", "NOUN"], TagColumns.parse("2"))
        A DET x
        dog NOUN y
        <BLANKLINE>
    """
    stream.write("\n".join(sentence.tagged_lines(tags, columns)) + "\n\n")
