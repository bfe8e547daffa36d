"""From a path to sentences: formats, tags, and what is refused."""

import gzip
import io
import lzma
import pathlib
import sys
import zipfile

import pytest

from linearcore.tagging.readers import FORMATS, ReaderError, read_sentences

WORD = "1\tdog\tdog\tNOUN\tNN\t_\t_\t_\t_\t_"
CONLLU = f"# a remark\n{WORD}\n\n"


def save(folder: pathlib.Path, name: str, text: str) -> str:
    (folder / name).write_text(text, "utf-8")
    return str(folder / name)


def archive(path: pathlib.Path, **members: str) -> str:
    with zipfile.ZipFile(path, "w") as file:
        for name, text in members.items():
            file.writestr(name.replace("__", "/").replace("DOT", "."), text)
    return str(path)


def summary(path, tag=None, format="auto", **options):
    return [(sentence.words, sentence.tags) for sentence in read_sentences(path, tag, format, **options)]


def test_formats_are_told_by_their_content(tmp_path):
    assert summary(save(tmp_path, "a", CONLLU), "xpos") == [(["dog"], ["NN"])]
    assert summary(save(tmp_path, "b", f"# sent_id = 1\n{WORD}"), "upos") == [(["dog"], ["NOUN"])]
    assert (
        summary(save(tmp_path, "c", "1-2\t" + "\t".join("_" * 9) + f"\n{WORD}\n2{WORD[1:]}"), "upos")[0][1] == ["NOUN"] * 2
    )
    assert summary(save(tmp_path, "d", "#dog NN\ndog NN\n"), "last") == [(["#dog", "dog"], ["NN", "NN"])]
    assert summary(save(tmp_path, "i", '\n{"tags": ["NN"], "tokens": ["dog"]}\n'), "last") == [(["dog"], ["NN"])]
    assert summary(save(tmp_path, "j", "{ PUNCT\n} PUNCT\n"), "last") == [(["{", "}"], ["PUNCT", "PUNCT"])]
    assert summary(save(tmp_path, "e", "x" + WORD), "5") == [(["x1"], ["NN"])], "ten cells, but the first is no id"
    assert summary(archive(tmp_path / "f", textDOTtxt="dog NN"), "last") == [(["dog"], ["NN"])]
    penn = archive(tmp_path / "g", tb__combined__wsj_2DOTmrg="((B b))", tb__combined__wsj_1DOTmrg="((A a))", tb__README="x")
    assert summary(penn, "tag") == [(["a"], ["A"]), (["b"], ["B"])]
    brown = archive(tmp_path / "h", brown__cb01="b/B", brown__ca01="a/A", brown__README="x", brown__catsDOTtxt="ca01 news")
    assert summary(brown, "tag") == [(["a"], ["A"]), (["b"], ["B"])]


def test_a_name_that_says_conllu_is_believed(tmp_path):
    broken = WORD.replace("\t", " ")
    for name in ("x.conllu", "x.CoNLLU", "x.conllu.txt"):
        with pytest.raises(ReaderError, match="1 cells instead of 10"):
            summary(save(tmp_path, name, broken))
    with pytest.raises(ReaderError, match=r"x\.zip\(y\.conllu\):1: 1 cells instead of 10"):
        summary(archive(tmp_path / "x.zip", yDOTconllu=broken))


@pytest.mark.parametrize("pack", [lambda data: data, lzma.compress, gzip.compress], ids=["plain", "xz", "gz"])
def test_packed(tmp_path, pack):
    path = tmp_path / "x"
    path.write_bytes(pack(CONLLU.encode()))
    assert summary(path, "upos") == [(["dog"], ["NOUN"])]


def test_formats_can_be_forced(tmp_path):
    assert summary(save(tmp_path, "a", "((NN dog))"), "tag", "penn") == [(["dog"], ["NN"])]
    assert summary(save(tmp_path, "b", "dog/nn"), "tag", "brown") == [(["dog"], ["nn"])]
    assert summary(save(tmp_path, "c", WORD), "5", "columns") == [(["1"], ["NN"])]
    assert summary(save(tmp_path, "d", WORD), "5", "conllu") == [(["dog"], ["NN"])]


