"""Taggers as ONNX and torch.export programs. Tracing takes seconds, so most combinations are `slow`."""

import json
import random

import pytest
import torch

from linearcore.tagging import ExportedTagger, Tagger, TaggingModel, Vocabulary
from linearcore.tagging.encoders import BiLSTM, TransformerEncoder
from tests.fresh_python import fresh_python
from tests.tiny_transformer import PIECES, tiny_bert, word_piece

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

TAGS = ["O", "B-X", "I-X", "B-Y", "I-Y"]
WORDS = [piece for piece in PIECES if not piece.startswith("#")]
LENGTHS = (1, 2, 7, 33, 200)


def make(encoder="bilstm", loss="lc", layers=1, **options):
    """A tagger with random weights, whose tags depend on the words and on each other."""
    torch.manual_seed(0)
    vocabulary = Vocabulary(WORDS, [1] * len(WORDS), TAGS)
    sizes = {"embedding": 8, "spelling": 8, "hidden": 8, "buckets": 100, "layers": layers}
    inner = TransformerEncoder(tiny_bert(18), word_piece()) if encoder == "transformer" else BiLSTM(WORDS, **sizes)
    model = TaggingModel(inner, TAGS, loss, **options)
    with torch.no_grad():
        model.projection.weight.mul_(5)
        for parameter in [] if model.head is None else model.head.parameters():
            parameter.mul_(10)
    return Tagger(model, vocabulary, "last")


def sentences(*lengths):
    generator = random.Random(0)
    return [[generator.choice([*WORDS, "unbelievably", "Zz9"]) for _ in range(length)] for length in lengths]


def assert_equal_tags(tagger, path):
    exported = ExportedTagger(path)
    seen = set()
    for lengths in [(length,) for length in LENGTHS] + [LENGTHS, (5, 0, 5), (0,), (3,) * 9]:
        data = sentences(*lengths)
        expected = list(tagger.tag_all(data))
        assert list(exported.tag_all(data)) == expected
        seen |= {tag for tags in expected for tag in tags}
    assert len(seen) > 2
    assert (exported.tags, exported.columns) == (TAGS, "last")


RUN_SCRIPT = """
import runpy, sys
sys.modules.update(dict.fromkeys(["torch", "linearcore", "transformers", "tokenizers"]))
sys.stdin = iter(["ann lives in Zz9\\n", "\\n", "rome\\n"])
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def test_onnx_with_constraints_and_the_script_without_torch(tmp_path):
    tagger = make(constraints="bio")
    files = tagger.export(tmp_path / "new" / "model.onnx")
    assert_equal_tags(tagger, files.model)
    assert files.size == (tmp_path / "new" / "model.onnx").stat().st_size and files.opset == 20
    run = fresh_python("-c", RUN_SCRIPT, str(files.script))
    assert run.returncode == 0, run.stderr
    assert [line.split("\t") for line in run.stdout.splitlines()] == [
        tagger.tag(["ann", "lives", "in", "Zz9"]), [""], tagger.tag(["rome"]),
    ]  # fmt: skip


@pytest.mark.slow
def test_torch_export_of_a_transformer_with_a_beam(tmp_path):
    tagger = make("transformer", beam=2)
    assert_equal_tags(tagger, tagger.export(tmp_path / "model.pt2").model)


CASES = [
    {"encoder": encoder, "loss": loss, **options}
    for encoder in ("bilstm", "transformer")
    for loss, options in (
        ("lc", {}), ("lc", {"rank": 2}), ("crf", {}), ("crf", {"rank": 2, "constraints": "bio"}), ("ssvm", {}),
        ("lc", {"beam": 2, "constraints": "bio"}),
        ("ssvm", {"beam": 3}), ("ce", {}),
    )
] + [{"layers": 2}]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ("onnx", "pt2"))
@pytest.mark.parametrize("options", CASES, ids=str)
def test_every_head_and_encoder(tmp_path, options, suffix):
    tagger = make(**options)
    assert_equal_tags(tagger, tagger.export(tmp_path / f"model.{suffix}").model)


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"`path` must end in .onnx or .pt2, got '.*model'"):
        make().export(tmp_path / "model")


@pytest.mark.parametrize("name", ("model.py", "model.json"))
def test_files_of_others_are_not_overwritten(tmp_path, name):
    (tmp_path / name).write_text("{}")
    with pytest.raises(ValueError, match=rf"`path` must not overwrite .*{name}"):
        make().export(tmp_path / "model.pt2")
    assert (tmp_path / name).read_text() == "{}" and len(list(tmp_path.iterdir())) == 1


def test_what_is_no_exported_tagger(tmp_path):
    with pytest.raises(ValueError, match=r"`path` must be an exported tagger, got no file .*model.onnx"):
        ExportedTagger(tmp_path / "model.onnx")
    (tmp_path / "model.onnx").write_text("")
    (tmp_path / "model.json").write_text(json.dumps(["something"]))
    with pytest.raises(ValueError, match=r"`path` must have a JSON file .*model.json"):
        ExportedTagger(tmp_path / "model.onnx")
