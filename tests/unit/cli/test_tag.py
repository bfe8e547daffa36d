"""`linearcore tag`: from a file to a tagger and back, and one line for whatever is wrong."""

import contextlib
import io
import json
import lzma
import os
import subprocess
import sys

import pytest
import torch

from linearcore.cli import main
from linearcore.tagging import Tagger
from tests.fresh_python import SOURCE, fresh_python
from tests.tagged_text import conllu, sentences, write_conllu

QUICK = ("--epochs", "8", "--batch-tokens", "128", "--hidden", "16")


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
    assert "Validation accuracy " in out and "2 tags, 60 training sentences, 60 validation sentences" in out
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


def test_train_takes_options_of_the_loss(tmp_path, capsys, monkeypatch):
    traced = []
    # Without a compiler, which would take a minute; tests/unit/tagging/test_steps.py has one.
    monkeypatch.setattr(torch, "compile", lambda loss: traced.append(loss) or loss)
    train = write_conllu(tmp_path / "train.conllu", 60)
    options = ("--unary", "0.5", "--sharpness", "4", "--rank", "2", "--epochs", "1", "--hidden", "16", "--compile")
    assert run("train", "--train", train, "--tag", "upos", "--out", tmp_path / "m", "--json", *options) == 0
    told = json.loads(capsys.readouterr().out)["settings"]
    assert (told["unary"], told["sharpness"], told["compiled"]) == (0.5, 4.0, True) and len(traced) == 1
    head = Tagger.load(tmp_path / "m").model.head
    assert (head.unary, head.surrogate.sharpness) == (0.5, 4.0)


def test_several_files_are_read_in_order(tmp_path, capsys):
    one, two = write_conllu(tmp_path / "one.conllu", 30), write_conllu(tmp_path / "two.conllu", 50, seed=1)
    both = tmp_path / "both.conllu"
    both.write_text(one.read_text() + two.read_text())
    options = ("--tag", "upos", "--epochs", "1", "--hidden", "4", "--json")
    several = ("--train", one, "--train", two, "--dev", one, "--dev", two)
    assert run("train", *several, *options, "--out", tmp_path / "several") == 0
    assert json.loads(capsys.readouterr().out)["sentences"] == {"train": 80, "dev": 80}
    # The same data in one file is the same run.
    assert run("train", "--train", both, "--dev", both, *options, "--out", tmp_path / "several") == 0
    assert json.loads(capsys.readouterr().out)["was_finished"]
    assert run("train", "--train", two, "--train", one, "--dev", both, *options, "--out", tmp_path / "several") == 2
    assert "with another train;" in capsys.readouterr().err
    columns, lines = tmp_path / "columns.txt", tmp_path / "lines.jsonl"
    columns.write_text("a\tNOUN\n\n" * 20)
    lines.write_text('{"tokens": ["a"], "tags": ["NOUN"]}\n' * 20)
    assert run("train", "--train", columns, "--train", lines, "--out", tmp_path / "mixed") == 2
    assert "`--train and --dev` must be files of one format, got columns and jsonl" in capsys.readouterr().err
    assert run("train", "--train", columns, "--dev", lines, "--out", tmp_path / "mixed") == 2
    assert "`--train and --dev` must be files of one format, got columns and jsonl" in capsys.readouterr().err
    assert run("train", "--train", one, "--tag", "form", "--out", tmp_path / "form") == 2
    assert "no tag column form" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--train", "--dev"])
def test_the_last_column_is_the_same_in_all_files(option, tmp_path, capsys):
    two, three = tmp_path / "two.txt", tmp_path / "three.txt"
    two.write_text("a\tNOUN\n\n" * 20)
    three.write_text("a\tNOUN\tB-X\n\n" * 20)
    words = ("train", "--train", two, option, three, "--epochs", "1", "--hidden", "4", "--out", tmp_path / "model")
    assert run(*words) == 2
    assert "`--tag` must be a number for files with different numbers of columns, got last" in capsys.readouterr().err
    assert run(*words, "--tag", "2") == 0
    assert Tagger.load(tmp_path / "model").vocabulary.tags == ["NOUN"]


