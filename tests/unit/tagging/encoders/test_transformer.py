import errno
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")

from linearcore.tagging.encoders._transformer import TransformerEncoder
from tests.tiny_transformer import byte_level, real_encoder, tiny_bert, transformers, word_piece, write_encoder

SENTENCES = [
    ["ann", "lives", "unbelievably", "in", "paris"],
    ["bob"],
    [],
    ["hams", "\u200b", "", "qqq", "\ud800", "rome .", "ann"],
]
LONG = [["unbelievably", "ann", "hams"][place % 3] for place in range(70)]


def encoder_of(positions=64, **options):
    tokenizer = word_piece()
    return TransformerEncoder(tiny_bert(len(tokenizer), positions), tokenizer, **options).eval()


def hidden(encoder, sentences):
    length = max(map(len, sentences))
    mask = torch.arange(length) < torch.tensor([len(words) for words in sentences]).unsqueeze(1)
    with torch.no_grad():
        return encoder(mask, **encoder.collate([encoder.featurize(words) for words in sentences], length)), mask


def alone(encoder, words):
    """One sentence, one word after the other, no padding: what the hidden states mean."""
    tokenizer = encoder.tokenizer
    numbers, places = [tokenizer.cls_token_id], []
    for word in words:
        pieces = tokenizer(word.replace("\ud800", "?"), add_special_tokens=False)["input_ids"]
        places.append(len(numbers))
        numbers += pieces or [tokenizer.unk_token_id]
    with torch.no_grad():
        return encoder.model(torch.tensor([[*numbers, tokenizer.sep_token_id]])).last_hidden_state[0, places]


def test_hidden_states_are_those_of_each_sentence_alone():
    encoder = encoder_of()
    found, mask = hidden(encoder, SENTENCES)
    assert found.shape == (4, 7, 32) and bool(found.isfinite().all())
    for row, on, words in zip(found, mask, SENTENCES, strict=True):
        torch.testing.assert_close(row[on], alone(encoder, words), atol=1e-5, rtol=0)


def test_words_of_a_long_sentence_have_the_states_of_its_parts():
    encoder = encoder_of(positions=16)
    # 14 sub-words beside two special ones; "unbelievably" has 3, "ann" 1, "hams" 3.
    found, _ = hidden(encoder, [LONG, ["bob"]])
    parts, size = [[]], 0
    for word in LONG:
        need = {"unbelievably": 3, "ann": 1, "hams": 3}[word]
        if size + need > 14:
            parts.append([])
            size = 0
        parts[-1].append(word)
        size += need
    assert len(parts) > 5
    torch.testing.assert_close(found[0], torch.cat([alone(encoder, part) for part in parts]), atol=1e-5, rtol=0)
    torch.testing.assert_close(found[1, :1], alone(encoder, ["bob"]), atol=1e-5, rtol=0)


def test_a_shorter_row_may_be_asked_for():
    encoder = encoder_of(max_length=5)
    inputs = encoder.collate([encoder.featurize(LONG)], len(LONG))
    assert inputs["input_ids"].shape[1] == 5
    torch.testing.assert_close(hidden(encoder, [LONG])[0][0, :1], alone(encoder, LONG[:1]), atol=1e-5, rtol=0)


@pytest.mark.parametrize("max_length", [2, 65])
def test_a_row_that_holds_no_word_or_too_much_is_refused(max_length):
    with pytest.raises(ValueError, match=r"`max_length` must be between 3 and the model's 64 positions, got \d+; omit it"):
        encoder_of(max_length=max_length)


def test_positions_of_roberta_begin_behind_padding():
    config = transformers.RobertaConfig(
        vocab_size=300, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8,
        max_position_embeddings=18, pad_token_id=1,
    )  # fmt: skip
    encoder = TransformerEncoder(transformers.RobertaModel(config), byte_level(add_prefix_space=True)).eval()
    assert encoder.max_length == 16
    assert bool(hidden(encoder, [["ann"] * 40])[0].isfinite().all())


def test_two_passes_are_equal_and_move_to_another_dtype():
    encoder = encoder_of()
    assert torch.equal(hidden(encoder, SENTENCES)[0], hidden(encoder, SENTENCES)[0])
    assert hidden(encoder.bfloat16(), SENTENCES)[0].dtype == torch.bfloat16


def test_saved_and_loaded_it_is_the_same_but_for_weights(tmp_path):
    encoder = TransformerEncoder.from_pretrained(write_encoder(tmp_path / "given"), max_length=9).eval()
    saved = tmp_path / "saved"
    settings = encoder.save(saved)
    files = {path.name for path in saved.iterdir()}
    assert "config.json" in files and {Path(name).suffix for name in files} == {".json"}
    assert not any(str(tmp_path) in path.read_text("utf-8") for path in saved.iterdir())
    state = torch.get_rng_state()
    loaded = TransformerEncoder.load(saved, settings).eval()
    assert torch.equal(torch.get_rng_state(), state)
    assert loaded.load_state_dict(encoder.state_dict()) is not None
    assert loaded.max_length == 9
    assert torch.equal(hidden(loaded, SENTENCES)[0], hidden(encoder, SENTENCES)[0])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="wants /dev/full")
def test_a_full_disk_is_an_os_error(tmp_path):
    """The package tokenizers raises plain exceptions."""
    encoder = TransformerEncoder.from_pretrained(write_encoder(tmp_path / "given"))
    saved = tmp_path / "saved"
    saved.mkdir()
    (saved / "tokenizer.json").symlink_to("/dev/full")
    with pytest.raises(OSError) as error:
        encoder.save(saved)
    assert error.value.errno == errno.ENOSPC and error.value.filename == str(saved)


