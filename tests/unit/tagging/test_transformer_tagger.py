"""The tagger on top of a transformer: trained, killed by nobody, saved, loaded, copied elsewhere."""

import shutil

import pytest
import torch

from linearcore.tagging import Tagger, Training, train

pytest.importorskip("transformers")

from tests.tiny_transformer import real_encoder, write_encoder

SENTENCES = [
    (["ann", "lives", "in", "paris", "."], ["PER", "V", "P", "LOC", "X"]),
    (["bob", "lives", "in", "rome"], ["PER", "V", "P", "LOC"]),
    (["unbelievably", "."], ["ADV", "X"]),
] * 12


@pytest.mark.parametrize("loss", ["lc", "ce"])
def test_trained_saved_and_loaded_elsewhere(tmp_path, loss):
    encoder = write_encoder(tmp_path / "encoder")
    settings = Training(loss=loss, encoder=f"transformer:{encoder}", epochs=6, lr=1e-2, batch_tokens=64)
    found = train(SENTENCES, SENTENCES[:3], settings, out=tmp_path / "model", columns="tag")
    assert found.tagger.metadata["dev_accuracy"] == 100.0
    assert found.tagger.metadata["training"]["encoder"] == "transformer:encoder"
    shutil.rmtree(encoder)
    shutil.move(tmp_path / "model", tmp_path / "moved")
    twin = Tagger.load(tmp_path / "moved")
    for words, tags in SENTENCES[:3]:
        assert twin.tag(words) == tags
    files = {path.suffix for path in (tmp_path / "moved").rglob("*") if path.is_file()}
    assert files <= {".json", ".safetensors", ".txt"}
    # Longer than the model has positions.
    assert len(twin.tag(["ann", "unbelievably"] * 80)) == 160


def test_a_damaged_encoder_is_refused(tmp_path):
    encoder = write_encoder(tmp_path / "encoder")
    settings = Training(encoder=f"transformer:{encoder}", epochs=1, batch_tokens=256)
    train(SENTENCES, SENTENCES[:3], settings, out=tmp_path / "model")
    path = tmp_path / "model" / "encoder" / "tokenizer.json"
    path.write_text(path.read_text().replace("paris", "pariz"))
    with pytest.raises(ValueError, match=r"damaged: encoder/tokenizer\.json does not match its SHA-256"):
        Tagger.load(tmp_path / "model")


@pytest.mark.slow
def test_a_real_model_is_fine_tuned(tmp_path):
    settings = Training(encoder=f"transformer:{real_encoder()}", epochs=3, lr=5e-4, batch_tokens=64)
    torch.manual_seed(0)
    found = train(SENTENCES, SENTENCES[:3], settings, out=tmp_path / "model").tagger
    assert found.metadata["dev_accuracy"] == 100.0
    assert Tagger.load(tmp_path / "model").tag(["ann", "lives", "in", "london"])[1:3] == ["V", "P"]


def test_training_is_continued_without_the_pretrained_folder(tmp_path):
    encoder = write_encoder(tmp_path / "encoder")
    settings = Training(encoder=f"transformer:{encoder}", epochs=4, lr=1e-2, batch_tokens=64)
    train(SENTENCES, SENTENCES[:3], settings, out=tmp_path / "model")
    shutil.rmtree(encoder)
    more = [(["bob", "lives", "!"], ["PER", "V", "NEW"])] * 20
    settings = Training(continue_from=str(tmp_path / "model"), epochs=4, lr=1e-2, batch_tokens=64)
    found = train(more, SENTENCES[:3], settings, out=tmp_path / "more").tagger
    assert found.vocabulary.tags[-1] == "NEW" and found.metadata["training"]["encoder"] == "transformer:encoder"
    assert Tagger.load(tmp_path / "more").tag(["bob", "lives", "!"])[:2] == ["PER", "V"]
    with pytest.raises(ValueError, match=r"`encoder` must be 'transformer:encoder' to continue .*, got 'bilstm'"):
        train(more, more, Training(continue_from=str(tmp_path / "model"), encoder="bilstm"))
