import pytest
import torch

from linearcore.tagging import Training
from linearcore.tagging._batches import batches
from linearcore.tagging._corpus import Corpus
from linearcore.tagging._model import TaggingModel
from linearcore.tagging._steps import Stepper, lr_at, make_optimizer
from linearcore.tagging._vocabulary import Vocabulary
from linearcore.tagging.encoders import BiLSTM
from tests.tagged_text import sentences


def test_the_rate_rises_and_then_falls_to_zero():
    settings = Training(lr=1.0, warmup=0.1)
    rates = [lr_at(step, 100, settings) for step in range(101)]
    assert rates[:10] == pytest.approx([step / 10 for step in range(1, 11)])
    assert rates[10] == pytest.approx(1.0)
    assert rates[55] == pytest.approx(0.5)
    assert rates[99] == pytest.approx(1 / 90) and rates[100] == 0.0
    assert lr_at(0, 1, settings) > 0


def work(optimizer="adam", clip=5.0, dtype=None, compiled=False, chain_lr_scale=None):
    torch.manual_seed(0)
    settings = Training(optimizer=optimizer, weight_decay=0.0, chain_lr_scale=chain_lr_scale)
    data = sentences(20)
    vocabulary = Vocabulary.of(data)
    model = TaggingModel(BiLSTM(vocabulary.words, hidden=8, dropout=0.0), len(vocabulary.tags))
    corpus = Corpus.of(data, vocabulary, model.encoder)
    batch = corpus.batch(batches(corpus.lengths, 64)[0])
    return Stepper(model, make_optimizer(model, settings), clip, dtype, compiled=compiled), batch


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_steps_learn(optimizer, dtype):
    stepper, batch = work(optimizer, dtype=dtype)
    rate = 0.01 if optimizer == "adam" else 0.1
    losses = [float(stepper.step(batch, rate)) for _ in range(30)]
    assert losses[-1] < 0.3 * losses[0]
    assert all(parameter.dtype == torch.float32 for parameter in stepper.model.parameters())


def test_gradients_are_clipped_and_the_rate_is_used():
    stepper, batch = work("sgd", clip=1e-3)
    before = [parameter.detach().clone() for parameter in stepper.model.parameters()]
    stepper.step(batch, 1.0)
    pairs = zip(before, stepper.model.parameters(), strict=True)
    moved = torch.cat([(new.detach() - old).flatten() for old, new in pairs]).norm()
    assert float(moved) == pytest.approx(1e-3, rel=0.01)
    old = [parameter.detach().clone() for parameter in stepper.model.parameters()]
    stepper.step(batch, 0.0)
    assert all(torch.equal(one, other) for one, other in zip(old, stepper.model.parameters(), strict=True))


def moves(chain_lr_scale):
    """What one step of SGD moves, of the chain and of all else, by name."""
    stepper, batch = work("sgd", chain_lr_scale=chain_lr_scale)
    before = {name: value.detach().clone() for name, value in stepper.model.named_parameters()}
    stepper.step(batch, 0.5)
    return {name: value.detach() - before[name] for name, value in stepper.model.named_parameters()}


@pytest.mark.parametrize("share", [0.1, 4.0])
def test_chain_learns_at_its_own_rate(share):
    usual, found = moves(None), moves(share)
    assert any(name.startswith("head.") for name in usual) and list(usual) == list(found)
    for name, value in usual.items():
        wanted = share * value if name.startswith("head.") else value
        torch.testing.assert_close(found[name], wanted, msg=name)
    assert all(float(value.abs().max()) > 0 for name, value in usual.items() if "transitions" in name)


def test_a_compiled_loss_takes_the_same_steps(monkeypatch):
    # Traced as always, and run as it is: what a compiler makes of it is a compiler's matter, and takes half a minute.
    traced, compile_ = [], torch.compile
    monkeypatch.setattr(torch, "compile", lambda loss: traced.append(loss) or compile_(loss, backend="aot_eager"))
    (plain, batch), (compiled, _) = work(), work(compiled=True)
    losses = [[float(stepper.step(batch, 0.01)) for _ in range(3)] for stepper in (plain, compiled)]
    assert traced == [compiled.model.loss]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    for one, other in zip(plain.model.parameters(), compiled.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


@pytest.fixture
def reproducible():
    """Additions in a fixed order. Without it two plain runs differ, too: by 0.1 % after 40 steps of Adam on an H200."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="wants a GPU")
@pytest.mark.parametrize("loss", ["lc", "crf", "ssvm", "ce"])
@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_captured_steps_are_plain_steps(loss, optimizer, reproducible):
    data = sentences(60)
    vocabulary = Vocabulary.of(data)
    found = []
    for captured in (True, False):
        torch.manual_seed(0)
        model = TaggingModel(BiLSTM(vocabulary.words, hidden=8, dropout=0.0), len(vocabulary.tags), loss).cuda()
        corpus = Corpus.of(data, vocabulary, model.encoder)
        stepper = Stepper(model, make_optimizer(model, Training(optimizer=optimizer)), 5.0, captured=captured)
        some = [corpus.batch(bucket, full=True).to(torch.device("cuda")) for bucket in batches(corpus.lengths, 64)]
        rates = [0.01 * (1 + step % 3) for step in range(8 * len(some))]
        found.append([float(stepper.step(some[step % len(some)], rate)) for step, rate in enumerate(rates)])
        assert stepper._graphs.uses_graphs == captured and bool(stepper._graphs._graphs) == captured
    assert found[0] == pytest.approx(found[1], rel=1e-2, abs=1e-3)
    assert found[0][-1] < found[0][0]
