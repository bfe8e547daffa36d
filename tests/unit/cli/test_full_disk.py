"""A full disk ends every command with one line and exit code 2."""

import errno
import os
import sys
from pathlib import Path

import pytest

from linearcore.cli import main
from linearcore.tagging import Tagger, TaggingModel, Vocabulary
from linearcore.tagging.encoders import BiLSTM
from tests.tagged_text import sentences, write_conllu

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="wants /dev/full")
MESSAGE = f"cannot write standard output: {os.strerror(errno.ENOSPC).lower()}"


def run(*words):
    with pytest.raises(SystemExit) as left:
        main(list(map(str, words)))
    return int(left.value.code or 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with an untrained tagger, a file with few lines and one that fills the buffer of standard output."""
    folder = tmp_path_factory.mktemp("full")
    vocabulary = Vocabulary.of(sentences(20))
    Tagger(TaggingModel(BiLSTM(vocabulary.words), len(vocabulary.tags)), vocabulary, "upos+feats").save(folder / "model")
    write_conllu(folder / "short.conllu", 1)
    write_conllu(folder / "long.conllu", 200)
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("tag", "predict", "model", "long.conllu"),
        ("tag", "predict", "model", "short.conllu"),  # Only the last flush writes.
        ("tag", "eval", "model", "short.conllu"),
        ("tag", "eval", "model", "short.conllu", "--json"),
        ("certify", "--form", "centered", "--classes", "3", "--json"),
        ("--version",),
    ],
    ids=" ".join,
)
def test_standard_output(folder, words, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert run(*words) == 2
    err = capsys.readouterr().err
    assert err.strip().splitlines()[-1].startswith(f"linearcore: {MESSAGE}") and "Traceback" not in err


def test_an_error_message_is_printed_before_that_of_the_disk(folder, capsys, monkeypatch):
    """A file that is wrong is said, even if what was tagged before cannot be written."""
    monkeypatch.chdir(folder)
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert run("tag", "predict", "model", "nowhere") == 2
    assert "nowhere" in capsys.readouterr().err.strip().splitlines()[-1]


def test_training(folder, tmp_path, capsys, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    words = ("--tag", "upos", "--out", tmp_path / "m", "--epochs", "1", "--hidden", "8")
    assert run("tag", "train", "--train", folder / "short.conllu", "--dev", folder / "short.conllu", *words) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert str(tmp_path / "m" / "checkpoint") in last and "no space left" in last and "same command again" in last


@pytest.mark.parametrize(("left", "code", "text"), [(None, 0, ""), (3, 3, ""), ("no luck", 1, "no luck")])
def test_a_command_may_end_python_itself(monkeypatch, capsys, left, code, text):
    from linearcore.cli import _app

    def command(*arguments, **options):
        sys.exit(left)

    monkeypatch.setattr(_app, "app", command)
    assert run("tag") == code
    assert text in capsys.readouterr().err
