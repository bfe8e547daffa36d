"""`linearcore tag`: from a file to a tagger and back, and one line for whatever is wrong."""

import io
import json
import lzma
import sys

import pytest

from linearcore.cli import main
from tests.fresh_python import fresh_python
from tests.tagged_text import conllu, sentences, write_conllu

QUICK = ("--epochs", "8", "--tokens", "128", "--hidden", "16")


def run(*words):
    with pytest.raises(SystemExit) as left:
        main(["tag", *map(str, words)])
    return int(left.value.code or 0)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tag")
    train, test = write_conllu(folder / "train.conllu", 200), write_conllu(folder / "test.conllu", 40, seed=1)
    words = ("--train", train, "--tag", "upos+feats", "--out", folder / "model", *QUICK)
    assert run("train", *words) == 0
    return folder, test


def test_train_says_what_came_of_it(tmp_path, capsys):
    train = write_conllu(tmp_path / "train.conllu", 60)
    assert run("train", "--train", train, "--dev", train, "--tag", "upos", "--out", tmp_path / "m", *QUICK) == 0
    out, err = capsys.readouterr()
    assert "% of the dev words are right (epoch" in out and "2 tags, 60 sentences to learn from, 60 to stop by" in out
    assert f"linearcore tag eval {tmp_path / 'm'} FILE" in out
    assert 4 < err.count("words/s") <= 8 and "loss" in err and "dev" in err


def test_train_json(tmp_path, capsys):
    train = write_conllu(tmp_path / "train.conllu", 60)
    words = ("--train", train, "--tag", "upos", "--loss", "ce", "--out", tmp_path / "m", "--json", *QUICK)
    assert run("train", *words) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sentences"] == {"train": 54, "dev": 6}
    assert told["settings"]["loss"] == "ce" and 4 < len(told["epochs"]) <= 8
    assert 0 <= told["dev_accuracy"] <= 100


def test_predict_changes_the_tags_and_nothing_else(files, capsys):
    folder, test = files
    assert run("predict", folder / "model", test) == 0
    out = capsys.readouterr().out
    before, after = (text.splitlines() for text in (test.read_text(), out))
    assert len(before) == len(after)
    changed = 0
    for old, new in zip(before, after, strict=True):
        if old.startswith("#") or not old:
            assert new == old
            continue
        old_cells, new_cells = old.split("\t"), new.split("\t")
        assert [old_cells[i] for i in (0, 1, 2, 4, 6, 7, 8, 9)] == [new_cells[i] for i in (0, 1, 2, 4, 6, 7, 8, 9)]
        changed += (old_cells[3], old_cells[5]) != (new_cells[3], new_cells[5])
    assert changed < 0.3 * len(before)


def test_predict_reads_standard_input(files, capsys, monkeypatch):
    folder, test = files
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(test.read_bytes()), encoding="utf-8"))
    assert run("predict", folder / "model") == 0
    piped = capsys.readouterr().out
    assert run("predict", folder / "model", test) == 0
    assert piped == capsys.readouterr().out


def test_eval_agrees_with_predict(files, capsys, tmp_path):
    folder, test = files
    packed = tmp_path / "test.conllu.xz"
    packed.write_bytes(lzma.compress(test.read_bytes()))
    assert run("eval", folder / "model", packed, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert run("predict", folder / "model", test) == 0
    tags = [(cells[3], cells[5]) for line in capsys.readouterr().out.splitlines() if len(cells := line.split("\t")) == 10]
    gold = [tuple(tag.split(" ")) for _, own in sentences(40, seed=1) for tag in own]
    right = sum(one == other for one, other in zip(tags, gold, strict=True))
    assert told["accuracy"] == pytest.approx(100 * right / len(gold))
    assert told["tokens"] == len(gold) and told["accuracy"] > 70


def test_eval_prints_tables(files, capsys):
    folder, test = files
    assert run("eval", folder / "model", test) == 0
    out = capsys.readouterr().out
    for word in ("unknown", "NOUN", "recall"):
        assert word in out


def test_eval_of_entities(tmp_path, capsys):
    pairs = ["Ann B-PER\nmet O\nBob B-PER\n", "in O\nNew B-LOC\nYork I-LOC\n"] * 30
    (tmp_path / "ner.txt").write_text("\n".join(pairs))
    ner = tmp_path / "ner.txt"
    assert run("train", "--train", ner, "--dev", ner, "--out", tmp_path / "m", *QUICK) == 0
    capsys.readouterr()
    assert run("eval", tmp_path / "m", tmp_path / "ner.txt", "--json") == 0
    assert json.loads(capsys.readouterr().out)["entities"]["f1"] == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train", "--train", "nowhere.conllu", "--tag", "upos", "--out", "m"), "nowhere.conllu: "),
        (("train", "--train", "{test}", "--tag", "colour", "--out", "m"), "`tag` must be made of id, form"),
        (("train", "--train", "{test}", "--out", "m"), "this is CoNLL-U, which has no column last; name one"),
        (("train", "--train", "{test}", "--tag", "xpos", "--out", "m"), "column xpos is _ throughout"),
        (("train", "--train", "{test}", "--tag", "upos", "--loss", "mse", "--out", "m"), "`loss` must be one of"),
        (("train", "--train", "{test}", "--tag", "upos", "--out", "{test}"), "cannot write"),
        (("train", "--train", "{test}", "--tag", "upos", "--device", "abacus", "--out", "m"), "`--device` must be"),
        (("train", "--train", "{test}", "--tag", "upos", "--inflate", "1", "--out", "m"), "`inflate` must be at least 2"),
        (("train", "--train", "{test}", "--tag", "upos", "--encoder", "transformer:/nowhere", "--out", "m"), "/nowhere"),
        (("predict", "{test}.model", "{test}"), "must be a saved tagger"),
        (("predict", "{model}", "nowhere"), "nowhere: "),
        (("eval", "{model}", "{test}", "--tag", "colour"), "`tag` must be made of"),
    ],
)
def test_what_is_wrong_takes_one_line(files, words, message, capsys, tmp_path, monkeypatch):
    folder, test = files
    monkeypatch.chdir(tmp_path)
    assert run(*(word.format(test=test, model=folder / "model") for word in words)) == 2
    err = capsys.readouterr().err
    last = err.strip().splitlines()[-1]
    assert last.startswith("linearcore: ") and message in last
    assert "Traceback" not in err


def test_what_was_tagged_before_a_fault_is_printed(files, capsys, tmp_path):
    folder, _ = files
    broken = tmp_path / "broken.conllu"
    broken.write_text(conllu(sentences(3)) + "1\tone\ttwo\n\n")
    assert run("predict", folder / "model", broken) == 2
    out, err = capsys.readouterr()
    assert out.count("# sent_id") == 3
    assert f"{broken}:" in err


def test_a_reader_that_has_had_enough_is_no_error(files):
    folder, test = files
    code = f"from linearcore.cli import main; main(['tag', 'predict', {str(folder / 'model')!r}, {str(test)!r}])"
    command = f"import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {code!r}], stdout=subprocess.PIPE, "
    command += "stderr=subprocess.PIPE, text=True); p.stdout.readline(); p.stdout.close(); print(p.wait(), p.stderr.read())"
    found = fresh_python("-c", command)
    assert found.stdout.split()[0] == "0" and "Error" not in found.stdout, found.stdout + found.stderr
