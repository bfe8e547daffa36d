"""Which columns of a predicted tag are compared with the gold columns."""

import pytest

from linearcore.tagging import Evaluation
from linearcore.tagging._scored_columns import ScoredColumns

JOINT = "NOUN NN Case=Nom"


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("upos", "NOUN"),
        ("feats", "Case=Nom"),
        ("feats+upos", "Case=Nom NOUN"),
        ("4", "NOUN"),
        ("UPOS+xpos+feats", JOINT),
        ("2+3+4", JOINT),  # A column file has no names: in order.
    ],
)
def test_a_joint_tagger_is_compared_by_column(columns, expected):
    assert ScoredColumns(columns, "upos+xpos+feats").from_predicted([JOINT]) == [expected]


@pytest.mark.parametrize(("columns", "predicted"), [("2", "upos"), ("last", "2"), ("upos", "tag"), ("3+4", "2+3")])
def test_columns_without_names_are_compared_in_order(columns, predicted):
    tag = " ".join(["X"] * (predicted.count("+") + 1))
    assert ScoredColumns(columns, predicted).from_predicted([tag]) == [tag]


def test_columns_with_equal_numbers_belong_together():
    assert ScoredColumns("3", "2+3").from_predicted(["A B"]) == ["B"]


@pytest.mark.parametrize(
    ("columns", "predicted"), [("xpos", "upos"), ("upos+feats", "upos"), ("xpos", "upos+feats"), ("last", "2+3")]
)
def test_what_is_not_predicted_is_refused(columns, predicted):
    with pytest.raises(ValueError) as refused:
        Evaluation(columns=columns, predicted_columns=predicted)
    assert (
        "`tag`" in str(refused.value) and f"({predicted})" in str(refused.value) and f"got {columns};" in str(refused.value)
    )


def test_tags_must_have_their_columns():
    with pytest.raises(ValueError, match="`tags` must have one part for each of the 2 columns upos"):
        Evaluation(columns="upos+feats").add(["a"], ["NOUN"], ["NOUN _"])


def test_known_tags_and_entities_are_those_of_the_compared_column():
    pytest.importorskip("seqeval")
    evaluation = Evaluation(known_tags=["N B-PER", "V O"], columns="3", predicted_columns="2+3")
    evaluation.add(["Ann", "Bo"], ["B-PER", "B-LOC"], ["V B-PER", "V O"])
    assert evaluation.accuracy == 50.0 and evaluation.unseen_tags == {"B-LOC": 1}
    assert evaluation.entities is not None and evaluation.entities.overall().recall == 50.0
