"""The Brown corpus as NLTK distributes it: one sentence per line, words written as word/tag."""

import re
from collections.abc import Iterable, Iterator

from linearcore.tagging.readers._error import ReaderError, quote
from linearcore.tagging.readers._format import CorpusMembers, Format, ReadOptions
from linearcore.tagging.readers._sentence import Sentence
from linearcore.tagging.readers._tag_columns import TagColumns

#: The 500 texts of the zip file, ca01 to cr09; the other members, such as a table of contents, are not read.
BROWN_MEMBER = re.compile(r"(.*/)?c[a-r][0-9]{2}")


class Brown(Format):
    """Texts of the Brown corpus, in one file or in the zip archive of NLTK."""

    name = "brown"
    description = "Brown corpus"
    output = "columns"
    members = CorpusMembers(BROWN_MEMBER, "texts ca01 to cr09")

    def check_tag(self, tag: str, file: str) -> None:
        """Raises unless `tag` is the one tag of a word."""
        TagColumns.parse(tag).require_one_tag(self.name, file)

    def read(self, lines: Iterable[str], name: str, options: ReadOptions) -> Iterator[Sentence]:
        """Yields the sentences of one text."""
        return brown(lines, name, options.tag is not None)


def brown(lines: Iterable[str], name: str, with_tags: bool) -> Iterator[Sentence]:
    """Yields the sentences of one text. The tag is the part after the last slash, in lower case as in the file.

    Args:
        lines: lines of the file.
        name: file name for messages.
        with_tags: whether to return tags.

    Raises:
        ReaderError: if a token is not word/tag.

    Example:
        >>> for sentence in brown(["", "A/at dog/nn and/or/cc ./."], "ca01", with_tags=True):
        ...     print(sentence.line, sentence.words, sentence.tags)
        2 ['A', 'dog', 'and/or', '.'] ['at', 'nn', 'cc', '.']

    Time O(characters), memory O(longest sentence).
    """
    for number, line in enumerate(lines, 1):
        tokens = line.split()
        if not tokens:
            continue
        pairs = [token.rpartition("/") for token in tokens]
        words, _, tags = (list(parts) for parts in zip(*pairs, strict=True))
        if "" in words or "" in tags:
            token = next(token for token, (word, _, tag) in zip(tokens, pairs, strict=True) if not word or not tag)
            raise ReaderError.at(
                name, number, f"{quote(token)} is not word/tag", "write word and tag with a slash between them"
            )
        yield Sentence(words, tags if with_tags else None, [], [], number, Brown.name)
