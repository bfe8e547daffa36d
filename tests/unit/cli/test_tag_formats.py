"""`linearcore tag`: formats of the input and the output, and twenty-odd files that are not what they should be."""

import gzip
import io
import json
import os
import subprocess
import sys
import threading

import pytest
import torch

from linearcore.cli import main
from linearcore.tagging import Tagger, TaggingModel, Vocabulary
from linearcore.tagging.encoders import BiLSTM
from linearcore.tagging.readers import Layout
from tests.fresh_python import SOURCE

LAYOUTS = {
    "conllu": Layout("conllu", "upos"),
    "two": Layout("columns", "last", 2),
    "four": Layout("columns", "last", 4),
    "jsonl": Layout("jsonl", "pos"),
}
WORD = "1\ta\t_\tDET\t_\t_\t_\t_\t_\t_"


def run(*words):
    with pytest.raises(SystemExit) as left:
        main(["tag", *map(str, words)])
    return int(left.value.code or 0)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Untrained taggers with the tags DET and NOUN, one for each layout."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("models")
    vocabulary = Vocabulary.of([(["a", "cat"], ["DET", "NOUN"])])
    model = TaggingModel(BiLSTM(vocabulary.words, embedding=4, hidden=4, buckets=16), 2)
    for name, layout in LAYOUTS.items():
        Tagger(model, vocabulary, layout.columns, layout=layout).save(folder / name)
    return folder


