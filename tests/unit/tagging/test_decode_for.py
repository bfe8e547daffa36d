"""`Tagger.predict(decode_for=…)` against enumeration, and its mean cost in an evaluation."""

import itertools
import math

import pytest
import torch

from linearcore.structures import Hamming, resolve_cost
from linearcore.tagging import Evaluation, Tagger, TaggingModel, Vocabulary
from linearcore.tagging._costs import MeanCost
from linearcore.tagging.encoders import BiLSTM
from tests.tagged_text import sentences

DATA = [words for words, _ in sentences(30)]
TAGS = ["O", "B-X", "I-X"]
LOSSES = ["lc", "crf", "ssvm", "ce"]


def make(loss: str, tags: list[str] = TAGS, **options: object) -> Tagger:
    torch.manual_seed(0)
    vocabulary = Vocabulary.of([(words, itertools.islice(itertools.cycle(tags), 9)) for words in DATA])
    encoder = BiLSTM(vocabulary.words, vocabulary.counts, embedding=8, spelling=8, hidden=8, buckets=100)
    model = TaggingModel(encoder, tags, loss, **options).eval()
    with torch.no_grad():
        for parameter in (model.projection.weight, *([] if model.head is None else model.head.parameters())):
            parameter.copy_(torch.randn(parameter.shape))
    return Tagger(model, Vocabulary(vocabulary.words, vocabulary.counts, tags), "tag")


@pytest.mark.parametrize("name", ("span-f1", "edit", "hamming", "zero-one"))
@pytest.mark.parametrize("loss", LOSSES)
def test_the_expected_cost_is_least(loss: str, name: str) -> None:
    tagger, cost = make(loss), resolve_cost(name, TAGS)
    data = [words[:length] for words, length in zip(DATA, (1, 2, 3, 4), strict=False)]
    # All sequences are candidates: 3^4.
    found = list(tagger.predict(data, decode_for=name, candidates=81, temperature=2.0))
    listed = list(tagger.predict(data, kbest=81))
    for prediction, every in zip(found, listed, strict=True):
        outputs = torch.tensor([[TAGS.index(tag) for tag in item.tags] for item in every.kbest])
        probs = torch.tensor([item.score / 2 for item in every.kbest]).double().softmax(0)
        costs = cost.between(outputs.unsqueeze(1), outputs, dtype=torch.float64) @ probs
        chosen = [item.tags for item in every.kbest].index(prediction.tags)
        assert float(costs[chosen]) == pytest.approx(float(costs.min()), abs=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_batches_do_not_change_the_tags(loss: str) -> None:
    tagger = make(loss)
    options = {"decode_for": "span-f1", "candidates": 4, "temperature": 3.0}
    together = [prediction.tags for prediction in tagger.predict(DATA, **options)]
    assert [next(tagger.predict([words], **options)).tags for words in DATA] == together
    assert together != [prediction.tags for prediction in tagger.predict(DATA)]
    empty, one = tagger.predict([[], DATA[0][:1]], confidences=True, **options)
    assert empty.tags == [] and len(one.tags) == len(one.confidences) == 1


def test_constraints_hold() -> None:
    tagger = make("crf", constraints="bio")
    for prediction in tagger.predict(DATA, decode_for="span-f1", temperature=5.0):
        for before, tag in itertools.pairwise(["O", *prediction.tags]):
            assert tag != "I-X" or before != "O"


@pytest.mark.parametrize(
    ("options", "fact"),
    (
        ({"decode_for": "f1"}, "`decode_for` must be one of 'zero-one', 'hamming', "),
        ({"decode_for": "edit", "kbest": 2}, "`kbest` must be omitted with `decode_for`, got both"),
        ({"decode_for": "edit", "margin": True}, "`margin` must be omitted with `decode_for`, got both"),
        ({"decode_for": "edit", "beam": 4}, "`beam` must be omitted with `decode_for`, got both"),
        ({"decode_for": "edit", "temperature": -1}, "`temperature` must be a positive number, got -1"),
        ({"decode_for": "edit", "candidates": 0}, "`candidates` must be an integer of at least 1, got 0"),
        ({"temperature": 2.0}, "`temperature` must come with `decode_for`, got 2.0 alone"),
        ({"candidates": 2}, "`candidates` must come with `decode_for`, got 2 alone"),
        ({"decode_for": Hamming(torch.ones(2))}, "`decode_for` must fit the tags of the model, got Hamming; "),
    ),
)
def test_messages(options: dict[str, object], fact: str) -> None:
    with pytest.raises(ValueError) as error:
        next(make("lc").predict(DATA, **options))
    assert fact in str(error.value)


def test_other_tags_than_those_of_spans_are_refused() -> None:
    tagger = make("lc", tags=["NOUN", "VERB"])
    with pytest.raises(ValueError, match=r"`decode_for` must fit the tags of the model, got 'span-f1'; .*'NOUN'"):
        tagger.predict(DATA, decode_for="span-f1")
    assert len(next(tagger.predict(DATA, decode_for="edit")).tags) == len(DATA[0])


def test_the_mean_cost_of_an_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = make("crf")
    data = [(words, (["B-X", "I-X", "O", "B-X"] * 3)[: len(words)]) for words in DATA]
    data[3][1][0] = "B-NEW"  # A gold tag that the tagger does not know.
    names = [*TAGS, "B-NEW"]
    for name in ("span-f1", "bleu"):
        monkeypatch.setattr("linearcore.tagging._costs._BLOCK", 7)
        evaluation = tagger.evaluate(data, decode_for=name)
        tags = [prediction.tags for prediction in tagger.predict(DATA, decode_for=name)]
        cost, costs = resolve_cost(name, names), []
        for predicted, (_, gold) in zip(tags, data, strict=True):
            rows = (torch.tensor([names.index(tag) for tag in row]) for row in (predicted, gold))
            costs.append(cost.between(*rows, dtype=torch.float64).item())
        assert evaluation.mean_cost.value == pytest.approx(math.fsum(costs) / len(costs))
        assert evaluation.to_json()["cost"] == {"name": name, "mean": evaluation.mean_cost.value}


def test_a_mean_needs_a_sentence_and_a_cost_that_fits() -> None:
    with pytest.raises(ValueError, match="`sentences` must be at least one, got 0"):
        _ = MeanCost("edit", TAGS).value
    with pytest.raises(ValueError, match="`decode_for` must fit the tags of the model, got 'span-f1'"):
        Evaluation(known_tags=["NOUN"], cost="span-f1")