def test_a_run_whose_last_epoch_was_the_best_says_so(tmp_path, capsys):
    train = write_conllu(tmp_path / "train.conllu", 60)
    options = ("train", "--train", train, "--tag", "upos", "--hidden", "8", "--batch-tokens", "128")
    assert run(*options, "--epochs", "1", "--out", tmp_path / "short") == 0
    assert "The last epoch was the best" in (out := capsys.readouterr().out) and "--epochs 2" in out
    assert (
        run(*options, "--epochs", "20", "--patience", "2", "--lr", "0.05", "--dev", train, "--out", tmp_path / "long") == 0
    )
    assert "The last epoch was the best" not in capsys.readouterr().out


def test_a_finished_tagger_is_found_with_and_without_compiling(tmp_path, capsys):
    train = write_conllu(tmp_path / "train.conllu", 60)
    options = ("train", "--train", train, "--tag", "upos", "--out", tmp_path / "m", "--epochs", "1", "--hidden", "16")
    assert run(*options) == run(*options, "--compile") == 0


def test_a_compiler_that_is_not_there_is_said_in_a_line(tmp_path, capsys, monkeypatch):
    from torch._inductor.exc import InductorError

    def broken(loss):
        def compiled(*given):
            raise InductorError(RuntimeError("no compiler\nand a trace"), None)

        return compiled

    monkeypatch.setattr(torch, "compile", broken)
    train = write_conllu(tmp_path / "train.conllu", 60)
    assert run("train", "--train", train, "--tag", "upos", "--out", tmp_path / "m", "--hidden", "16", "--compile") == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert "torch.compile" in error and "without --compile" in error


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


def on_a_terminal(command, folder):
    """Runs a command of the shell on a pseudo-terminal; what it showed there."""
    shown = bytearray()
    with contextlib.ExitStack() as stack:
        master, slave = os.openpty()
        stack.callback(os.close, master)
        environment = os.environ | {"PYTHONPATH": str(SOURCE), "COLUMNS": "80", "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(command, shell=True, cwd=folder, stdout=slave, stderr=slave, stdin=slave, env=environment)
        os.close(slave)
        while True:
            try:
                chunk = os.read(master, 65536)
            except OSError:  # Linux says so when the last one has closed the other end.
                break
            if not chunk:
                break
            shown += chunk
    assert process.wait() == 0
    return shown.decode()


def test_on_a_terminal_a_redirected_file_holds_the_tags_and_the_screen_the_progress(files, tmp_path, capsys):
    folder, test = files
    assert run("predict", folder / "model", test) == 0
    expected = capsys.readouterr().out
    code = "import sys; from linearcore.cli import main; main(sys.argv[1:])"
    command = f"{sys.executable} -c '{code}' tag predict {folder / 'model'} {test}"
    shown = on_a_terminal(f"{command} > tagged.conllu", tmp_path)
    assert (tmp_path / "tagged.conllu").read_text() == expected
    assert "tagging test.conllu" in shown and "lemma-" not in shown
    # Without a file the tags are on the screen, and no bar is among them.
    shown = on_a_terminal(command, tmp_path)
    assert shown.replace("\r\n", "\n") == expected


def test_predict_knows_where_the_tags_go(files, tmp_path, capsys, monkeypatch):
    folder, test = files
    (tmp_path / "words.txt").write_text("lamdoro\ntikselit\n\nbranmorum\n")
    assert run("predict", folder / "model", tmp_path / "words.txt", "--format", "columns") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["lamdoro", "tikselit", "", "branmorum", ""]
    assert all(line.split("\t")[1].split(" ")[0] in {"NOUN", "VERB"} for line in lines if line)
    (tmp_path / "two.txt").write_text("lamdoro\tA\ntikselit\tB\n\n" * 20)
    assert run("train", "--train", tmp_path / "two.txt", "--out", tmp_path / "two", *QUICK) == 0
    capsys.readouterr()
    assert run("predict", tmp_path / "two", test, "--format", "conllu") == 2
    out, err = capsys.readouterr()
    assert out == "" and "`tag` must name a column of CoNLL-U after the form, got last; " in err
    assert run("predict", tmp_path / "two", test, "--tag", "xpos", "--format", "conllu") == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines() if line and line[0] != "#"]
    assert {row[4] for row in rows} <= {"A", "B"} and {row[3] for row in rows} == {"NOUN", "VERB"}
    assert run("predict", folder / "model", tmp_path / "words.txt", "--tag", "7", "--format", "columns") == 2
    assert "`columns` must be among the file's 1 columns, or the next one, got 7" in capsys.readouterr().err