@pytest.fixture
def predict(models, tmp_path, monkeypatch, capsys):
    """Tags bytes from a file in an empty folder; returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def predict_bytes(model, data, *options, name="input.txt"):
        (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        code = run("predict", models / model, name, *options)
        out, err = capsys.readouterr()
        return code, out, err

    return predict_bytes


#: Model, file name, content, options, and a part of the message; None if the file is tagged.
SURPRISING = {
    "plain text": ("two", "x", "a b c d\ne f g h\n", (), "4 columns, but the tagger was trained on 2 columns"),
    "plain text with as many words": ("four", "x", "a b c d\ne f g h\n", (), "contains no tag of the tagger ('d')"),
    "plain text for CoNLL-U": ("conllu", "x", "a b c d\ne f g h\n", (), "trained on the format conllu"),
    "words for CoNLL-U": ("conllu", "x", "a\nb\n", (), "trained on the format conllu"),
    "columns for JSON lines": ("jsonl", "x", "a DET\n", (), "trained on the format jsonl"),
    "JSON lines for columns": ("two", "x", '{"tokens": ["a"]}\n', (), "it looks like jsonl"),
    "CoNLL-U for columns": ("two", "x", f"{WORD}\n", (), "it looks like conllu"),
    "JSON array": ("two", "x", '[{"tokens": ["a"]},\n {"tokens": ["b"]}]\n', (), "looks like JSON"),
    "JSON in several lines": ("two", "x", '{\n"tokens":["a"]\n}\n', (), "looks like JSON"),
    "cut JSON": ("jsonl", "x", '{"tokens": ["a", "b"\n', (), "x:1: this is not valid JSON"),
    "empty": ("two", "x", b"", (), "x: the file has no sentence"),
    "empty text": ("two", "x", b"", ("--format", "text"), "x: the file has no sentence"),
    "blank lines": ("two", "x", b"\n \r\n\n", (), "x: the file has no sentence"),
    "only comments": ("two", "x", b"# a b c\n\n# d e f\n", (), "x: the file has no sentence"),
    "binary": ("two", "x", bytes(range(256)) * 8, (), "x:1: a NUL byte"),
    "UTF-16": ("two", "x", "a\nb\n".encode("utf-16"), (), "x:1: the text is UTF-16"),
    "Latin-1": ("two", "x", "caf\u00e9\n".encode("latin-1"), (), "byte 0xe9 is not valid UTF-8"),
    "NUL": ("two", "x", b"a\nb\0\n", ("--format", "text"), "x:2: a NUL byte"),
    "cut gzip": ("two", "x.gz", gzip.compress(b"a DET\n" * 1000)[:-9], (), "the gzip archive is damaged"),
    "bzip2": ("two", "x.bz2", b"BZh91AY&SY", (), "bzip2 is not supported"),
    "CSV": ("two", "x.csv", "the,DET\ncat,NOUN\nsleeps,VERB\n", (), "looks like CSV"),
    "CSV with a header": ("two", "x.csv", "token,tag\nthe,DET\n", (), "looks like a header"),
    "TSV with a header": ("two", "x.tsv", "Word\tTag\nthe\tDET\n", (), "looks like a header"),
    "HTML": ("two", "x.html", "\n<!DOCTYPE html>\n<p>a</p>\n", (), "x.html:2: the text starts with '<!DOCTYPE html>'"),
    "HTML as text": ("two", "x.html", "<html><p>a</p></html>", ("--format", "text"), "so it is markup"),
    "Markdown": ("two", "x.md", "# Title\n\nSome text here.\n", (), "3 columns, but the tagger was trained on 2"),
    "one huge line": ("two", "x", b"a " * 600_000, ("--format", "text"), "x:1: the line has more than 1,048,576 bytes"),
    "tabs and spaces": ("two", "x", "a\tDET\nb NOUN\n", (), "x:2: 1 columns separated by tabs, but line 1 has 2"),
    "ids before the words": ("four", "x", "1\ta\t_\tDET\n2\tb\t_\tDET\n3\tc\t_\tDET\n", (), "numbers 1, 2, 3"),
    "a comment or a word": ("two", "x", "# DET\na DET\n", (), "pass --comments or --no-comments"),
    "comments of JSON lines": (
        "jsonl",
        "x",
        '{"tokens": []}\n',
        ("--comments",),
        "--comments (comments=True) has no meaning",
    ),
    "a language for columns": ("two", "x", "a DET\n", ("--language", "en"), "--language (language='en') has no meaning"),
    "another output": ("two", "x", "a DET\n", ("--output-format", "xml"), "`output_format` must be one of"),
    "another format": ("two", "x", "a DET\n", ("--format", "xml"), "`format` must be one of"),
    "Windows line ends and BOM": ("two", "x", b"\xef\xbb\xbfa DET\r\nb NOUN\r\n\r\n", (), None),
    "words only": ("four", "x", "a\nb\n", (), None),
    "no line end": ("jsonl", "x", '{"tokens": ["a"]}', (), None),
    "comments": ("two", "x", "# id 1 2\na DET\n\n# id 3 4\nb DET\n", (), None),
    "named columns": ("two", "x", "a b\nc d\n", ("--format", "columns"), None),
}


@pytest.mark.parametrize("kind", SURPRISING)
def test_surprising_input_is_refused_in_one_line_or_tagged(predict, kind):
    model, name, data, options, message = SURPRISING[kind]
    code, out, err = predict(model, data, *options, name=name)
    if message is None:
        assert code == 0 and out
        return
    assert code == 2 and out == ""
    (line,) = err.splitlines()
    assert line.startswith("linearcore: ") and message in line


def test_missing_files_and_folders(models, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, message in (("nowhere", "there is no such file"), (".", "this is a folder")):
        for command in ("predict", "eval"):
            assert run(command, models / "two", name) == 2
            assert message in capsys.readouterr().err.splitlines()[-1]


def test_a_refusal_lists_the_formats(predict):
    _, _, err = predict("two", "a b c d\n")
    assert all(f" {name} (" in err for name in ("conllu", "columns", "jsonl", "text", "raw")) and "--tag N" in err


def test_text_becomes_columns(predict):
    code, out, _ = predict("conllu", "a cat\n\na\n", "--format", "text")
    rows = [line.split("\t") for line in out.split("\n")]
    assert code == 0 and [row[0] for row in rows] == ["a", "cat", "", "a", "", ""]
    assert all(row[1] in ("DET", "NOUN") for row in rows if len(row) > 1)


def test_text_becomes_conllu_or_json_lines(predict):
    _, out, _ = predict("conllu", "a cat\n", "--format", "text", "--output-format", "conllu")
    cells = [line.split("\t") for line in out.splitlines() if line]
    assert [row[:3] for row in cells] == [["1", "a", "_"], ["2", "cat", "_"]] and {len(row) for row in cells} == {10}
    assert {row[3] for row in cells} <= {"DET", "NOUN"} and {row[4] for row in cells} == {"_"}
    _, out, _ = predict("jsonl", "a cat\n", "--format", "text", "--output-format", "jsonl")
    assert json.loads(out)["tokens"] == ["a", "cat"] and len(json.loads(out)["pos"]) == 2
    code, _, err = predict("two", "a cat\n", "--format", "text", "--output-format", "conllu")
    assert code == 2 and "--tag upos" in err


def test_running_text(predict):
    pytest.importorskip("spacy")
    code, out, _ = predict("two", "A cat. It sleeps\nhere!\n\nNo", "--format", "raw", "--language", "en")
    assert code == 0
    blocks = [[line.split("\t")[0] for line in block.split("\n")] for block in out.strip().split("\n\n")]
    assert blocks == [["A", "cat", "."], ["It", "sleeps", "here", "!"], ["No"]]
    code, _, err = predict("two", "A cat.", "--format", "raw", "--language", "zz")
    assert code == 2 and "`language` must be a language code" in err


def test_json_lines_keep_their_other_keys(predict):
    line = '{"id": 7, "pos": null, "tokens": ["a", "cät"], "source": {"file": "x"}}'
    code, out, _ = predict("jsonl", line + '\n{"tokens": []}\n')
    first, second = (json.loads(text) for text in out.splitlines())
    assert code == 0 and list(first) == ["id", "pos", "tokens", "source"] and second == {"tokens": [], "pos": []}
    assert first.pop("pos") != json.loads(line).pop("pos") and "cät" in out


def test_another_number_of_columns_needs_the_column(predict):
    code, out, err = predict("two", "a b c\n", "--format", "columns")
    assert code == 2 and out == "" and "pass --tag N" in err
    code, out, _ = predict("two", "a b c\n", "--format", "columns", "--tag", "4")
    assert code == 0 and out.startswith("a b c ")


def test_eval_of_formats(models, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.jsonl").write_text(
        '{"tokens": ["a"], "pos": ["DET"], "tags": ["DET"]}\n{"tokens": [], "pos": [], "tags": []}\n'
    )
    (tmp_path / "two.txt").write_text("# id 1 2\na DET\n")
    (tmp_path / "three.txt").write_text("a DET x\n")
    for words in (
        ("jsonl", "x.jsonl"),
        ("two", "two.txt"),
        ("two", "x.jsonl", "--format", "jsonl"),
        ("jsonl", "two.txt", "--format", "columns"),
        ("two", "three.txt", "--format", "columns", "--tag", "2"),
    ):
        assert run("eval", models / words[0], *words[1:], "--json") == 0
        assert json.loads(capsys.readouterr().out)["tokens"] == 1
    for words, message in (
        (("two", "x.jsonl"), "it looks like jsonl"),
        (("two", "three.txt"), "3 columns, but the tagger was trained on 2"),
        (("two", "three.txt", "--format", "columns"), "pass --tag N"),
        (("two", "two.txt", "--format", "text"), "the format text has no tags"),
    ):
        assert run("eval", models / words[0], *words[1:]) == 2
        assert message in capsys.readouterr().err.splitlines()[-1]


def test_training_remembers_the_format(tmp_path, capsys):
    (tmp_path / "x.jsonl").write_text('{"tokens": ["a", "cat"], "ner": ["DET", "NOUN"]}\n' * 10)
    (tmp_path / "x.txt").write_text("# a b c\n" + "a _ DET\n\n" * 10)
    quick = ("--epochs", "1", "--hidden", "4")
    assert run("train", "--train", tmp_path / "x.jsonl", "--tag", "ner", "--out", tmp_path / "j", *quick) == 0
    assert Tagger.load(tmp_path / "j").layout == Layout("jsonl", "ner") and Tagger.load(tmp_path / "j").columns == "last"
    assert run("train", "--train", tmp_path / "x.txt", "--out", tmp_path / "c", *quick) == 0
    assert Tagger.load(tmp_path / "c").layout == Layout("columns", "last", 3)
    assert run("train", "--train", tmp_path / "x.txt", "--out", tmp_path / "t", "--format", "text", *quick) == 2
    assert "the format text has no tags" in capsys.readouterr().err


def test_unbuffered_tags_come_line_by_line(models):
    code = "import sys; from linearcore.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "tag", "predict", str(models / "two"), "--format", "text", "--unbuffered"]
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        # Reading would wait forever if a sentence were kept until the input ends.
        watchdog = threading.Timer(30, process.kill)
        watchdog.start()
        for words in (["a", "cat"], ["cat"]):
            process.stdin.write(" ".join(words) + "\n")
            process.stdin.flush()
            lines = [process.stdout.readline() for _ in range(len(words) + 1)]
            assert [line.split("\t")[0] for line in lines] == [*words, "\n"]
        process.stdin.close()
        assert process.wait() == 0
        watchdog.cancel()


def test_buffered_and_unbuffered_tags_are_the_same(predict, models, monkeypatch, capsys):
    text = "a cat\n" * 5 + "cat\n" * 5
    expected = predict("two", text, "--format", "text")[1]
    assert predict("two", text, "--format", "text", "--unbuffered")[1] == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8"))
    assert run("predict", models / "two", "--format", "text") == 0
    assert capsys.readouterr().out == expected
