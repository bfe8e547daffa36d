"""The Penn Treebank's bracketed trees, as in the sample that NLTK distributes."""

import re
from collections.abc import Iterable, Iterator

from linearcore.tagging.readers._blocks import LONGEST_SENTENCE, sentence_too_long
from linearcore.tagging.readers._error import ReaderError, quote
from linearcore.tagging.readers._sentence import Sentence

#: The members of NLTK's zip that are read: `combined/*.mrg`. The `tagged/*.pos` next to them part sentences where they do
#: not end, and leave a tag undecided (VBG|NN).
PENN_MEMBER = re.compile(r".*\.mrg")

_TOKEN = re.compile(r"[()]|[^\s()]+")


def penn(lines: Iterable[str], name: str, with_tags: bool) -> Iterator[Sentence]:
    """The sentences of a file of trees: the leaves, (TAG word). Traces are leaves too, with the tag -NONE-, as in NLTK.

    Args:
        lines: of the file.
        name: the file, for messages.
        with_tags: whether the tags are wanted.

    Raises:
        ReaderError: if brackets do not match or something stands where no word can.

    Example:
        >>> tree = ["( (S (NP (DT A) (NN dog))", "     (VP (VBZ sits)) (. .)))"]
        >>> for sentence in penn(tree, "dog.mrg", with_tags=True):
        ...     print(sentence.words, sentence.tags)
        ['A', 'dog', 'sits', '.'] ['DT', 'NN', 'VBZ', '.']

    Time O(characters), memory O(longest sentence).
    """
    # Per open bracket: its label if it has one, and whether something follows that.
    opened: list[tuple[str | None, bool]] = []
    words: list[str] = []
    tags: list[str] = []
    first = number = 0
    for number, line in enumerate(lines, 1):
        for token in _TOKEN.findall(line):
            if token == "(":
                if not opened:
                    first = number
                else:
                    opened[-1] = (opened[-1][0], True)
                opened.append((None, False))
            elif not opened:
                raise ReaderError.at(name, number, f"{quote(token)} outside of a tree", "balance the brackets")
            elif token != ")":
                label, is_full = opened[-1]
                if is_full:
                    raise ReaderError.at(name, number, f"{quote(token)} after a word or a phrase", "write (TAG word)")
                opened[-1] = (token, False) if label is None else (label, True)
                if label is not None:
                    words.append(token)
                    tags.append(label)
            else:
                label, is_full = opened.pop()
                if not is_full:
                    raise ReaderError.at(name, number, "a bracket without a word", "write (TAG word)")
                if not opened:
                    yield Sentence.of_pairs(words, tags, with_tags, first)
                    words, tags = [], []
        if len(words) > LONGEST_SENTENCE or len(opened) > LONGEST_SENTENCE:
            raise sentence_too_long(name, first, "words or brackets", "balance the brackets")
    if opened:
        raise ReaderError.at(name, first, "the tree that begins here is never closed", "balance the brackets")
