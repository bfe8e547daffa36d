"""Text with a sentence per line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linearcore.tagging.readers import ReaderError, make_writer, read_sentences
from linearcore.tagging.readers._columns import columns_file
from linearcore.tagging.readers._format import ReadOptions
from linearcore.tagging.readers._tag_columns import TagColumns
from linearcore.tagging.readers._text import Text

WORD = st.text(st.characters(blacklist_categories=("Cs", "Zs", "Zl", "Zp", "Cc")), min_size=1, max_size=6)


def read(*lines: str):
    return list(Text().read(lines, "x.txt", ReadOptions()))


def test_a_sentence_a_line():
    first, second = read("", "  A\tdog  sits . ", " \t ", "It 's\f10\u00a0000 \u00a0 km")
    assert (first.words, first.tags, first.line, first.format) == (["A", "dog", "sits", "."], None, 2, "text")
    assert (second.words, second.line) == (["It", "'s", "10\u00a0000", "km"], 4)


def test_written_in_columns():
    (sentence,) = read("A dog")
    assert make_writer(sentence)(sentence, ["DET", "NOUN Case=Nom"]) == "A\tDET\ndog\tNOUN Case=Nom\n\n"


@given(st.lists(WORD, min_size=1, max_size=5), st.data())
def test_words_and_tags_are_read_back(words, data):
    tags = data.draw(st.lists(WORD, min_size=len(words), max_size=len(words)))
    (sentence,) = read(" ".join(words))
    assert sentence.words == words
    lines = make_writer(sentence)(sentence, tags).split("\n")
    if not words[0].startswith("-DOCSTART-") and words[:3] != ["1", "2", "3"]:
        again = list(columns_file(lines, "x", TagColumns.parse("last"), comments=False))
        rows = [(word, tag) for word, tag in zip(words, tags, strict=True) if not word.startswith("-DOCSTART-")]
        assert [pair for other in again for pair in zip(other.words, other.tags, strict=True)] == rows


def test_it_has_no_tags():
    with pytest.raises(ReaderError, match="the format text has no tags"):
        read_sentences("x.txt", "last", "text")


def test_a_line_with_too_many_words():
    with pytest.raises(ReaderError, match=r"x\.txt:2: .* more than 100,000 words"):
        read("a", "a " * 100_001)