def test_byte_level_words_begin_with_a_space(tmp_path):
    encoder = TransformerEncoder.from_pretrained(write_encoder(tmp_path, byte_level()))
    numbers = encoder.featurize(["ann", "ann", "\u200b"])[0].tolist()
    assert encoder.tokenizer.convert_ids_to_tokens(numbers)[1:3] == ["Ġann", "Ġann"]
    again = TransformerEncoder.load(tmp_path, encoder.save(tmp_path))
    assert again.featurize(["ann", "ann", "\u200b"])[0].tolist() == numbers


def test_half_precision_weights_are_widened(tmp_path):
    write_encoder(tmp_path)
    tiny_bert(18).half().save_pretrained(tmp_path)
    encoder = TransformerEncoder.from_pretrained(tmp_path)
    assert {weight.dtype for weight in encoder.parameters()} == {torch.float32}
    loaded = TransformerEncoder.load(tmp_path, encoder.save(tmp_path))
    assert {weight.dtype for weight in loaded.parameters()} == {torch.float32}
    assert '"dtype": "float32"' in (tmp_path / "config.json").read_text("utf-8")


def assert_one_line(error, *words):
    text = str(error.value)
    assert "\n" not in text and len(text) < 600
    assert all(word in text for word in words), text


def test_no_model_no_tokenizer_or_no_weights_is_one_line(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="`path` must be a Hugging Face encoder") as error:
        TransformerEncoder.from_pretrained(tmp_path)
    assert_one_line(error, "pass a folder with config.json")
    with pytest.raises(ValueError, match="`path` must be a Hugging Face encoder") as error:
        TransformerEncoder.from_pretrained(tmp_path / "not" / "there" / "at all")
    assert_one_line(error)
    tiny_bert(18).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="`path` must") as error:
        TransformerEncoder.from_pretrained(tmp_path)
    assert_one_line(error)
    (tmp_path / "model.safetensors").unlink()
    torch.save(tiny_bert(18).state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"model\.safetensors") as error:
        TransformerEncoder.from_pretrained(tmp_path)
    assert_one_line(error)

    def offline(*_, **__):
        raise OSError("We couldn't connect to the hub.\nCheck your\ninternet connection. And more.")

    monkeypatch.setattr(transformers.AutoConfig, "from_pretrained", offline)
    with pytest.raises(ValueError, match="couldn't connect") as error:
        TransformerEncoder.from_pretrained("some/name")
    assert_one_line(error, "'some/name'")


def test_weights_of_another_model_are_refused(tmp_path):
    write_encoder(tmp_path)
    tiny_bert(18, layers=1).save_pretrained(tmp_path / "other")
    (tmp_path / "other" / "model.safetensors").rename(tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=r"`path` must contain all weights of the encoder, got 16 missing weights"):
        TransformerEncoder.from_pretrained(tmp_path)


def test_a_model_with_a_decoder_is_refused(tmp_path):
    transformers.T5Config(d_model=8, num_layers=1, num_heads=1, d_ff=8).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"`path` must be an encoder, got t5 in .*; use one such as BERT"):
        TransformerEncoder.from_pretrained(tmp_path)


def test_a_slow_tokenizer_is_refused(tmp_path, monkeypatch):
    write_encoder(tmp_path)
    monkeypatch.setattr(transformers.PreTrainedTokenizerFast, "is_fast", property(lambda _: False))
    with pytest.raises(ValueError, match="`path` must have a fast tokenizer, got"):
        TransformerEncoder.from_pretrained(tmp_path)


def test_files_that_save_did_not_write_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"`folder` must contain config\.json of a transformer, got none"):
        TransformerEncoder.load(tmp_path, {})
    (tmp_path / "config.json").write_text('{"model_type": "nothing"}')
    with pytest.raises(ValueError, match="`path` must be a Hugging Face encoder") as error:
        TransformerEncoder.load(tmp_path, {})
    assert_one_line(error)


def test_a_real_model_knows_every_word_of_a_long_sentence():
    encoder = TransformerEncoder.from_pretrained(real_encoder()).eval()
    assert (encoder.width, encoder.max_length) == (384, 512)
    sentences = [["Angela", "Merkel", "visited", "\u200b", "Hamburg-Harburg", "."], ["internationalisation"] * 300]
    found, _ = hidden(encoder, sentences)
    torch.testing.assert_close(found[0, :6], alone(encoder, sentences[0]), atol=1e-4, rtol=0)
    rows = encoder.featurize(sentences[1])[1]
    first = int((encoder.featurize(sentences[1])[2][:, 0] == 0).sum())
    assert len(rows) > 1
    torch.testing.assert_close(found[1, :first], alone(encoder, sentences[1][:first]), atol=1e-4, rtol=0)


def test_reading_a_model_prints_nothing_and_leaves_transformers_as_it_was(tmp_path, capfd):
    from transformers import BertForMaskedLM
    from transformers.utils import logging

    # Of another class, so that it has weights which nobody asked for.
    folder = write_encoder(tmp_path / "encoder")
    BertForMaskedLM(tiny_bert(len(word_piece())).config).save_pretrained(folder)
    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    capfd.readouterr()
    TransformerEncoder.from_pretrained(folder)
    assert capfd.readouterr() == ("", "")
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
