"""What is written is read back, and a sentence with its own tags is what it was."""

import io

from hypothesis import given
from hypothesis import strategies as st

from linearcore.tagging.readers import TagColumns, make_writer
from linearcore.tagging.readers._columns import columns_file
from linearcore.tagging.readers._conllu import conllu

# Any characters but those that end cells and lines, and the surrogates that no UTF-8 has.
CELL = st.text(st.characters(blacklist_characters="\t\n\r ", blacklist_categories=("Cs",)), min_size=1, max_size=6)
CELL = CELL.filter(lambda cell: not cell.isspace())
# Whether a line that starts with # is a word depends on the other lines; `test_columns.py` has those.
PLAIN = CELL.filter(lambda cell: not cell.startswith(("-DOCSTART-", "#")))
COMMENT = st.text(st.characters(blacklist_characters="\n\r", blacklist_categories=("Cs",)), max_size=10).map("#{}".format)


@st.composite
def conllu_text(draw: st.DrawFn) -> str:
    lines = draw(st.lists(COMMENT, max_size=3))
    number = 0
    for node in draw(st.lists(st.sampled_from(["word", "empty", "range"]), max_size=6)):
        if node == "range":
            lines.append(f"{number + 1}-{number + 2}\t" + "\t".join(draw(st.lists(CELL, min_size=9, max_size=9))))
        if node == "empty":
            lines.append(f"{number}.1\t" + "\t".join(draw(st.lists(CELL, min_size=9, max_size=9))))
        for _ in range(2 if node == "range" else 1):
            number += 1
            lines.append(f"{number}\t" + "\t".join(draw(st.lists(CELL, min_size=9, max_size=9))))
    number += 1
    return "\n".join([*lines, f"{number}\tlast\t_\tX\tX\tX\t_\t_\t_\t_", "", ""])


@given(
    st.lists(conllu_text(), min_size=1, max_size=3).map("".join),
    st.sampled_from(["upos", "upos+feats", "misc", "lemma+xpos+deps"]),
)
def test_conllu(text, tag):
    columns = TagColumns.parse(tag)
    stream = io.StringIO()
    sentences = list(conllu(text.split("\n"), "x", columns))
    for sentence in sentences:
        assert sentence.tagged_lines(sentence.tags, columns) == sentence.lines
        stream.write(make_writer(sentence, tag=tag)(sentence, sentence.tags))
    assert stream.getvalue() == text
    assert list(conllu(stream.getvalue().split("\n"), "x", columns)) == sentences


@st.composite
def column_text(draw: st.DrawFn) -> str:
    width = draw(st.integers(2, 4))
    gap = st.just("\t") if draw(st.booleans()) else st.integers(1, 3).map(" ".__mul__)
    lines = []
    for length in draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)):
        lines += draw(st.sampled_from([[], ["-DOCSTART- -X- O", ""], ["-DOCSTART-"]]))
        for _ in range(length):
            cells = [draw(PLAIN), *draw(st.lists(CELL, min_size=width - 1, max_size=width - 1))]
            lines.append("".join(cell + draw(gap) for cell in cells[:-1]) + cells[-1])
        lines.append("")
    return "\n".join([*lines, ""])


@given(column_text(), st.sampled_from(["last", "2"]))
def test_columns(text, tag):
    columns = TagColumns.parse(tag)
    stream = io.StringIO()
    sentences = list(columns_file(text.split("\n"), "x", columns))
    for sentence in sentences:
        assert sentence.tagged_lines(sentence.tags, columns) == sentence.lines
        stream.write(make_writer(sentence, tag=tag)(sentence, sentence.tags))
    assert stream.getvalue() == text
    assert list(columns_file(stream.getvalue().split("\n"), "x", columns)) == sentences


@given(column_text(), st.data())
def test_other_tags_are_read_back(text, data):
    columns = TagColumns.parse("last")
    for sentence in columns_file(text.split("\n"), "x", columns):
        tags = data.draw(st.lists(CELL, min_size=len(sentence.words), max_size=len(sentence.words)))
        (again,) = columns_file(sentence.tagged_lines(tags, columns), "x", columns)
        assert (again.words, again.tags, again.rows) == (sentence.words, tags, sentence.rows)
