"""How good a ranking is: against scikit-learn, by counting pairs, and where rows are equal."""

import itertools
import math

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from linearcore.cleaning import flagging_auc, flagging_precision


def draw(seed, rows=300, ties=False):
    stream = torch.Generator().manual_seed(seed)
    suspicion = torch.randn(rows, generator=stream, dtype=torch.float64)
    return suspicion.round() if ties else suspicion, torch.rand(rows, generator=stream) < 0.3


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_auc_is_scikit_learns(seed, ties):
    suspicion, wrong = draw(seed, ties=ties)
    assert flagging_auc(suspicion, wrong) == pytest.approx(roc_auc_score(wrong, suspicion), abs=1e-12)


def test_auc_counts_pairs_and_equals_half():
    suspicion, wrong = draw(5, rows=40, ties=True)
    pairs = [
        0.5 * (1 + np.sign(float(a - b)))
        for a, b in itertools.product(suspicion[wrong], suspicion[~wrong])
    ]  # fmt: skip
    assert flagging_auc(suspicion, wrong) == pytest.approx(np.mean(pairs), abs=1e-12)


def test_ends_of_the_scale():
    wrong = torch.tensor([True, True, False, False, False])
    assert flagging_auc(wrong.double(), wrong) == flagging_precision(wrong.double(), wrong) == 1
    assert flagging_auc(-wrong.double(), wrong) == flagging_precision(-wrong.double(), wrong) == 0
    assert flagging_auc(torch.zeros(5), wrong) == 0.5
    assert flagging_precision(torch.zeros(5), wrong) == pytest.approx(0.4)


def test_where_all_are_wrong_all_that_is_flagged_is():
    assert flagging_precision(torch.tensor([1.0, 3.0]), torch.tensor([True, True])) == 1


def test_infinite_suspicions_are_ranked():
    suspicion = torch.tensor([math.inf, 0.0, -math.inf, math.inf])
    wrong = torch.tensor([True, False, False, False])
    assert flagging_auc(suspicion, wrong) == pytest.approx(2.5 / 3)
    assert flagging_precision(suspicion, wrong) == 0.5


def test_precision_is_the_mean_over_all_choices_between_equals():
    suspicion, wrong = draw(1, rows=12, ties=True)
    many, shares = int(wrong.sum()), []
    assert len(suspicion.unique()) < 7
    for seed in range(4000):
        shuffled = torch.randperm(12, generator=torch.Generator().manual_seed(seed))
        top = shuffled[suspicion[shuffled].sort(descending=True, stable=True).indices[:many]]
        shares.append(float(wrong[top].double().mean()))
    assert flagging_precision(suspicion, wrong) == pytest.approx(np.mean(shares), abs=0.01)


def test_arrays_and_single_precision():
    suspicion, wrong = draw(2)
    assert flagging_auc(suspicion.numpy(), wrong.numpy()) == flagging_auc(suspicion, wrong)
    assert flagging_auc(suspicion.float(), wrong) == pytest.approx(flagging_auc(suspicion, wrong))


@pytest.mark.parametrize("judge", [flagging_auc, flagging_precision])
@pytest.mark.parametrize(
    ("suspicion", "wrong", "error", "message"),
    [
        (torch.zeros(3), torch.tensor([0, 1, 1]), TypeError, "`is_wrong` must be bools, got torch.int64"),
        (torch.zeros(3), torch.tensor([True]), ValueError, r"`is_wrong` must have the shape of `suspicion`, \(3,\)"),
        (torch.zeros(3, 1), torch.zeros(3, 1).bool(), ValueError, r"`suspicion` must have shape \(N,\), got \(3, 1\)"),
        (torch.tensor([math.nan, 1]), torch.tensor([True, False]), ValueError, "`suspicion` must be numbers, got 1 of 2"),
        (torch.zeros(2), torch.tensor([False, False]), ValueError, "`is_wrong` must contain"),
    ],
)
def test_messages(judge, suspicion, wrong, error, message):
    with pytest.raises(error, match=message):
        judge(suspicion, wrong)


def test_no_ranking_is_judged_on_wrong_labels_alone():
    with pytest.raises(ValueError, match=r"`is_wrong` must .*got 2 wrong and 0 correct"):
        flagging_auc(torch.zeros(2), torch.tensor([True, True]))
