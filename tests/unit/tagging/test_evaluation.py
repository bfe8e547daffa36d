"""Evaluation against scikit-learn and against counting by hand."""

import json
import random

import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

from linearcore.tagging._entities import PrecisionRecall
from linearcore.tagging._evaluation import Confusion, CorrectCount, Evaluation

TAGS = ["NOUN", "VERB", "ADJ", "ADV", "X"]


def sentences(seed: int = 0) -> list[tuple[list[str], list[str], list[str]]]:
    """Words, gold and predicted tags; X is never predicted and Y never gold."""
    stream = random.Random(seed)
    found = []
    for _ in range(200):
        length = stream.randint(1, 12)
        words = [f"w{stream.randrange(50)}" for _ in range(length)]
        gold = stream.choices(TAGS, weights=[50, 30, 10, 5, 1], k=length)
        wrong = stream.choices(["NOUN", "VERB", "ADJ", "ADV", "Y"], k=length)
        tags = [guess if tag == "X" or stream.random() < 0.1 else tag for tag, guess in zip(gold, wrong, strict=True)]
        found.append((words, gold, tags))
    return found


KNOWN = {f"w{number}" for number in range(30)}


@pytest.fixture
def evaluation() -> Evaluation:
    result = Evaluation(KNOWN, known_tags=set(TAGS) - {"X"})
    for sentence in sentences():
        result.add(*sentence)
    return result


def flat(which: int) -> list[str]:
    return [item for sentence in sentences() for item in sentence[which]]


def test_accuracy(evaluation):
    assert evaluation.accuracy == pytest.approx(100 * accuracy_score(flat(1), flat(2)))
    assert evaluation.words.count == len(flat(0))


def test_known_and_unknown_words(evaluation):
    for share, is_known in ((evaluation.known, True), (evaluation.unknown, False)):
        picked = [(gold, tag) for word, gold, tag in zip(*map(flat, range(3)), strict=True) if (word in KNOWN) is is_known]
        assert share.count == len(picked) > 100
        assert share.accuracy == pytest.approx(100 * accuracy_score(*zip(*picked, strict=True)))


def test_sentences(evaluation):
    right = [gold == predicted for _, gold, predicted in sentences()]
    assert evaluation.sentences == CorrectCount(sum(right), len(right)) and 0 < sum(right) < len(right)


def test_rates_of_tags(evaluation):
    tags = evaluation.tags()
    assert set(tags) == {*TAGS, "Y"}
    table = precision_recall_fscore_support(flat(1), flat(2), labels=list(tags), zero_division=0)
    for rates, precision, recall, f1, support in zip(tags.values(), *table, strict=True):
        expected = [100 * precision, 100 * recall, 100 * f1, support]
        assert [rates.precision, rates.recall, rates.f1, rates.support] == pytest.approx(expected)
    supports = [rates.support for rates in tags.values()]
    assert supports == sorted(supports, reverse=True) and tags["Y"].support == 0


def test_confusions(evaluation):
    labels = sorted({*TAGS, "Y"})
    matrix = confusion_matrix(flat(1), flat(2), labels=labels)
    expected = {
        (gold, predicted): count
        for gold, row in zip(labels, matrix.tolist(), strict=True)
        for predicted, count in zip(labels, row, strict=True)
        if gold != predicted and count
    }
    found = evaluation.confusions()
    assert {(pair.gold, pair.predicted): pair.count for pair in found} == expected and len(found) == len(expected)
    assert [pair.count for pair in found] == sorted(expected.values(), reverse=True)
    assert evaluation.confusions(3) == found[:3]


def test_equal_counts_are_ordered_by_name():
    evaluation = Evaluation()
    evaluation.add(["a", "b", "c"], ["B", "A", "A"], ["C", "C", "B"])
    assert evaluation.confusions() == [Confusion("A", "B", 1), Confusion("A", "C", 1), Confusion("B", "C", 1)]
    assert list(evaluation.tags()) == ["A", "B", "C"]


def test_unseen_tags_are_counted_and_wrong(evaluation):
    assert evaluation.unseen_tags == {"X": flat(1).count("X")}
    assert evaluation.tags()["X"] == PrecisionRecall(0.0, 0.0, 0.0, flat(1).count("X"))
    unasked = Evaluation()
    unasked.add(["a"], ["X"], ["Y"])
    assert unasked.unseen_tags == {} and unasked.known == CorrectCount(0, 1) and unasked.unknown.accuracy is None


def test_order_and_division_into_sentences_do_not_matter_to_words(evaluation):
    other = Evaluation(KNOWN)
    for words, gold, predicted in reversed(sentences()):
        for item in zip(words, gold, predicted, strict=True):
            other.add(*([part] for part in item))
    assert other.tags() == evaluation.tags() and other.confusions() == evaluation.confusions()
    assert (other.known, other.unknown, other.accuracy) == (evaluation.known, evaluation.unknown, evaluation.accuracy)


def test_json(evaluation):
    found = evaluation.to_json()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    counts = ["accuracy", "tokens", "sentences", "known", "unknown", "unseen_tags"]
    assert list(found) == [*counts, "columns", "universal_features", "features", "tags", "confusions", "entities", "cost"]
    assert found["accuracy"] == evaluation.accuracy and found["tokens"] == len(flat(0))
    assert found["sentences"] == {"count": 200, "accuracy": evaluation.sentences.accuracy}
    assert found["unknown"] == {"count": evaluation.unknown.count, "accuracy": evaluation.unknown.accuracy}
    noun = evaluation.tags()["NOUN"]
    assert found["tags"]["NOUN"] == {
        "precision": noun.precision, "recall": noun.recall, "f1": noun.f1, "support": noun.support,
    }  # fmt: skip
    assert set(found["confusions"][0]) == {"gold", "predicted", "count"}
    assert found["entities"] is None and found["cost"] is None


def test_it_keeps_counts_and_no_sentences():
    evaluation = Evaluation()
    for number in range(1000):
        evaluation.add([f"w{number}"] * 5, ["A"] * 5, ["A", "B"] + ["A"] * 3)
    # The parts are counters and numbers; nothing else can grow.
    sizes = [len(part) for part in vars(evaluation).values() if hasattr(part, "__len__")]
    assert sizes == [2]


def test_messages():
    evaluation = Evaluation()
    with pytest.raises(ValueError, match="`gold` must be as many as the 2 words, got 1"):
        evaluation.add(["a", "b"], ["A"], ["A", "A"])
    with pytest.raises(ValueError, match="`predicted` must be as many as the 2 words, got 3"):
        evaluation.add(["a", "b"], ["A", "A"], ["A"] * 3)
    with pytest.raises(ValueError, match="`words` must be at least one, got 0"):
        evaluation.add([], [], [])
    for ask in (lambda: evaluation.accuracy, evaluation.to_json):
        with pytest.raises(ValueError, match="`evaluation` must have a sentence, got none; add one first"):
            ask()
