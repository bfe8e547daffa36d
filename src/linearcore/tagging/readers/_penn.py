"""The bracketed trees of the Penn Treebank, as in NLTK's sample."""

import re
from collections.abc import Iterable, Iterator

from linearcore.tagging.readers._blocks import MAX_SENTENCE_LINES, sentence_too_long
from linearcore.tagging.readers._error import ReaderError, quote
from linearcore.tagging.readers._format import CorpusMembers, Format, ReadOptions
from linearcore.tagging.readers._sentence import Sentence
from linearcore.tagging.readers._tag_columns import TagColumns

#: The members of NLTK's zip file that are read, `combined/*.mrg`. The files `tagged/*.pos` have wrong sentence boundaries
#: and ambiguous tags (VBG|NN).
PENN_MEMBER = re.compile(r".*\.mrg")

_TOKEN = re.compile(r"[()]|[^\s()]+")


class PennTreebank(Format):
    """Trees of the Penn Treebank, in one file or in the zip archive of NLTK."""

    name = "penn"
    description = "trees of the Penn Treebank"
    output = "columns"
    members = CorpusMembers(PENN_MEMBER, ".mrg files")

    def check_tag(self, tag: str, file: str) -> None:
        """Raises unless `tag` is the one tag of a word."""
        TagColumns.parse(tag).require_one_tag(self.name, file)

    def read(self, lines: Iterable[str], name: str, options: ReadOptions) -> Iterator[Sentence]:
        """Yields the sentences of one text."""
        return penn(lines, name, options.tag is not None)


def penn(lines: Iterable[str], name: str, with_tags: bool) -> Iterator[Sentence]:
    """Yields the sentences of a file of trees. Words are the leaves (TAG word); traces have tag -NONE-, as in NLTK.

    Args:
        lines: lines of the file.
        name: file name for messages.
        with_tags: whether to return tags.

    Raises:
        ReaderError: if brackets do not match or a token is in the wrong place.

    Example:
        >>> tree = ["( (S (NP (DT A) (NN dog))", "     (VP (VBZ sits)) (. .)))"]
        >>> for sentence in penn(tree, "dog.mrg", with_tags=True):
        ...     print(sentence.words, sentence.tags)
        ['A', 'dog', 'sits', '.'] ['DT', 'NN', 'VBZ', '.']

    Time O(characters), memory O(longest sentence).
    """
    # Per open bracket: its label, if any, and whether a word or a phrase follows the label.
    open_brackets: list[tuple[str | None, bool]] = []
    words: list[str] = []
    tags: list[str] = []
    first = number = 0
    for number, line in enumerate(lines, 1):
        for token in _TOKEN.findall(line):
            if token == "(":
                if not open_brackets:
                    first = number
                else:
                    open_brackets[-1] = (open_brackets[-1][0], True)
                open_brackets.append((None, False))
            elif not open_brackets:
                raise ReaderError.at(name, number, f"{quote(token)} outside a tree", "balance the brackets")
            elif token != ")":
                label, has_content = open_brackets[-1]
                if has_content:
                    raise ReaderError.at(name, number, f"{quote(token)} after a word or a phrase", "write (TAG word)")
                open_brackets[-1] = (token, False) if label is None else (label, True)
                if label is not None:
                    words.append(token)
                    tags.append(label)
            else:
                label, has_content = open_brackets.pop()
                if not has_content:
                    raise ReaderError.at(name, number, "a bracket without a word", "write (TAG word)")
                if not open_brackets:
                    yield Sentence(words, tags if with_tags else None, [], [], first, PennTreebank.name)
                    words, tags = [], []
        if len(words) > MAX_SENTENCE_LINES or len(open_brackets) > MAX_SENTENCE_LINES:
            raise sentence_too_long(name, first, "words or brackets", "balance the brackets")
    if open_brackets:
        raise ReaderError.at(name, first, "the tree that starts here is not closed", "balance the brackets")
