"""Sentences of one format written in another."""

import io
import json

import conllu as reference
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linearcore.tagging.readers import OUTPUT_FORMATS, Layout, Sentence, make_writer, read_sentences

CELL = st.text(st.characters(blacklist_categories=("Cs", "Zs", "Zl", "Zp", "Cc")), min_size=1, max_size=5)
TEXTS = {
    "conllu": "# text = a b\n1\ta\tl\tX\tY\t_\t_\t_\t_\t_\n2\tb\tl\tX\tY\t_\t_\t_\t_\t_\n\n",
    "columns": "# id 1 2\na x\nb y\n\n",
    "jsonl": '{"id": 1, "tokens": ["a", "b"]}\n',
    "text": "a b\n",
    "penn": "((X a) (Y b))\n",
    "brown": "a/x b/y\n",
}
WRITTEN = {
    "columns": "a\tN\nb\tV\n\n",
    "conllu": "1\ta\t_\tN\t_\t_\t_\t_\t_\t_\n2\tb\t_\tV\t_\t_\t_\t_\t_\t_\n\n",
    "jsonl": '{"tokens": ["a", "b"], "tags": ["N", "V"]}\n',
}
KEPT = {
    "conllu": TEXTS["conllu"].replace("X", "N", 1).replace("X", "V"),
    "columns": "# id 1 2\na N\nb V\n\n",
    "jsonl": '{"id": 1, "tokens": ["a", "b"], "tags": ["N", "V"]}\n',
}


@pytest.mark.parametrize("format", TEXTS)
@pytest.mark.parametrize("output", OUTPUT_FORMATS)
def test_every_format_is_written_in_every_other(tmp_path, format, output):
    (tmp_path / "x").write_text(TEXTS[format])
    (sentence,) = read_sentences(tmp_path / "x", format=format)
    is_conllu = output == "conllu" or (output == "same" and format == "conllu")
    text = make_writer(sentence, output, "upos" if is_conllu else None)(sentence, ["N", "V"])
    target = output if output != "same" else format if format in KEPT else "columns"
    assert text == (KEPT if target == format else WRITTEN)[target]


@given(st.lists(CELL, min_size=1, max_size=5), st.data())
def test_conllu_of_text_is_valid(words, data):
    tags = data.draw(st.lists(CELL, min_size=len(words), max_size=len(words)))
    sentence = Sentence(words, None, [], [], 1, "text")
    text = make_writer(sentence, "conllu", "xpos")(sentence, tags)
    (tokens,) = reference.parse_incr(io.StringIO(text))
    assert [(token["id"], token["form"]) for token in tokens] == list(enumerate(words, 1))
    assert [line.split("\t")[4] for line in text.splitlines() if line] == tags


@pytest.mark.parametrize("word", ["", "a\tb", "a\nb", "a\rb"])
@pytest.mark.parametrize("output", ["columns", "conllu"])
def test_words_that_do_not_fit_into_a_cell_are_refused(word, output):
    sentence = Sentence([word], None, [json.dumps({"tokens": [word]})], [], 1, "jsonl")
    with pytest.raises(ValueError, match=r"`words` must be non-empty and contain no separator .*jsonl"):
        make_writer(sentence, output, "4")(sentence, ["N"])


@pytest.mark.parametrize(
    ("output", "tag", "message"),
    [
        ("xml", None, "`output_format` must be one of 'same', 'conllu', 'columns', 'jsonl', got 'xml'"),
        ("conllu", None, "`tag` must name a column of CoNLL-U after the form, got last"),
        ("conllu", "form", "`tag` must name a column of CoNLL-U after the form, got form"),
        ("conllu", "11", "got 11"),
        ("columns", "upos", "`tag` must be column numbers from 2, or 'last', for a column file, got upos"),
        ("columns", "1", "got 1"),
        ("columns", "colour", "`tag` must consist of"),
    ],
)
def test_messages(output, tag, message):
    sentence = Sentence(["a"], None, [], [], 1, "text")
    with pytest.raises(ValueError, match=message):
        make_writer(sentence, output, tag, layout=Layout("columns", "last", 2))