def test_the_same_command_again_has_nothing_to_do(files, capsys):
    folder, _ = files
    words = ("--train", folder / "train.conllu", "--tag", "upos+feats", "--out", folder / "model")
    assert run("train", *words, *QUICK) == 0
    assert f"{folder / 'model'} already contains this tagger" in capsys.readouterr().out
    assert run("train", *words, *QUICK, "--seed", "5") == 2
    assert "holds a finished tagger with another seed; pass --fresh" in capsys.readouterr().err


def test_help_is_shown_where_it_is_wanted(capsys):
    assert run() == 0
    assert "linearcore tag predict model new.conllu > tagged.conllu" in capsys.readouterr().out
    assert run("train", "--bogus", "1") == 2
    assert "`linearcore tag train --help`" in capsys.readouterr().err


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
    assert out.splitlines()[0].endswith("sentences correct")


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
        (("train", "--train", "{test}", "--tag", "colour", "--out", "m"), "`tag` must consist of id, form"),
        (("train", "--train", "{test}", "--out", "m"), "the file is CoNLL-U, which has no tag column last"),
        (("train", "--train", "{test}", "--tag", "xpos", "--out", "m"), "column xpos contains only _"),
        (("train", "--train", "{test}", "--tag", "upos", "--loss", "mse", "--out", "m"), "`loss` must be one of"),
        (
            ("train", "--train", "{test}", "--tag", "upos", "--unary", "1", "--out", "m"),
            "`unary` must be a fraction in [0, 1)",
        ),
        (
            ("train", "--train", "{test}", "--tag", "upos", "--unary", "0.5", "--loss", "crf", "--out", "m"),
            "`unary` must be None with loss 'crf', got 0.5; omit it, or use loss 'lc'",
        ),
        (
            ("train", "--train", "{test}", "--tag", "upos", "--loss", "crf", "--compile", "--out", "m"),
            "`compiled` must be False with loss 'crf'",
        ),
        (
            ("train", "--train", "{test}", "--tag", "upos", "--sharpness", "0", "--out", "m"),
            "`sharpness` must be a positive",
        ),
        (("train", "--tag", "upos"), "missing --train and --out"),
        (("train", "--train", "{test}"), "missing --out"),
        (
            ("train", "--train", "{test}", "--tag", "upos", "--encoder", "transformer:x", "--hidden", "64", "--out", "m"),
            "`hidden` must be None with encoder transformer:x, got 64",
        ),
        (("train", "--train", "{test}", "--tag", "upos", "--out", "{test}"), "cannot write"),
        (("train", "--train", "{test}", "--tag", "upos", "--device", "abacus", "--out", "m"), "`--device` must be"),
        (("train", "--train", "{test}", "--tag", "upos", "--inflate", "1", "--out", "m"), "`inflate` must be at least 2"),
        (("train", "--train", "{test}", "--tag", "upos", "--encoder", "transformer:/nowhere", "--out", "m"), "/nowhere"),
        (("predict", "{test}.model", "{test}"), "must be a saved tagger"),
        (("predict", "{model}", "nowhere"), "nowhere: "),
        (("eval", "{model}", "{test}", "--tag", "colour"), "`tag` must consist of"),
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