def test_without_a_tag_no_tag_is_needed(tmp_path):
    blank = WORD.replace("NOUN\tNN", "_\t_")
    assert summary(save(tmp_path, "a", blank)) == [(["dog"], None)]
    assert summary(save(tmp_path, "b", "dog")) == [(["dog"], None)]
    assert summary(archive(tmp_path / "c", brown__ca01="a/A")) == [(["a"], None)]


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"dog NN\n")))
    assert summary("-", "last") == [(["dog"], ["NN"])]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"dog")))
    with pytest.raises(ReaderError, match=r"^standard input:1: one column"):
        summary("-", "last")


def test_ids_may_go_unchecked(tmp_path):
    path = save(tmp_path, "a.conllu", f"7{WORD[1:]}\n{WORD}")
    assert summary(path, "upos", check_ids=False) == [(["dog", "dog"], ["NOUN", "NOUN"])]
    with pytest.raises(ReaderError, match="id 7 instead of 1"):
        summary(path, "upos")


def test_arguments_are_checked_at_once_and_the_file_later(tmp_path):
    advice = "; choose one of these"
    with pytest.raises(ValueError, match=f"`format` must be one of {', '.join(map(repr, FORMATS))}, got 'xml'{advice}"):
        read_sentences("nowhere", format="xml")
    with pytest.raises(ValueError, match="`tag` must consist of"):
        read_sentences("nowhere", tag="pos", format="columns")
    with pytest.raises(TypeError, match="`tag` must be a string, got int"):
        read_sentences("nowhere", tag=2)
    with pytest.raises(TypeError, match="`path` must be a string or a path, got bytes"):
        read_sentences(b"nowhere")
    with pytest.raises(ReaderError, match=r"^nowhere: the file is CoNLL-U, which has no tag column last"):
        read_sentences("nowhere", tag="last", format="conllu")
    sentences = read_sentences(tmp_path / "nowhere")
    with pytest.raises(ReaderError, match="nowhere: there is no such file; check the path"):
        next(sentences)


@pytest.mark.parametrize(
    ("text", "tag", "message"),
    [
        (CONLLU, "tag", "the file is CoNLL-U, which has no tag column tag"),
        (CONLLU, "11", "the file is CoNLL-U, which has no tag column 11"),
        (
            "dog NN",
            "upos",
            "the file is a column file, which has no column names such as upos",
        ),
        (CONLLU, "feats", "column feats contains only _, so no word has a tag"),
        (CONLLU, "feats+misc", "column feats+misc contains only _, so no word has a tag"),
        ("dog _\n\ncat _", "last", "column last contains only _, so no word has a tag"),
        ("", None, "the file has no sentence"),
        ("\n \n\n", "last", "the file has no sentence"),
        ("# sent_id = 1\n", None, "the file has no sentence"),
        ("-DOCSTART- O\n\n", "last", "the file has no sentence"),
    ],
)
def test_messages(tmp_path, text, tag, message):
    path = save(tmp_path, "x", text)
    with pytest.raises(ReaderError) as caught:
        summary(path, tag)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_messages_about_archives(tmp_path):
    path = archive(tmp_path / "x", a="dog NN", b="dog NN", c="", d="")
    message = r"x: the archive contains 4 files \(a, b, c, …\) and is not a known corpus"
    with pytest.raises(ReaderError, match=message):
        summary(path)
    with pytest.raises(ReaderError, match=r"x: the archive contains no \.mrg files, which the format penn requires"):
        summary(path, "tag", "penn")
    with pytest.raises(ReaderError, match="x: the archive contains no texts ca01 to cr09, which the format brown requires"):
        summary(path, "tag", "brown")
    path = archive(tmp_path / "y", brown__ca01="a/A", brown__ca02="b/B c")
    with pytest.raises(ReaderError, match=r"y\(brown/ca02\):1: 'c' is not word/tag"):
        summary(path)
    for tag in ("upos", "form", "3"):
        with pytest.raises(ReaderError, match=f"y: words in the format brown have one tag, and there is no column {tag}"):
            summary(path, tag)


def test_a_file_is_closed_when_reading_stops_early(tmp_path, monkeypatch):
    opened, really = [], open
    monkeypatch.setattr("builtins.open", lambda *arguments: opened.append(really(*arguments)) or opened[-1])
    for pack in (bytes, lzma.compress, gzip.compress):
        (tmp_path / "x").write_bytes(pack(b"dog NN\n\n" * 3))
        opened.clear()
        sentences = read_sentences(tmp_path / "x")
        next(sentences)
        assert not opened[0].closed
        sentences.close()
        assert opened[0].closed
    opened.clear()
    with pytest.raises(ReaderError):
        summary(save(tmp_path, "y", "PK\x03\x04"))
    assert opened[-1].closed
