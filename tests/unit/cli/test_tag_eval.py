"""`linearcore tag eval` by column, and its tables on a terminal and in a file."""

import io
import json

import pytest
from rich.console import Console

from linearcore.cli import _tag_eval, main
from linearcore.tagging import Evaluation, Tagger, TaggingModel, Vocabulary, evaluation_report
from linearcore.tagging.encoders import BiLSTM
from tests.tagged_text import sentences, write_conllu


def run(*words):
    with pytest.raises(SystemExit) as left:
        main(["tag", *map(str, words)])
    return int(left.value.code or 0)


def save_tagger(folder, columns, keep):
    """Saves an untrained tagger; `keep` makes a tag from UPOS and FEATS."""
    tagged = [(words, [keep(*tag.split(" ")) for tag in tags]) for words, tags in sentences(20)]
    vocabulary = Vocabulary.of(tagged)
    Tagger(TaggingModel(BiLSTM(vocabulary.words), len(vocabulary.tags)), vocabulary, columns).save(folder)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("eval")
    save_tagger(folder / "joint", "upos+feats", lambda upos, feats: f"{upos} {feats}")
    save_tagger(folder / "upos", "upos", lambda upos, feats: upos)
    return folder, write_conllu(folder / "test.conllu", 20, seed=1)


def test_a_joint_tagger_is_evaluated_by_column(files, capsys):
    folder, test = files
    found = {}
    for columns in ("upos", "feats", "upos+feats", "4"):
        assert run("eval", folder / "joint", test, "--tag", columns, "--json") == 0
        found[columns] = json.loads(capsys.readouterr().out)
    assert run("predict", folder / "joint", test) == 0
    rows = [cells for line in capsys.readouterr().out.splitlines() if len(cells := line.split("\t")) == 10]
    gold = [tag.split(" ") for _, tags in sentences(20, seed=1) for tag in tags]
    upos = 100 * sum(row[3] == tag[0] for row, tag in zip(rows, gold, strict=True)) / len(gold)
    feats = 100 * sum(row[5] == tag[1] for row, tag in zip(rows, gold, strict=True)) / len(gold)
    assert found["upos"]["accuracy"] == found["4"]["accuracy"] == pytest.approx(upos) and upos > 0
    assert found["feats"]["accuracy"] == pytest.approx(feats)
    both = found["upos+feats"]
    assert both["columns"]["upos"]["accuracy"] == pytest.approx(upos)
    assert both["columns"]["feats"]["accuracy"] == both["universal_features"]["accuracy"] == pytest.approx(feats)
    assert list(both["features"]) == ["Case"] and both["accuracy"] <= min(upos, feats)
    assert both["features"]["Case"]["support"] == sum(tag[1] != "_" for tag in gold)


@pytest.mark.parametrize(("model", "tag"), [("upos", "xpos"), ("upos", "upos+feats"), ("joint", "xpos"), ("upos", "5")])
def test_a_column_that_is_not_predicted_is_refused(files, capsys, model, tag):
    folder, test = files
    assert run("eval", folder / model, test, "--tag", tag) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert f"({Tagger.load(folder / model).columns})" in line and f"got {'xpos' if tag == '5' else tag};" in line


def test_from_python(files):
    tagger = Tagger.load(files[0] / "joint")
    assert tagger.evaluation("upos").columns().keys() == {"upos"}
    with pytest.raises(ValueError, match="`tag` must consist of columns that the tagger predicts"):
        tagger.evaluate([], columns="xpos")


LONG = "NOUN " + "|".join(f"Feature{number:02}=Value" for number in range(7)) + "|Number="


@pytest.fixture
def long_names() -> Evaluation:
    evaluation = Evaluation(columns="upos+feats")
    evaluation.add(["a", "b"], [LONG + "Sing", LONG + "Plur"], [LONG + "Sing", LONG + "Sing"])
    return evaluation


def test_in_a_file_every_tag_has_one_row(long_names, capsys):
    _tag_eval._print([long_names], all_tags=False)
    lines = capsys.readouterr().out.splitlines()
    for name, rows in ((LONG + "Sing", 2), (LONG + "Plur", 2)):  # In the table of tags and in that of confusions.
        assert sum(name in line for line in lines) == rows
    assert not any("…" in line for line in lines)


@pytest.mark.parametrize("width", (80, 60))
def test_on_a_terminal_names_are_wrapped_and_never_cut(long_names, width):
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=True, color_system=None)
    for part in evaluation_report(long_names)[1:]:
        console.print(part)
    text = stream.getvalue()
    assert "…" not in text and max(map(len, text.splitlines())) <= width
    # The first column of the tables, without line breaks.
    names = "".join(line.split("│")[1].strip() for line in text.splitlines() if line.startswith("│"))
    for name in (LONG + "Sing", LONG + "Plur"):
        assert name.replace(" ", "") in names.replace(" ", "")
