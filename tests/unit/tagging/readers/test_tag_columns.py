"""Which columns make up a tag."""

import pytest

from linearcore.tagging.readers import ReaderError, TagColumns


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("id", (0,)), ("form", (1,)), ("lemma", (2,)), ("upos", (3,)), ("xpos", (4,)), ("feats", (5,)),
        ("head", (6,)), ("deprel", (7,)), ("deps", (8,)), ("misc", (9,)),
        ("UPOS+Feats", (3, 5)), (" xpos + deprel ", (4, 7)), ("4", (3,)), ("2+13", (1, 12)), ("last", (-1,)), ("TAG", (-1,)),
    ],
)  # fmt: skip
def test_names_and_numbers(text, indices):
    assert TagColumns.parse(text).indices == indices


def test_it_is_written_as_it_was_read():
    assert str(TagColumns.parse("UPOS+feats")) == "upos+feats"
    assert TagColumns.parse("upos") == TagColumns.parse("UPOS") != TagColumns.parse("xpos")


@pytest.mark.parametrize("text", ["", "pos", "upos+", "+", "0", "-1", "1.5", "04", "²", "٣", "9" * 10, "upos feats"])
def test_message_for_unknown_names(text):
    with pytest.raises(ValueError) as caught:
        TagColumns.parse(text)
    assert str(caught.value) == (
        "`tag` must consist of id, form, lemma, upos, xpos, feats, head, deprel, deps, misc (CoNLL-U), a number from 1 or "
        f"'last' (column files), got {text!r}; join several columns by +, as in upos+feats"
    )


def test_message_for_a_column_twice():
    for text in ("upos+UPOS", "2+3+2", "last+tag", "4+upos"):
        with pytest.raises(ValueError, match=f"`tag` must name each column once, got {text!r}".replace("+", r"\+")):
            TagColumns.parse(text)


def test_message_for_no_string():
    with pytest.raises(TypeError, match="`tag` must be a string, got int; name a column, for example 'upos'"):
        TagColumns.parse(4)


def test_split_undoes_join():
    columns = TagColumns.parse("upos+feats")
    assert columns.split(columns.join(["NOUN", "Case=Nom|Number=Sing"])) == ["NOUN", "Case=Nom|Number=Sing"]
    assert TagColumns.parse("last").split("a b") == ["a b"], "one column is never parted"


@pytest.mark.parametrize("tag", ["NOUN", "NOUN a b", ""])
def test_message_for_a_tag_with_other_parts(tag):
    with pytest.raises(ValueError, match=r"`tags` must have one part for each of the 2 columns upos\+feats, got"):
        TagColumns.parse("upos+feats").split(tag)


def test_cells_become_tags():
    cells = [("1", "2"), ("a", "b"), ("x", "_")]
    assert TagColumns.parse("3").read(cells, "file", [1, 2]) == ["x", "_"]
    assert TagColumns.parse("3+2").read(cells, "file", [1, 2]) == ["x a", "_ b"]
    assert TagColumns.parse("last").read(cells, "file", [1, 2]) == ["x", "_"]


def test_messages_for_cells():
    with pytest.raises(ReaderError, match=r"^file:8: the cell of column 2 is empty; "):
        TagColumns.parse("2").read([("a", "b"), ("x", "")], "file", [7, 8])
    message = r"^file:8: column 2 contains 'x y', but 2\+1 joins its columns by a space"
    with pytest.raises(ReaderError, match=message):
        TagColumns.parse("2+1").read([("a", "b"), ("z", "x y")], "file", [7, 8])
    assert TagColumns.parse("2").read([("a", "b"), ("z", "x y")], "file", [7, 8]) == ["z", "x y"], "alone it may"
