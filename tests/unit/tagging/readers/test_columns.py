"""Column files."""

import pytest

from linearcore.tagging.readers import ReaderError, TagColumns
from linearcore.tagging.readers._columns import columns_file

CONLL2003 = """\
-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O
# # B-NP O

-DOCSTART- -X- -X- O

-DOCSTART-

Peter  NNP B-NP  B-PER
"""


def read(text: str, tag: str | None = "last"):
    return list(columns_file(text.split("\n"), "x.txt", None if tag is None else TagColumns.parse(tag)))


def test_conll_2003():
    first, second = read(CONLL2003)
    assert (first.words, first.tags) == (["EU", "rejects", "#"], ["B-ORG", "O", "O"])
    assert (second.words, second.tags) == (["Peter"], ["B-PER"])
    assert (first.line, second.line) == (1, 7)
    assert [line for sentence in (first, second) for line in [*sentence.lines, ""]] == CONLL2003.split("\n")
    assert first.rows == [2, 3, 4] and second.rows == [4]


def test_docstart_without_a_blank_line_after_it():
    (sentence,) = read("-DOCSTART-\tO\na\tX\nb\tY")
    assert (sentence.words, sentence.rows, sentence.lines[0]) == (["a", "b"], [1, 2], "-DOCSTART-\tO")


@pytest.mark.parametrize(
    ("tag", "tags"), [("2", ["NNP", "VBZ", "#"]), ("last", ["B-ORG", "O", "O"]), ("4+2", ["B-ORG NNP", "O VBZ", "O #"])]
)
def test_the_tag_is_where_it_is_asked_for(tag, tags):
    assert read(CONLL2003, tag)[0].tags == tags


def test_tabs_win_over_spaces_and_keep_spaces_in_cells():
    (sentence,) = read("New York\tproper noun\nis\tverb")
    assert (sentence.words, sentence.tags) == (["New York", "is"], ["proper noun", "verb"])


def test_only_plain_spaces_part_columns():
    (sentence,) = read("10\u00a0000 CD\n\u3000 SYM")
    assert sentence.words == ["10\u00a0000", "\u3000"]


def test_bare_words_are_enough_without_tags():
    (sentence,) = read("just\nwords", None)
    assert (sentence.words, sentence.tags) == (["just", "words"], None)


@pytest.mark.parametrize(
    ("text", "tag", "message"),
    [
        ("a b\nc d e", "last", "2: 3 columns separated by spaces, where line 1 has 2; give every line as many"),
        ("a b\n\nc", None, "3: 1 columns separated by spaces, where line 1 has 2; give every line as many"),
        ("a\tb\nc d", "last", "2: 1 columns separated by tabs, where line 1 has 2; give every line as many"),
        (
            "-DOCSTART- x\n\na b\nc\td",
            "2",
            "4: a tab, where line 3 separates its columns by spaces; use one separator in the whole",
        ),
        ("a b\nc\te d", "2", "2: a tab, where line 1 separates its columns by spaces"),
        (
            "word\nother",
            "last",
            "1: one column, where a tag is to stand beside each word; separate word and tag by a tab or a space",
        ),
        ("a b\nc d", "3", "1: 2 columns, and the tag is asked for in 3; name one from 2 to 2, or 'last'"),
        (
            "a b\nc d",
            "1",
            "1: the tag is asked for in 1, and the first column holds the words; name one from 2 to 2, or 'last'",
        ),
        ("a b\nc d", "last+2", "1: last+2 names the last of the 2 columns twice; leave one out"),
        ("a\tb\n\tc", "last", "2: the word is empty; write it in the first column"),
        ("a\tb\nc\t", "last", "2: the cell of column last is empty; write a tag, or _ for none"),
        ("a\tb\tc\nd\te f\tg", "2+3", "2: column 2 holds 'e f', and 2+3 joins its columns by a space; replace the space"),
        (
            "a b\n\n-DOCSTART- x",
            "last",
            "3: no sentence follows these lines, so they could not be written back; remove them",
        ),
    ],
)
def test_messages(text, tag, message):
    with pytest.raises(ReaderError) as caught:
        read(text, tag)
    assert str(caught.value).startswith(f"x.txt:{message}")
