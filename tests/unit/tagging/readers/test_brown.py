"""The Brown corpus."""

import pytest

from linearcore.tagging.readers import ReaderError, make_writer
from linearcore.tagging.readers._brown import brown


def read(text: str, with_tags: bool = True):
    return list(brown(text.split("\n"), "ca01", with_tags))


def test_a_sentence_a_line():
    first, second = read("\n\n\tThe/at jury/nn said/vbd ./. \n\n1/2/cd //in ``/``\n")
    assert (first.words, first.tags, first.line) == (["The", "jury", "said", "."], ["at", "nn", "vbd", "."], 3)
    assert (second.words, second.tags, second.line) == (["1/2", "/", "``"], ["cd", "in", "``"], 5)


def test_written_as_pairs():
    (sentence,) = read("The/at jury/nn", with_tags=False)
    assert sentence.tags is None
    assert make_writer(sentence)(sentence, ["x", "y"]).split("\n") == ["The\tx", "jury\ty", "", ""]


@pytest.mark.parametrize("token", ["word", "/nn", "word/", "/"])
def test_message(token):
    with pytest.raises(ReaderError) as caught:
        read(f"a/at\nb/nn {token} c/nn")
    assert str(caught.value).startswith(f"ca01:2: {token!r} is not word/tag; ")
