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


def read(text: str, tag: str | None = "last", comments: bool | None = None):
    return list(columns_file(text.split("\n"), "x.txt", None if tag is None else TagColumns.parse(tag), comments))


def test_conll_2003():
    first, second = read(CONLL2003)
    assert (first.words, first.tags) == (["EU", "rejects", "#"], ["B-ORG", "O", "O"])
    assert (second.words, second.tags) == (["Peter"], ["B-PER"])
    assert (first.line, second.line) == (1, 7)
    assert [line for sentence in (first, second) for line in [*sentence.lines, ""]] == CONLL2003.split("\n")
    assert first.rows == [2, 3, 4] and second.rows == [4]


# As in MultiCoNER.
COMMENTS = """\
# id a1

# id a2 domain=en x y
EU _ _ B-ORG
# _ _ O

# id a3	domain=en
#hash _ _ O
# _ _ O
"""


def test_comments_are_kept_and_do_not_set_the_width():
    first, second = read(COMMENTS)
    assert (first.words, first.tags, first.line, first.rows) == (["EU", "#"], ["B-ORG", "O"], 1, [3, 4])
    assert (second.words, second.tags) == (["#hash", "#"], ["O", "O"])
    assert [line for sentence in (first, second) for line in [*sentence.lines, ""]] == COMMENTS.split("\n")


AMBIGUOUS = "a DT\n\n# NN\nb NN"


def test_a_line_that_may_be_a_comment_or_a_word_needs_a_decision():
    with pytest.raises(ReaderError, match=r"^x\.txt:3: .*; pass --comments or --no-comments$"):
        read(AMBIGUOUS)
    assert [sentence.words for sentence in read(AMBIGUOUS, comments=True)] == [["a"], ["b"]]
    assert [sentence.words for sentence in read(AMBIGUOUS, comments=False)] == [["a"], ["#", "b"]]
    # Before the first word the number of columns is not known yet.
    first = "# NN\n\nb NN"
    with pytest.raises(ReaderError, match=r"^x\.txt:1: "):
        read(first)
    assert [sentence.words for sentence in read(first, comments=True)] == [["b"]]
    assert [sentence.words for sentence in read(first, comments=False)] == [["#"], ["b"]]


def test_without_comments_every_line_is_a_word():
    with pytest.raises(ReaderError, match=r"^x\.txt:2: 2 columns separated by spaces, but line 1 has 3"):
        read("# id 1\na b", None, comments=False)


@pytest.mark.parametrize("line", ["#\tNN", "#a NN", "#a\tNN"])
def test_a_word_that_begins_with_the_sign_of_comments(line):
    separator = "\t" if "\t" in line else " "
    (sentence,) = read(f"{line}\nb{separator}NN")
    assert sentence.words == [line.split(separator)[0], "b"]


def test_only_comments_are_no_sentence():
    assert read("# a\n\n# b c\n") == []


def test_a_column_of_ids_is_not_taken_for_words():
    with pytest.raises(ReaderError, match=r"^x\.txt:1: the first column holds the numbers 1, 2, 3, … and no words"):
        read("1\ta\tX\n2\tb\tX\n3\tc\tX")
    with pytest.raises(ReaderError, match=r"^x\.txt:3: the first column holds the numbers"):
        read("1\ta\tX\n\n1\tb\tX\n2\tb\tX\n3\tc\tX")
    assert len(read("a X\n\n1 X\n2 X\n3 X")) == 2, "numbers may be words"


@pytest.mark.parametrize("text", ["a,A\nb,B\nc,C", '"a";"A"\n"b";"B"\n"c";"C"'])
def test_comma_separated_values_are_not_taken_for_words(text):
    with pytest.raises(ReaderError, match=r"^x\.txt:1: .* looks like CSV"):
        read(text, None)


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
        ("a b\nc d e", "last", "2: 3 columns separated by spaces, but line 1 has 2"),
        ("a b\n\nc", None, "3: 1 columns separated by spaces, but line 1 has 2"),
        ("a\tb\nc d", "last", "2: 1 columns separated by tabs, but line 1 has 2"),
        (
            "-DOCSTART- x\n\na b\nc\td",
            "2",
            "4: a tab, but line 3 separates its columns by spaces",
        ),
        ("a b\nc\te d", "2", "2: a tab, but line 1 separates its columns by spaces"),
        (
            "word\nother",
            "last",
            "1: one column, but a tag column is required",
        ),
        ("a b\nc d", "3", "1: 2 columns, but tag column 3 was requested; use a column from 2 to 2"),
        (
            "a b\nc d",
            "1",
            "1: tag column 1 was requested, but the first column holds the words",
        ),
        ("a b\nc d", "last+2", "1: last+2 names the last of the 2 columns twice"),
        ("a\tb\n\tc", "last", "2: the word is empty; write it in the first column"),
        ("a\tb\nc\t", "last", "2: the cell of column last is empty"),
        ("a\tb\tc\nd\te f\tg", "2+3", "2: column 2 contains 'e f', but 2+3 joins its columns by a space"),
        (
            "a b\n\n-DOCSTART- x",
            "last",
            "3: no sentence follows these lines, so they cannot be written",
        ),
    ],
)
def test_messages(text, tag, message):
    with pytest.raises(ReaderError) as caught:
        read(text, tag)
    assert str(caught.value).startswith(f"x.txt:{message}")
