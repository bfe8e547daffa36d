"""Sentences written back with other tags."""

import dataclasses

import pytest

from linearcore.tagging.readers import Sentence, TagColumns, make_writer

CONLLU = Sentence(
    ["do", "n't"],
    None,
    [
        "# text = don't",
        "1-2\tdon't" + "\t_" * 8,
        "1\tdo\tdo\tAUX\tVBP\t_\t0\troot\t_\t_",
        "2\tn't\tnot\tPART\tRB" + "\t_" * 5,
    ],
    [2, 3],
    line=4,
    format="conllu",
)


def of_lines(*lines: str) -> Sentence:
    return Sentence([line.split()[0] for line in lines], None, list(lines), list(range(len(lines))), line=1)


def test_a_sentence_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        CONLLU.line = 3
    assert not hasattr(CONLLU, "__dict__")


def test_only_the_tag_column_of_words_changes():
    lines = CONLLU.tagged_lines(["X", "Y"], TagColumns.parse("xpos"))
    assert lines[:2] == CONLLU.lines[:2]
    assert lines[2:] == ["1\tdo\tdo\tAUX\tX\t_\t0\troot\t_\t_", "2\tn't\tnot\tPART\tY" + "\t_" * 5]
    assert CONLLU.lines[2].split("\t")[4] == "VBP", "the sentence itself is as before"


def test_combinations_are_parted_into_their_columns():
    lines = CONLLU.tagged_lines(["VERB Tense=Pres", "ADV _"], TagColumns.parse("upos+feats"))
    assert [line.split("\t")[3:6] for line in lines[2:]] == [["VERB", "VBP", "Tense=Pres"], ["ADV", "RB", "_"]]


def test_spaces_between_columns_stay_as_many():
    sentence = of_lines("  EU   NNP  B-NP O ", "rejects VBZ B-VP O")
    assert sentence.tagged_lines(["I-ORG", "X"], TagColumns.parse("last")) == [
        "  EU   NNP  B-NP I-ORG ",
        "rejects VBZ B-VP X",
    ]
    assert sentence.tagged_lines(["longer 1", "p 2"], TagColumns.parse("2+4"))[0] == "  EU   longer  B-NP 1 "
    assert sentence.tagged_lines(["1 longer", "2 p"], TagColumns.parse("4+2"))[0] == "  EU   longer  B-NP 1 "


def test_a_column_after_the_last_is_added():
    assert of_lines("EU NNP").tagged_lines(["O"], TagColumns.parse("3")) == ["EU NNP O"]
    assert of_lines("EU\tNNP").tagged_lines(["O"], TagColumns.parse("3")) == ["EU\tNNP\tO"]
    assert of_lines("EU\tNNP").tagged_lines(["1 2"], TagColumns.parse("4+3")) == ["EU\tNNP\t2\t1"]


def test_bare_words_are_never_replaced():
    for columns in ("last", "2"):
        assert of_lines("EU").tagged_lines(["O"], TagColumns.parse(columns)) == ["EU\tO"]


@pytest.mark.parametrize(
    ("line", "columns", "tags", "message"),
    [
        ("EU\tNNP", "last", [], "`tags` must be as many as the 1 words, got 0"),
        (
            "EU\tNNP",
            "4",
            ["O"],
            "`columns` must be among the file's 2 columns, or the next one, got 4",
        ),
        ("EU NNP", "4", ["O"], "`columns` must be among the file's 2 columns, or the next one, got 4"),
        (
            "EU\tNNP",
            "2",
            [""],
            "`tags` must be non-empty and contain no separator of cells or lines, got ''",
        ),
        ("EU\tNNP", "2", ["a\tb"], r"separator of cells or lines, got 'a\\tb'"),
        ("EU\tNNP", "2", ["a\nb"], r"separator of cells or lines, got 'a\\nb'"),
        ("EU\tNNP", "2", ["a\rb"], r"separator of cells or lines, got 'a\\rb'"),
        ("EU NNP", "2", ["a b"], "got 'a b'"),
    ],
)
def test_messages(line, columns, tags, message):
    with pytest.raises(ValueError, match=message):
        of_lines(line).tagged_lines(tags, TagColumns.parse(columns))


def test_a_cell_of_a_tab_separated_file_may_hold_spaces():
    assert of_lines("EU\tNNP").tagged_lines(["proper noun"], TagColumns.parse("2")) == ["EU\tproper noun"]


def test_writing_ends_with_a_blank_line():
    assert make_writer(CONLLU, tag="xpos")(CONLLU, ["VBP", "RB"]) == "\n".join(CONLLU.lines) + "\n\n"
