"""`linearcore tag predict` with confidences, margins, k-best sequences and search options; `tag train --constraints`."""

import json

import pytest

from linearcore.cli import main
from linearcore.tagging import Tagger, TaggingModel, Vocabulary
from linearcore.tagging.encoders import BiLSTM
from tests.tagged_text import sentences, write_conllu

WORDS = [words for words, _ in sentences(6, seed=1)]


def run(*words):
    with pytest.raises(SystemExit) as left:
        main(["tag", *map(str, words)])
    return int(left.value.code or 0)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")
    vocabulary = Vocabulary.of((words, [tag.split(" ")[0] for tag in tags]) for words, tags in sentences(20))
    Tagger(TaggingModel(BiLSTM(vocabulary.words), vocabulary.tags, "crf"), vocabulary, "upos").save(folder / "model")
    write_conllu(folder / "new.conllu", 6, seed=1)
    (folder / "new.jsonl").write_text("".join(json.dumps({"id": 1, "tokens": words}) + "\n" for words in WORDS))
    (folder / "new.txt").write_text("\n\n".join("\n".join(words) for words in WORDS) + "\n")
    expected = list(Tagger.load(folder / "model").predict(WORDS, confidences=True, margin=True, kbest=3))
    return folder, expected


def output(capsys, *words):
    assert run("predict", *words) == 0
    return capsys.readouterr().out


def test_json_lines(files, capsys):
    folder, expected = files
    options = ("--format", "jsonl", "--confidence", "--margin", "--kbest", "3")
    rows = [json.loads(line) for line in output(capsys, folder / "model", folder / "new.jsonl", *options).splitlines()]
    for row, words, prediction in zip(rows, WORDS, expected, strict=True):
        assert list(row) == ["id", "tokens", "tags", "confidences", "margin", "kbest"]
        assert (row["tokens"], row["tags"]) == (words, prediction.tags)
        assert row["confidences"] == pytest.approx(prediction.confidences, abs=1e-5)
        assert row["margin"] == pytest.approx(prediction.margin, abs=1e-4)
        assert [item["tags"] for item in row["kbest"]] == [item.tags for item in prediction.kbest]
        assert [item["score"] for item in row["kbest"]] == pytest.approx([item.score for item in prediction.kbest], abs=1e-4)
    plain = output(capsys, folder / "model", folder / "new.jsonl", "--format", "jsonl", "--unbuffered").splitlines()
    assert [list(json.loads(line)) for line in plain] == [["id", "tokens", "tags"]] * len(WORDS)


def test_columns(files, capsys):
    folder, expected = files
    text = output(capsys, folder / "model", folder / "new.txt", "--format", "columns", "--tag", "2", "--confidence")
    blocks = [[line.split("\t") for line in block.split("\n")] for block in text.strip().split("\n\n")]
    for block, words, prediction in zip(blocks, WORDS, expected, strict=True):
        assert [row[:2] for row in block] == [list(pair) for pair in zip(words, prediction.tags, strict=True)]
        assert [float(row[2]) for row in block] == pytest.approx(prediction.confidences, abs=1e-4)


def test_conllu(files, capsys, tmp_path):
    folder, expected = files
    options = ("--format", "conllu", "--tag", "upos", "--confidence", "--margin")
    text = output(capsys, folder / "model", folder / "new.conllu", *options)
    blocks = [block.split("\n") for block in text.strip().split("\n\n")]
    for block, prediction in zip(blocks, expected, strict=True):
        assert [line.split(" = ")[0] for line in block[:2]] == ["# sent_id", "# margin"]
        assert float(block[1].split(" = ")[1]) == pytest.approx(prediction.margin, abs=1e-3)
        misc = [line.split("\t")[9].split("|") for line in block[2:]]
        assert [items[0] for items in misc] == [f"Note={number}" for number in range(1, len(misc) + 1)]
        found = [float(items[1].removeprefix("Confidence=")) for items in misc]
        assert found == pytest.approx(prediction.confidences, abs=1e-4)
    (tmp_path / "again.conllu").write_text(text)
    assert output(capsys, folder / "model", tmp_path / "again.conllu", *options) == text


