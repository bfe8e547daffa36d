"""Text that is already split into words and sentences: one sentence per line, words separated by spaces."""

import re
from collections.abc import Iterable, Iterator

from linearcore.tagging.readers._blocks import MAX_SENTENCE_LINES, sentence_too_long
from linearcore.tagging.readers._error import ReaderError
from linearcore.tagging.readers._format import Format, ReadOptions
from linearcore.tagging.readers._sentence import Sentence

# Not `split()`, which also splits at no-break spaces inside words.
_WORD = re.compile(r"[^ \t\v\f]+")


def refuse_tags(tag: str, format: str, file: str) -> None:
    """Raises for formats without tags."""
    wrong = f"the format {format} has no tags, but tags ({tag}) are required"
    raise ReaderError.at(file, None, wrong, "pass a tagged file, for example CoNLL-U, columns or JSON lines")


class Text(Format):
    """One sentence per line, words separated by spaces or tabs; blank lines are skipped. It has no tags.

    Punctuation is not separated from words: use `raw` for text that is not split into words. A no-break space is a part of a
    word. Tagged sentences are written in columns, `word<TAB>tag`, with a blank line after each sentence.
    """

    name = "text"
    description = "one sentence per line"
    output = "columns"

    def check_tag(self, tag: str, file: str) -> None:
        """Raises, because text has no tags."""
        refuse_tags(tag, self.name, file)

    def read(self, lines: Iterable[str], name: str, options: ReadOptions) -> Iterator[Sentence]:
        """Yields one sentence for each line that has words.

        Example:
            >>> [sentence.words for sentence in Text().read(["Cats sleep .", "", " So  do I ."], "cats.txt", ReadOptions())]
            [['Cats', 'sleep', '.'], ['So', 'do', 'I', '.']]

        Time O(characters), memory O(longest line).
        """
        for number, line in enumerate(lines, 1):
            words = [word for word in _WORD.findall(line) if not word.isspace()]
            if len(words) > MAX_SENTENCE_LINES:
                raise sentence_too_long(name, number, "words", "write one sentence per line")
            if words:
                yield Sentence(words, None, [], [], number, self.name)
