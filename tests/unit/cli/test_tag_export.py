"""`linearcore tag export`: what it writes and prints, and one line for whatever is wrong."""

import json
import sys

import pytest
import torch

from linearcore.cli import main
from linearcore.tagging import ExportedTagger, Tagger, TaggingModel, Vocabulary
from linearcore.tagging.encoders import BiLSTM, TransformerEncoder
from tests.tiny_transformer import PIECES, word_piece, write_encoder

WORDS = [piece for piece in PIECES if not piece.startswith("#")]


def run(*words):
    with pytest.raises(SystemExit) as left:
        main(["tag", "export", *map(str, words)])
    return int(left.value.code or 0)


def save(folder, encoder=None):
    torch.manual_seed(0)
    encoder = BiLSTM(WORDS, embedding=8, hidden=8, buckets=100) if encoder is None else encoder
    tagger = Tagger(TaggingModel(encoder, 3, "ce"), Vocabulary(WORDS, [1] * len(WORDS), ["A", "B", "C"]), "upos")
    tagger.save(folder)
    return tagger


def test_torch_with_json(tmp_path, capsys):
    tagger = save(tmp_path / "model")
    assert run(tmp_path / "model", "--to", "torch", "--out", tmp_path / "tagger.pt2", "--json") == 0
    values = json.loads(capsys.readouterr().out)
    assert values["opset"] is None and values["bytes"] == (tmp_path / "tagger.pt2").stat().st_size
    assert values["words"] > 0 and values["differing"] == 0 and values["seconds"] > 0 and values["tagger_seconds"] > 0
    assert ExportedTagger(values["model"]).tag(WORDS) == tagger.tag(WORDS)


def test_hugging_face(tmp_path, capsys):
    from linearcore.tagging.hugging_face import ChainForTokenClassification

    tagger = save(tmp_path / "model", TransformerEncoder.from_pretrained(write_encoder(tmp_path / "encoder")))
    assert run(tmp_path / "model", "--to", "hugging-face", "--out", tmp_path / "hf") == 0
    assert str(tmp_path / "hf") in capsys.readouterr().out
    model = ChainForTokenClassification.from_pretrained(tmp_path / "hf")
    assert model.decode(**word_piece()("ann lives in rome", return_tensors="pt")) == [
        tagger.tag(["ann", "lives", "in", "rome"])
    ]


@pytest.mark.parametrize(
    ("options", "facts"),
    (
        (("--to", "tflite", "--out", "m.onnx"), ("`--to`", "'onnx'", "'tflite'")),
        (("--to", "onnx", "--out", "m.pt2"), ("`--out`", ".onnx", "m.pt2")),
        (("--to", "torch", "--out", "m"), ("`--out`", ".pt2", "'m'")),
        (("--to", "hugging-face", "--out", "hf"), ("`tagger`", "transformer", "'bilstm'", "export")),
    ),
)
def test_what_does_not_fit_is_said_in_a_line(tmp_path, capsys, monkeypatch, options, facts):
    save(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    assert run("model", *options) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and all(fact in error for fact in facts)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_missing_packages_are_named(tmp_path, capsys, monkeypatch):
    save(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    monkeypatch.setattr("linearcore._extras.find_spec", lambda name: None if name == "onnxscript" else name)
    assert run(tmp_path / "model", "--out", tmp_path / "model.onnx") == 2
    assert capsys.readouterr().err == "linearcore: onnxscript not installed; run pip install onnxscript\n"


def test_other_tags_are_an_error(tmp_path, capsys, monkeypatch):
    save(tmp_path / "model")
    monkeypatch.setattr(ExportedTagger, "tag_all", lambda self, data: (["B"] * len(words) for words in data))
    assert run(tmp_path / "model", "--to", "torch", "--out", tmp_path / "tagger.pt2") == 2
    assert "words have other tags" in capsys.readouterr().err
