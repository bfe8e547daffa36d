import pytest
import torch
from torch import nn

from linearcore.tagging.encoders import BiLSTM, encoder_class
from linearcore.tagging.encoders._bilstm import UNKNOWN

WORDS = ["the", "cat", "sat", "on", "mat"]
SENTENCES = [["the", "cat", "sat"], ["mats"], ["on", "the", "mat", "sat", "the", "cat"], []]


def make(**options):
    torch.manual_seed(0)
    return BiLSTM(WORDS, [3, 2, 2, 1, 1], embedding=5, spelling=4, hidden=6, buckets=50, **options)


def run(encoder, sentences, length):
    inputs = encoder.collate([encoder.featurize(words) for words in sentences], length)
    mask = torch.tensor([[place < len(words) for place in range(length)] for words in sentences])
    return encoder(mask, **inputs)


@pytest.mark.parametrize("characters", [True, False])
@pytest.mark.parametrize("layers", [1, 2])
def test_a_batch_is_its_sentences_one_by_one(characters, layers):
    encoder = make(characters=characters, layers=layers).eval()
    together = run(encoder, SENTENCES, 8)
    assert together.shape == (4, 8, encoder.width) and encoder.width == 12
    for row, words in enumerate(SENTENCES):
        if words:
            alone = run(encoder, [words], len(words))
            torch.testing.assert_close(together[row, : len(words)], alone[0])
    assert together.isfinite().all()


def test_it_is_torchs_bidirectional_lstm():
    encoder = make(characters=False).eval()
    twin = nn.LSTM(5, 6, batch_first=True, bidirectional=True)
    for suffix, part in (("", encoder.forth[0]), ("_reverse", encoder.back[0])):
        for name, value in part.named_parameters():
            getattr(twin, name + suffix).data.copy_(value)
    words = torch.tensor([[2, 3, 4, 6]])
    expected = twin(encoder.words(words))[0]
    torch.testing.assert_close(encoder(torch.ones(1, 4, dtype=torch.bool), words=words), expected)


def test_unknown_words_differ_by_their_spelling_only():
    encoder, plain = make().eval(), make(characters=False).eval()
    assert encoder.featurize(["dogs", "the"])[0].tolist() == [UNKNOWN, 2]
    assert not torch.allclose(run(encoder, [["dogs"]], 1), run(encoder, [["running"]], 1))
    assert torch.equal(run(plain, [["dogs"]], 1), run(plain, [["running"]], 1))


def test_rare_words_are_hidden_in_training_more_often():
    encoder = make(characters=False, dropout=0.0)
    chances = encoder.hiding.tolist()
    assert chances[:2] == [0.0, 0.0]
    assert chances[2] == pytest.approx(0.25 / 3.25) and chances[-1] == pytest.approx(0.25 / 1.25)
    words = torch.full((4000, 1), 6)
    states = encoder(torch.ones(4000, 1, dtype=torch.bool), words=words)
    unknown = encoder.eval()(torch.ones(1, 1, dtype=torch.bool), words=torch.tensor([[UNKNOWN]]))
    share = (states - unknown).abs().amax((1, 2)).lt(1e-6).double().mean()
    assert abs(float(share) - 0.2) < 0.03


def test_settings_make_the_same_encoder(tmp_path):
    encoder = make(layers=2).eval()
    settings = encoder.save(tmp_path)
    assert not list(tmp_path.iterdir())
    twin = encoder_class("bilstm").load(tmp_path, settings)
    twin.load_state_dict(encoder.state_dict())
    assert torch.equal(run(twin.eval(), SENTENCES, 8), run(encoder, SENTENCES, 8))


def test_complaints():
    with pytest.raises(ValueError, match="`counts` must have one count for each of 5 words, got 2"):
        BiLSTM(WORDS, [1, 2])
    with pytest.raises(ValueError, match="`spelling` must be a tensor"):
        make()(torch.ones(1, 1, dtype=torch.bool), words=torch.tensor([[2]]))
    with pytest.raises(ValueError, match="`encoder` must be one of 'bilstm', 'transformer', got 'gpt'"):
        encoder_class("gpt")
