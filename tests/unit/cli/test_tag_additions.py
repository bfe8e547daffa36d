"""`linearcore tag train` with word vectors, composed tags, a cost and a tagger to continue from."""

import json

import pytest

from linearcore.cli import main
from linearcore.tagging import Tagger
from tests.tagged_text import sentences, write_conllu


def run(*words):
    with pytest.raises(SystemExit) as left:
        main(["tag", *map(str, words)])
    return int(left.value.code or 0)


def test_cost(tmp_path, capsys):
    tags = ("B-X", "I-X", "O")
    text = "\n\n".join("\n".join(f"word{place}\t{tag}" for place, tag in enumerate(tags)) for _ in range(20))
    (tmp_path / "data.tsv").write_text(text + "\n")
    (tmp_path / "settings.toml").write_text('cost = "span-f1"\nhidden = 4\nepochs = 1\n')
    command = ("train", "--train", tmp_path / "data.tsv", "--config", tmp_path / "settings.toml", "--json")
    assert run(*command, "--out", tmp_path / "one") == 0
    assert json.loads(capsys.readouterr().out)["settings"]["cost"] == "span-f1"
    assert Tagger.load(tmp_path / "one").model.cost.name == "span-f1"
    assert run("predict", tmp_path / "one", tmp_path / "data.tsv") == 0
    assert set(capsys.readouterr().out.split()) <= {*tags, "word0", "word1", "word2"}
    assert run(*command, "--cost", "edit", "--out", tmp_path / "two") == 0
    assert json.loads(capsys.readouterr().out)["settings"]["cost"] == "edit"


def test_vectors_composed_tags_and_continued_training(tmp_path, capsys):
    data, more = write_conllu(tmp_path / "data.conllu", 40), write_conllu(tmp_path / "more.conllu", 30, seed=5)
    words = sorted({word for words, _ in sentences(40) for word in words})
    (tmp_path / "my.vec").write_text("".join(f"{word} {len(word)}.5 {place}\n" for place, word in enumerate(words)))
    common = ("--tag", "upos+feats", "--epochs", 1, "--compose", "--json")
    command = ("train", "--train", data, "--hidden", 8, "--vectors", tmp_path / "my.vec", "--max-vectors", 50, *common)
    assert run(*command, "--out", tmp_path / "one") == 0
    settings = json.loads(capsys.readouterr().out)["settings"]
    assert (settings["vectors"], settings["max_vectors"], settings["compose"]) == ("my.vec", 50, True)
    command = ("train", "--train", more, "--continue-from", tmp_path / "one", *common)
    assert run(*command, "--out", tmp_path / "two") == 0
    assert json.loads(capsys.readouterr().out)["settings"]["continue_from"] == "one"
    tagger = Tagger.load(tmp_path / "two")
    assert len(tagger.model.encoder.vectors.words) == 50 and tagger.model.composition is not None
    assert run("eval", tmp_path / "two", more, "--json") == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 0


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        (("--tag", "upos", "--compose"), "with `compose`, got"),
        (("--tag", "upos", "--vectors", "nowhere.vec"), "`vectors` must be"),
        (("--tag", "upos", "--vectors", "data.conllu"), "`vectors` must be word vectors"),
        (("--tag", "upos", "--max-vectors", "5"), "`max_vectors` must be None without `vectors`"),
        (("--tag", "upos", "--unseen-tags", "5"), "`unseen_tags` must be None without `compose`"),
        (("--tag", "upos", "--continue-from", "nowhere"), "nowhere must be a saved tagger"),
        (("--tag", "upos", "--cost", "span-f1"), "`cost` must fit the tags"),
        (("--tag", "upos", "--cost", "f1"), "`cost` must be one of"),
        (("--tag", "upos", "--cost", "edit", "--loss", "crf"), "`cost` must be None with loss 'crf'"),
        (("--tag", "upos", "--cost", "edit", "--compile"), "`compiled` must be False with `cost`"),
        (("--tag", "upos", "--vectors", "my.vec", "--encoder", "transformer:x"), "`vectors` must be None with encoder"),
    ],
)
def test_one_line_and_exit_code_2(options, fact, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = write_conllu(tmp_path / "data.conllu", 20)
    assert run("train", "--train", data, "--out", tmp_path / "model", *options) == 2
    err = capsys.readouterr().err
    assert fact in err and err.count("\n") == 1
    assert not (tmp_path / "model" / "linearcore.json").exists()
