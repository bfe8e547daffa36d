"""Entities against seqeval's own scores."""

import random
import sys

import pytest

from linearcore import _extras
from linearcore._extras import MissingExtraError
from linearcore.tagging._entities import Entities
from linearcore.tagging._evaluation import Evaluation

metrics = pytest.importorskip("seqeval.metrics")

BIO = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-a-b", "I-a-b"]
BIOES = ["O", *(f"{prefix}-{kind}" for prefix in "BIES" for kind in ("PER", "LOC"))]


def random_tags(tags: list[str], seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Gold and predicted tags without any order, so that every odd transition occurs."""
    stream = random.Random(seed)
    gold = [stream.choices(tags, k=stream.randint(1, 10)) for _ in range(300)]
    predicted = [[tag if stream.random() < 0.8 else stream.choice(tags) for tag in sentence] for sentence in gold]
    return gold, predicted


@pytest.mark.parametrize("tags", [BIO, BIOES], ids=["BIO", "BIOES"])
@pytest.mark.parametrize("seed", range(3))
def test_as_seqeval_counts(tags, seed):
    gold, predicted = random_tags(tags, seed)
    entities = Entities()
    for sentence in zip(gold, predicted, strict=True):
        entities.add(*sentence)
    assert entities.has_entities
    report = metrics.classification_report(gold, predicted, output_dict=True, zero_division=0)
    found = {**entities.types(), "micro avg": entities.overall()}
    assert set(found) == set(report) - {"macro avg", "weighted avg"}
    for name, rates in found.items():
        expected = report[name]
        assert [rates.precision, rates.recall, rates.f1] == pytest.approx(
            [100 * expected[key] for key in ("precision", "recall", "f1-score")]
        )
        assert rates.support == expected["support"]
    assert entities.overall().f1 == pytest.approx(100 * metrics.f1_score(gold, predicted))
    assert 10 < entities.overall().f1 < 90


def test_the_evaluation_reports_them():
    gold, predicted = random_tags(BIO, 0)
    evaluation = Evaluation()
    for sentence in zip(gold, predicted, strict=True):
        evaluation.add(sentence[0], *sentence)
    found = evaluation.to_json()["entities"]
    assert found["f1"] == pytest.approx(100 * metrics.f1_score(gold, predicted))
    assert list(found["types"]) == sorted(found["types"], key=lambda kind: -found["types"][kind]["support"])
    assert found["types"]["a-b"]["support"] > 0


@pytest.mark.parametrize("tag", ["NN", "O-X", "B-", "B", "np-tl", "o", "M-PER", "", "-X", "BI-X"])
def test_one_other_gold_tag_ends_it_for_good(tag):
    evaluation = Evaluation()
    evaluation.add(["a"], ["B-PER"], ["B-PER"])
    assert evaluation.entities is not None
    evaluation.add(["b", "c"], ["O", tag], ["O", "O"])
    evaluation.add(["a"], ["B-PER"], ["B-PER"])
    assert evaluation.entities is None and evaluation.to_json()["entities"] is None


def test_a_predicted_tag_of_another_kind_is_outside():
    entities, plain = Entities(), Entities()
    entities.add(["B-PER", "I-PER", "O"], ["B-PER", "NN", "B"])
    plain.add(["B-PER", "I-PER", "O"], ["B-PER", "O", "O"])
    assert entities.to_json() == plain.to_json() and entities.has_entities


def test_nothing_but_outside_is_no_sign_of_entities():
    evaluation = Evaluation()
    evaluation.add(["a"], ["O"], ["O"])
    assert evaluation.entities is None
    evaluation.add(["a"], ["O"], ["B-PER"])
    assert evaluation.entities is None
    evaluation.add(["a"], ["S-PER"], ["O"])
    assert evaluation.entities is not None
    overall = evaluation.entities.overall()
    assert (overall.precision, overall.recall, overall.f1, overall.support) == (0.0, 0.0, 0.0, 1), "the false one counts too"
    assert evaluation.entities._predicted == {"PER": 1}


def test_seqeval_is_wanted_only_for_entities(monkeypatch):
    monkeypatch.setattr(_extras, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "seqeval", None)
    evaluation = Evaluation()
    evaluation.add(["a"], ["O"], ["O"])
    with pytest.raises(MissingExtraError, match=r"seqeval not installed; run pip install 'linearcore\[tagging\]'"):
        evaluation.add(["a"], ["B-PER"], ["O"])
    assert evaluation.words.count == 1, "what failed is not counted"
    evaluation = Evaluation()
    evaluation.add(["a", "b"], ["NN", "O"], ["NN", "B-PER"])
    assert evaluation.accuracy == 50.0
