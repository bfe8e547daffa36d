"""Writes sentences with predicted tags."""

from typing import Protocol

from linearcore._checks import complaint
from linearcore.tagging.readers._sentence import Sentence
from linearcore.tagging.readers._tag_columns import CONLLU_NAMES, TagColumns


class TextStream(Protocol):
    """A stream that text can be written to."""

    def write(self, text: str, /) -> object:
        """Writes the text."""


def columns_for(sentence: Sentence, training_columns: TagColumns) -> TagColumns:
    """Returns the default output columns: those used in training, or the last column if the file has no column names.

    For a file with words only, "last" is a new column.

    Raises:
        ValueError: if the file is CoNLL-U and the tagger was not trained on CoNLL-U columns, so the column is unknown.

    Example:
        >>> sentence = Sentence(["A", "dog"], None, ["A", "dog"], [0, 1], line=1)
        >>> str(columns_for(sentence, TagColumns.parse("upos+feats")))
        'last'
    """
    if sentence.is_conllu and (training_columns.has_last or max(training_columns.indices) >= len(CONLLU_NAMES)):
        advice = "pass the output column, for example --tag upos"
        raise ValueError(complaint("tag", "name a column of CoNLL-U", f"{training_columns}, from training", advice))
    has_no_names = training_columns.has_conllu_names and not sentence.is_conllu
    return TagColumns.parse("last") if has_no_names else training_columns


def write_sentence(stream: TextStream, sentence: Sentence, tags: list[str], columns: TagColumns) -> None:
    """Writes the lines of the sentence with these tags, and a blank line.

    In CoNLL-U and column files only the tags change; line ends become those of the stream, and several blank lines become
    one. Sentences of the Penn Treebank and the Brown corpus are written as `word<TAB>tag`, one word per line.

    Args:
        stream: the output stream.
        sentence: the sentence from a reader.
        tags: one tag per word.
        columns: the output columns.

    Raises:
        ValueError: as in `Sentence.tagged_lines`.

    Example:
        >>> import sys
        >>> sentence = Sentence(["A", "dog"], None, ["A ? x", "dog ? y"], [0, 1], line=1)
        >>> write_sentence(sys.stdout, sentence, ["DET", "NOUN"], TagColumns.parse("2"))
        A DET x
        dog NOUN y
        <BLANKLINE>
    """
    stream.write("\n".join(sentence.tagged_lines(tags, columns)) + "\n\n")