@pytest.mark.parametrize(
    "name, options, fact",
    [
        ("new.txt", ("--format", "columns", "--kbest", "2"), "`output_format` must be jsonl for kbest, got columns"),
        ("new.txt", ("--format", "columns", "--margin"), "`output_format` must be conllu or jsonl for margin, got columns"),
        ("new.conllu", ("--format", "conllu", "--tag", "upos", "--kbest", "2"), "must be jsonl for kbest, got conllu"),
        ("new.conllu", ("--format", "conllu", "--tag", "misc", "--confidence"), "`tag` must not be misc"),
        (
            "new.jsonl",
            ("--format", "jsonl", "--tag", "margin", "--margin"),
            "`tag` must be another key than that of the margin",
        ),
        ("new.jsonl", ("--format", "jsonl", "--kbest", "0"), "`kbest` must be a positive integer, got 0"),
        ("new.jsonl", ("--format", "jsonl", "--beam", "-1"), "`beam` must be a beam width"),
        ("new.jsonl", ("--format", "jsonl", "--beam", "2", "--margin"), "`beam` must be None or 0"),
        ("new.jsonl", ("--format", "jsonl", "--batch-tokens", "0"), "`batch_tokens` must be a positive integer"),
    ],
)
def test_options_that_are_refused(files, capsys, name, options, fact):
    folder, _ = files
    assert run("predict", folder / "model", folder / name, *options) == 2
    out, err = capsys.readouterr()
    assert out == "" and fact in err and len(err.strip().splitlines()) == 1


def test_search_options(files, capsys):
    folder, expected = files
    for options in (("--beam", "0"), ("--beam", "2"), ("--batch-tokens", "1")):
        text = output(capsys, folder / "model", folder / "new.jsonl", "--format", "jsonl", *options)
        assert [json.loads(line)["tags"] for line in text.splitlines()] == [prediction.tags for prediction in expected]


def test_constraints_of_train(tmp_path, capsys):
    data = "a\tB-X\nb\tI-X\nc\tO\n\n" * 20
    (tmp_path / "ner.txt").write_text(data)
    quick = ("train", "--train", tmp_path / "ner.txt", "--epochs", "1", "--hidden", "4", "--embedding", "4")
    assert run(*quick, "--out", tmp_path / "auto") == 0
    assert "--constraints bio" in capsys.readouterr().err
    assert Tagger.load(tmp_path / "auto").model.settings()["constraints"] == "bio"
    (tmp_path / "rules.txt").write_text("after O O B-X\n")
    assert run(*quick, "--out", tmp_path / "rules", "--constraints", tmp_path / "rules.txt") == 0
    assert Tagger.load(tmp_path / "rules").model.settings()["constraints"] == "after O O B-X\n"
    for value, fact in (("iob", "a file of rules, got 'iob'"), ("bioes", "must be usable in BIOES, got 'B-X'")):
        capsys.readouterr()
        assert run(*quick, "--out", tmp_path / "no", "--constraints", value) == 2
        err = capsys.readouterr().err
        assert fact in err and len(err.strip().splitlines()) == 1


@pytest.fixture(scope="module")
def joint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("joint")
    vocabulary = Vocabulary.of(sentences(20))
    Tagger(TaggingModel(BiLSTM(vocabulary.words), vocabulary.tags), vocabulary, "upos+feats").save(folder / "model")
    return folder / "model", write_conllu(folder / "new.conllu", 6, seed=1)


def cells(text):
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]


def test_some_columns_of_a_joint_tagger_are_written_by_name(joint, capsys):
    before = cells(joint[1].read_text())
    both = cells(output(capsys, *joint))
    assert cells(output(capsys, *joint, "--tag", "feats+upos")) == both
    only = cells(output(capsys, *joint, "--tag", "upos"))
    assert [row[3] for row in only] == [row[3] for row in both] and [row[5] for row in only] == [row[5] for row in before]
    written = json.loads(output(capsys, *joint, "--tag", "feats", "--output-format", "jsonl").splitlines()[0])
    assert written["feats"] == [row[5] for row in both][: len(written["feats"])]


@pytest.mark.parametrize(("options", "fact"), [
    (("--tag", "xpos"), "`tag` must consist of columns that the tagger predicts (upos+feats), got xpos"),
    (("--tag", "upos", "--kbest", "2", "--output-format", "jsonl"), "`tag` must be upos+feats or omitted with kbest"),
])  # fmt: skip
def test_other_columns_of_a_joint_tagger_are_refused(joint, capsys, options, fact):
    assert run("predict", *joint, *options) == 2
    out, err = capsys.readouterr()
    assert fact in err and err.count("\n") == 1 and out == ""
