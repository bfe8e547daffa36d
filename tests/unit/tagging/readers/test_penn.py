"""The trees of the Penn Treebank."""

import pytest

from linearcore.tagging.readers import ReaderError, make_writer
from linearcore.tagging.readers._penn import penn

TREES = """
( (S
    (NP-SBJ (PRP It) )
    (VP (VBD cost)
      (NP (CD 1\\/2) (NN dollar) (-NONE- *U*) ))
    (. .) ))
( (NP (-LRB- -LRB-) (FW x)) ) ( (INTJ (UH
 Oh)))
"""


def read(text: str, with_tags: bool = True):
    return list(penn(text.split("\n"), "x.mrg", with_tags))


def test_leaves_of_trees():
    first, second, third = read(TREES)
    assert first.words == ["It", "cost", "1\\/2", "dollar", "*U*", "."]
    assert first.tags == ["PRP", "VBD", "CD", "NN", "-NONE-", "."]
    assert (second.words, second.tags, second.line) == (["-LRB-", "x"], ["-LRB-", "FW"], 7)
    assert (third.words, third.tags, third.line) == (["Oh"], ["UH"], 7)
    assert first.line == 2


def test_written_as_pairs():
    sentence = read(TREES, with_tags=False)[1]
    assert sentence.tags is None
    assert make_writer(sentence)(sentence, ["(", "N"]).split("\n") == ["-LRB-\t(", "x\tN", "", ""]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("( (NN a) ) )", "1: ')' outside a tree; balance the brackets"),
        ("\nword", "2: 'word' outside a tree; balance the brackets"),
        ("( (NN a) )\n( (NN b)\n", "2: the tree that starts here is not closed"),
        ("( (NN a b) )", "1: 'b' after a word or a phrase; write (TAG word)"),
        ("( (NP (NN a) b) )", "1: 'b' after a word or a phrase; write (TAG word)"),
        ("( (NN) )", "1: a bracket without a word; write (TAG word)"),
        ("()", "1: a bracket without a word; write (TAG word)"),
        ("(NN a\n", "1: the tree that starts here is not closed"),
    ],
)
def test_messages(text, message):
    with pytest.raises(ReaderError) as caught:
        read(text)
    assert str(caught.value).startswith(f"x.mrg:{message}")


@pytest.mark.parametrize("text", ["(", " (NN a)"], ids=["brackets", "words"])
def test_message_for_trees_without_an_end(text):
    with pytest.raises(
        ReaderError, match=r"^x\.mrg:1: the sentence that starts here has more than 100,000 words or brackets; balance"
    ):
        read("(" + text * 100_001)
