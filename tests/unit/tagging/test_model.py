import pytest
import torch
import torch.nn.functional as F

from linearcore.heads import ChainCRF, ChainSSVM, LinearCoreChain
from linearcore.surrogates import LinearCore
from linearcore.tagging._heads import DEFAULT_BEAM, MAX_EXACT_TAGS
from linearcore.tagging._model import IGNORED, TaggingModel
from linearcore.tagging.encoders import BiLSTM

WORDS = ["a", "b", "c"]
HEADS = {"lc": LinearCoreChain, "crf": ChainCRF, "ssvm": ChainSSVM, "ce": type(None)}
MASK = torch.tensor([[True, True, True], [True, False, False], [False, False, False]])
TAGS = torch.tensor([[0, 3, 1], [2, IGNORED, IGNORED], [IGNORED] * 3])


def make(loss="lc", num_tags=4, **options):
    torch.manual_seed(1)
    return TaggingModel(BiLSTM(WORDS, hidden=5, dropout=0.0), num_tags, loss, **options)


def inputs(model):
    rows = [model.encoder.featurize(words) for words in (["a", "b", "x"], ["c"], [])]
    return model.encoder.collate(rows, 3)


@pytest.mark.parametrize("loss", HEADS)
def test_the_loss_is_the_heads_mean_over_words(loss):
    model = make(loss)
    assert isinstance(model.head, HEADS[loss])
    found = model(MASK, inputs(model), TAGS)
    emissions = model.emissions(MASK, inputs(model))
    if model.head is None:
        expected = F.cross_entropy(emissions[MASK], TAGS[MASK])
    else:
        # Sentences one by one, without padding.
        first, second = emissions[:1], emissions[1:2, :1]
        expected = -(model.head(first, TAGS[:1]) + model.head(second, TAGS[1:2, :1])) / 4
    torch.testing.assert_close(found, expected)
    found.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name


@pytest.mark.parametrize(("loss", "options"), [("lc", {}), ("lc", {"rank": 2, "unary": 0.5}), ("crf", {}), ("ssvm", {})])
def test_large_emissions_are_computed_in_chunks(monkeypatch, loss, options):
    model, results = make(loss, **options), []
    for large in (10**9, 0):
        monkeypatch.setattr("linearcore.tagging._model.LARGE_EMISSIONS", large)
        monkeypatch.setattr("linearcore.heads._linear.default_chunk", lambda hidden: 1)
        value = model(MASK, inputs(model), TAGS)
        results.append([value.detach(), *torch.autograd.grad(value, list(model.parameters()))])
    for chunked, at_once in zip(*reversed(results), strict=True):
        torch.testing.assert_close(chunked, at_once)
    monkeypatch.setattr(type(model.head), "linear_loss", None)
    with pytest.raises(TypeError):
        model(MASK, inputs(model), TAGS)


@pytest.mark.parametrize("loss", HEADS)
def test_decoding_is_the_heads_own(loss):
    model = make(loss).eval()
    found = model.decode(MASK, inputs(model))
    assert found.shape == MASK.shape
    assert torch.equal(found == IGNORED, ~MASK)
    emissions = model.emissions(MASK, inputs(model))
    expected = emissions[:1].argmax(-1) if model.head is None else model.head.viterbi(emissions[:1])[0]
    assert torch.equal(found[:1], expected)


def test_many_tags_are_decoded_by_a_beam():
    assert make(num_tags=MAX_EXACT_TAGS).beam == 0
    assert make(num_tags=MAX_EXACT_TAGS + 1).beam == DEFAULT_BEAM
    assert make(num_tags=MAX_EXACT_TAGS + 1, beam=0).beam == 0
    wide, exact = make(num_tags=9, beam=9).eval(), make(num_tags=9, beam=0).eval()
    assert torch.equal(wide.decode(MASK, inputs(wide)), exact.decode(MASK, inputs(exact)))


def test_settings_make_the_same_model():
    model = make("crf", rank=2, beam=3)
    twin = TaggingModel(BiLSTM(WORDS, hidden=5), 4, **model.settings())
    twin.load_state_dict(model.state_dict())
    assert twin.head.rank == 2 and twin.beam == 3


@pytest.mark.parametrize("option", ["rank", "beam"])
def test_cross_entropy_refuses_options_of_chains(option):
    with pytest.raises(ValueError, match=f"`{option}` must be None with loss 'ce', got 3"):
        make("ce", **{option: 3})


def test_options_of_the_linear_core():
    model = make(unary=0.5, sharpness=4.0, rank=2)
    assert model.head.unary == 0.5 and model.head.surrogate == LinearCore(sharpness=4.0)
    assert (make().head.unary, make().head.surrogate) == (0.0, LinearCore())
    twin = TaggingModel(BiLSTM(WORDS, hidden=5), 4, **model.settings())
    assert repr(twin.head) == repr(model.head)
    assert not torch.equal(model(MASK, inputs(model), TAGS), make(rank=2)(MASK, inputs(model), TAGS))


@pytest.mark.parametrize("option", ["unary", "sharpness"])
@pytest.mark.parametrize("loss", ["ce", "crf", "ssvm"])
def test_other_losses_refuse_options_of_the_linear_core(loss, option):
    with pytest.raises(ValueError, match=f"^`{option}` must be None with loss '{loss}', got 0.5; omit it, or use loss 'lc'"):
        make(loss, **{option: 0.5})


def test_an_unknown_loss():
    with pytest.raises(ValueError, match="`loss` must be one of 'lc', 'crf', 'ssvm', 'ce', got 'mse'"):
        make("mse")
