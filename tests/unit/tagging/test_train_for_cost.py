"""Training with `cost`: the loss of the model's candidates beside that of the head."""

import json
import random
from dataclasses import replace

import pytest
import torch

from linearcore.structures import EditDistance, SpanF1
from linearcore.tagging import StoppedError, Tagger, Training, train
from linearcore.tagging._model import TaggingModel
from linearcore.tagging.encoders import BiLSTM
from tests.cases import each

NAMES = ["O", "B-X", "I-X"]
SHORT = Training(epochs=4, batch_tokens=64, hidden=12, embedding=8, lr=0.02, cost="span-f1", seed=2)


def entities(count, seed=0):
    """Sentences with one span: words that end in -in continue it, those in -an begin it."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        before, inside, after = (draw.randint(0, 2) for _ in range(3))
        tags = ["O"] * before + ["B-X"] + ["I-X"] * inside + ["O"] * after
        endings = {"O": "on", "B-X": "an", "I-X": "in"}
        found.append(([draw.choice("abcdef") + draw.choice("rst") + endings[tag] for tag in tags], tags))
    return found


DATA, DEV = entities(80), entities(20, seed=1)


def weights(tagger):
    return torch.cat([value.flatten().float() for value in tagger.model.state_dict().values()])


def batch(model, rows=4, length=6):
    generator = torch.Generator().manual_seed(0)
    hidden, tags = torch.randn(rows, length, 24, generator=generator), torch.randint(3, (rows, length), generator=generator)
    mask = torch.arange(length) < torch.tensor([6, 5, 3, 1]).unsqueeze(1)
    return hidden[..., : model.encoder.width], mask, tags.masked_fill(~mask, -100)


@pytest.mark.parametrize(("name", "cost"), [("span-f1", SpanF1(tuple(NAMES))), ("edit", EditDistance())])
def test_the_loss_of_the_model_is_the_candidate_loss_of_the_head(name, cost):
    model = TaggingModel(BiLSTM(["a"], hidden=12), NAMES, cost=name)
    hidden, mask, tags = batch(model)
    loss, emissions = model.loss(hidden, mask, tags), model.projection(hidden)
    torch.testing.assert_close(loss, model.head.candidate_loss(emissions, tags, mask, cost=cost))
    assert (loss - model.head.loss(emissions, tags, mask)).abs() > 1e-3
    loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in (*model.projection.parameters(), *model.head.parameters()))


def test_large_batches_are_trained_for_the_cost_too(monkeypatch):
    model = TaggingModel(BiLSTM(["a"], hidden=12), NAMES, cost="edit")
    expected = model.loss(*batch(model))
    monkeypatch.setattr("linearcore.tagging._model.LARGE_EMISSIONS", 1)
    torch.testing.assert_close(model.loss(*batch(model)), expected)


@each("cost", {name: name for name in ("span-f1", "token-f1", "edit", "bleu", "hamming")}, ["span-f1"])
def test_the_loss_falls_and_the_saved_tagger_predicts(cost, tmp_path):
    found = train(DATA, DEV, replace(SHORT, cost=cost), out=tmp_path)
    losses = [row["loss"] for row in found.history]
    assert losses[-1] < 0.8 * losses[0]
    tagger = Tagger.load(tmp_path)
    assert tagger.model.settings()["cost"] == tagger.metadata["training"]["cost"] == cost
    for words, _ in DEV:
        assert tagger.tag(words) == found.tagger.tag(words)
    assert found.tagger.metadata["dev_accuracy"] > 80
    alone = train(DATA, DEV, replace(SHORT, cost=None))
    assert not torch.equal(weights(alone.tagger), weights(tagger))


def test_a_tagger_without_cost_can_be_read_by_earlier_versions(tmp_path):
    train(DATA[:10], DEV, replace(SHORT, cost=None, epochs=1), out=tmp_path)
    assert "cost" not in json.loads((tmp_path / "linearcore.json").read_text())["settings"]["model"]


def test_an_interrupted_run_goes_on_to_equal_weights(tmp_path, monkeypatch):
    whole = train(DATA, DEV, SHORT).tagger
    with monkeypatch.context() as patch:
        patch.setattr("linearcore.tagging._loop.Interrupt.__bool__", lambda _: True, raising=False)
        with pytest.raises(StoppedError):
            train(DATA, DEV, SHORT, out=tmp_path)
    with pytest.raises(ValueError, match="another cost"):
        train(DATA, DEV, replace(SHORT, cost="edit"), out=tmp_path)
    found = train(DATA, DEV, SHORT, out=tmp_path)
    assert found.resumed is not None and torch.equal(weights(whole), weights(found.tagger))


def test_training_can_go_on_with_another_cost_or_without(tmp_path):
    train(DATA, DEV, replace(SHORT, cost=None, epochs=1), out=tmp_path / "plain")
    for cost in ("span-f1", None, "hamming"):
        settings = Training(epochs=1, batch_tokens=64, cost=cost, continue_from=str(tmp_path / "plain"))
        tagger = train(DATA, DEV, settings).tagger
        assert tagger.model.settings()["cost"] == cost
        assert (tagger.model.cost is None) == (cost is None)
        tagger.save(tmp_path / "plain")


OPTIONS = {"precision": "bf16", "rank": 2, "constraints": "none", "unary": 0.5, "sharpness": 2.0}


@each("options", {name: {name: value} for name, value in OPTIONS.items()}, ["precision"])
def test_options_that_it_works_with(options):
    found = train(DATA, DEV, replace(SHORT, **options))
    assert found.history[-1]["loss"] < found.history[0]["loss"]


def test_composed_tags():
    data = [(words, [f"{tag} _" if tag == "O" else f"{tag[2:]} Place={tag[0]}" for tag in tags]) for words, tags in DATA]
    found = train(data, data[:10], replace(SHORT, cost="edit", compose=True, epochs=2), columns="upos+feats")
    assert found.history[-1]["loss"] < found.history[0]["loss"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(({"loss": loss}, f"`cost` must be None with loss '{loss}'") for loss in ("crf", "ssvm", "ce")),
        ({"compiled": True}, "`compiled` must be False with `cost`"),
        ({"cost": "f1"}, "`cost` must be one of"),
    ],
)
def test_settings_that_are_refused(options, message):
    with pytest.raises(ValueError, match=message) as found:
        replace(SHORT, **options)
    assert "\n" not in str(found.value)


def test_a_cost_that_does_not_fit_the_tags_is_refused_before_training():
    data = [(words, ["NOUN"] * len(words)) for words, _ in DATA]
    with pytest.raises(ValueError, match="`cost` must fit the tags") as found:
        train(data, data, SHORT)
    assert "\n" not in str(found.value)
    with pytest.raises(ValueError, match="`tags` must be names with `cost`"):
        TaggingModel(BiLSTM(["a"]), 3, cost="hamming")
