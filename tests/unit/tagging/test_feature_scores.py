"""Scores by column and by feature, compared with counts made by hand."""

import pytest

from linearcore.tagging import Evaluation
from linearcore.tagging._evaluation import CorrectCount
from linearcore.tagging._feature_scores import FeatureScores

WORDS = ["a", "b", "c", "d"]
GOLD = ["NOUN Case=Nom|Number=Sing", "NOUN Case=Acc|Number=Sing", "VERB Case=Nom|Style=Rare", "PUNCT _"]
#: Right in another order; another case; the wrong UPOS, Style missing; a feature that is not in the gold tag.
PREDICTED = ["NOUN Number=Sing|Case=Nom", "NOUN Case=Nom|Number=Sing", "NOUN Case=Nom", "PUNCT Number=Sing"]


@pytest.fixture
def joint() -> Evaluation:
    evaluation = Evaluation(known_words={"a", "b"}, known_tags=[*GOLD[:3], *PREDICTED], columns="upos+feats")
    evaluation.add(WORDS, GOLD, PREDICTED)
    return evaluation


def test_columns(joint):
    assert joint.words == CorrectCount(1, 4) and joint.sentences == CorrectCount(0, 1)
    assert joint.columns() == {"upos": CorrectCount(3, 4), "feats": CorrectCount(1, 4)}
    assert joint.known == CorrectCount(1, 2) and joint.unknown == CorrectCount(0, 2)
    # Style is not universal, so the third word counts here.
    assert joint.universal_features == CorrectCount(2, 4)


def test_features(joint):
    found = {name: (scores.precision, scores.recall, scores.support) for name, scores in joint.features().items()}
    # Case: 3 in gold, 3 predicted, 2 correct. Number: 2 in gold, 3 predicted, 2 correct. Style: 1 in gold, none predicted.
    assert list(found) == ["Case", "Number", "Style"]
    assert found["Case"] == pytest.approx((200 / 3, 200 / 3, 3)) and found["Number"] == pytest.approx((200 / 3, 100.0, 2))
    assert found["Style"] == (0.0, 0.0, 1)
    assert joint.features()["Number"].f1 == pytest.approx(80.0)


def test_the_order_of_features_does_not_matter(joint):
    assert "NOUN Case=Nom|Number=Sing" in joint.tags() and "NOUN Number=Sing|Case=Nom" not in joint.tags()
    assert all(pair.gold != "NOUN Case=Nom|Number=Sing" for pair in joint.confusions())
    assert joint.unseen_tags == {"PUNCT _": 1}


def test_json_has_columns_and_features(joint):
    found = joint.to_json()
    assert found["columns"] == {"upos": {"count": 4, "accuracy": 75.0}, "feats": {"count": 4, "accuracy": 25.0}}
    assert found["universal_features"] == {"count": 4, "accuracy": 50.0}
    assert found["features"]["Style"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1}


def test_no_features_in_other_columns():
    evaluation = Evaluation(columns="upos")
    evaluation.add(["a"], ["NOUN"], ["VERB"])
    assert evaluation.features() == {} and evaluation.universal_features is None
    assert evaluation.columns() == {"upos": CorrectCount(0, 1)}


def test_features_of_a_column_without_a_name():
    """A column file has numbers; its features are recognised by the tags of the training data."""
    evaluation = Evaluation(known_tags=["N Case=Nom", "V _"], columns="2+3")
    evaluation.add(["a", "b"], ["N Case=Nom|Number=Sing", "V _"], ["N Number=Sing|Case=Nom", "V _"])
    assert evaluation.accuracy == 100.0 and list(evaluation.features()) == ["Case", "Number"]
    plain = Evaluation(known_tags=["N B|A", "V _"], columns="2+3")
    plain.add(["a"], ["N A|B"], ["N B|A"])
    assert plain.accuracy == 0.0 and plain.features() == {}


def test_an_unseen_tag_may_be_correct():
    """A tagger that composes tags from parts predicts bundles that are not in the training data."""
    evaluation = Evaluation(known_tags=["N Case=Nom"], columns="upos+feats")
    evaluation.add(["a", "b"], ["N Case=Acc", "N Case=Gen"], ["N Case=Acc", "N Case=Nom"])
    assert evaluation.unseen_tags == {"N Case=Acc": 1, "N Case=Gen": 1} and evaluation.unseen_correct == 1


def test_features_without_a_value_and_twice_are_counted_once():
    scores = FeatureScores()
    scores.add("Odd|Case=Nom", "Odd", count=3)
    assert {name: found.support for name, found in scores.features().items()} == {"Case": 3, "Odd": 3}
    assert scores.features()["Odd"].f1 == 100.0 and scores.universal_correct == 0
