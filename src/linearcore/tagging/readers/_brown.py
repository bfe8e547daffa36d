"""The Brown corpus as NLTK distributes it: a sentence a line, its words written word/tag."""

import re
from collections.abc import Iterable, Iterator

from linearcore.tagging.readers._error import ReaderError, quote
from linearcore.tagging.readers._sentence import Sentence

#: The 500 texts of the zip, ca01 to cr09; besides them it holds a table of contents and the like.
BROWN_MEMBER = re.compile(r"(.*/)?c[a-r][0-9]{2}")


def brown(lines: Iterable[str], name: str, with_tags: bool) -> Iterator[Sentence]:
    """The sentences of one text. The tag is what follows the last slash, as it is written there (lower case).

    Args:
        lines: of the file.
        name: the file, for messages.
        with_tags: whether the tags are wanted.

    Raises:
        ReaderError: if something is not word/tag.

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
            wrong = next(token for token, (word, _, tag) in zip(tokens, pairs, strict=True) if not word or not tag)
            raise ReaderError.at(name, number, f"{quote(wrong)} is not word/tag", "write both with a slash between them")
        yield Sentence.of_pairs(words, tags, with_tags, number)
