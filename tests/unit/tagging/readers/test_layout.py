"""The format that a tagger was trained on, and files that do not have it."""

import pytest

from linearcore.tagging.readers import FORMATS, Layout, ReaderError, Sentence, TagColumns, read_sentences
from linearcore.tagging.readers._index import BY_NAME

WORD = "1\tdog\tdog\tNOUN\tNN\t_\t_\t_\t_\t_"
FILES = {
    "conllu": (f"# sent_id = 1\n{WORD}\n", "upos"),
    "columns": ("dog X NN\n", "last"),
    "jsonl": ('{"tokens": ["dog"], "pos": ["NN"]}\n', "pos"),
}


def layout_of(folder, format):
    text, tag = FILES[format]
    (folder / "train").write_text(text)
    return Layout.of(next(read_sentences(folder / "train", tag)), tag)


@pytest.mark.parametrize("format", FILES)
def test_saved_as_json(tmp_path, format):
    layout = layout_of(tmp_path, format)
    assert (layout.format, layout.tag, layout.width) == (format, FILES[format][1], 3 if format == "columns" else None)
    assert Layout.from_json(layout.to_json()) == layout
    TagColumns.parse(layout.columns)
    with pytest.raises(ValueError, match="`format` must be one of"):
        Layout.from_json({**layout.to_json(), "format": "xml"})


def test_layouts_of_earlier_versions():
    assert Layout.of_columns("upos+feats") == Layout("conllu", "upos+feats")
    assert Layout.of_columns("4") == Layout("columns", "4") and Layout.of_columns("tag").format == "columns"


@pytest.mark.parametrize("trained", FILES)
@pytest.mark.parametrize("given", FILES)
def test_another_format_is_refused_unless_it_is_named(tmp_path, trained, given):
    layout = layout_of(tmp_path, trained)
    path = tmp_path / "new"
    path.write_text(FILES[given][0])
    if trained == given:
        assert len(list(read_sentences(path, layout=layout))) == 1
        return
    with pytest.raises(ReaderError) as caught:
        list(read_sentences(path, layout=layout))
    message = str(caught.value)
    assert f"trained on the format {trained}" in message and "\n" not in message
    assert all(format in message for format in ("--format", "text", "raw", "conllu", "columns", "jsonl"))
    assert len(list(read_sentences(path, format=given, layout=layout))) == 1


@pytest.mark.parametrize(
    ("text", "is_read"), [("a b c\n", True), ("a\tb\tc\n", True), ("a\nb\n", True), ("a b\nc\n", False)]
)
def test_columns_are_as_many_as_in_training_or_one(tmp_path, text, is_read):
    layout = layout_of(tmp_path, "columns")
    (tmp_path / "new").write_text(f"# a comment of five cells\n{text}")
    if is_read:
        assert len(list(read_sentences(tmp_path / "new", layout=layout))) == 1
    else:
        with pytest.raises(ReaderError, match=r"2 columns, but the tagger was trained on 3 columns; .*--tag N"):
            list(read_sentences(tmp_path / "new", layout=layout))
    assert Layout("columns", "last").require(BY_NAME["columns"], "a b c d", "x") is None, "earlier versions: any number"


def of_lines(*lines):
    return Sentence([line.split()[0] for line in lines], None, list(lines), list(range(len(lines))), 1)


def test_the_place_of_tags_in_the_output():
    columns, conllu = BY_NAME["columns"], BY_NAME["conllu"]
    layout = Layout("columns", "2", 3)
    assert layout.output_tag(of_lines("a b c"), columns) == "2"
    assert layout.output_tag(of_lines("a"), columns) is None, "words only: a new column"
    assert layout.output_tag(of_lines("a b c"), conllu) is None
    with pytest.raises(ValueError, match=r"`tag` must be given for a file of 2 columns, .* trained on 3 columns"):
        layout.output_tag(of_lines("a b"), columns)
    assert Layout("jsonl", "pos").output_tag(of_lines("a b"), BY_NAME["jsonl"]) == "pos"
    assert Layout("conllu", "upos").output_tag(of_lines("a b"), conllu) == "upos"


def test_words_are_not_taken_for_tags():
    layout = Layout("columns", "last", 2)
    for lines in (["a NN"], ["a x", "b NN"], ["a _"], ["a O"], ["a"]):
        layout.require_tags(of_lines(*lines), {"NN"}, "x.txt")
    with pytest.raises(ReaderError, match=r"x\.txt:1: column last of the first sentence contains no tag .*'world'.*text"):
        layout.require_tags(of_lines("Hello world", "Good morning"), {"NN"}, "x.txt")


def test_every_format_is_listed_and_says_what_it_writes():
    assert FORMATS[1:] == tuple(BY_NAME)
    for name, format in BY_NAME.items():
        assert format.name == name and BY_NAME[format.output].output == format.output
