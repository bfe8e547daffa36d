"""The estimated number of wrong labels: exact cases, its interval, and planted errors."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from linearcore.cleaning import suspects
from linearcore.cleaning._estimate import SURE_SHARE, estimate_wrong


def test_it_is_the_rate_among_the_surest_rows():
    gap = torch.arange(100.0)
    margin = -torch.ones(100)
    margin[70:76] = 1.0  # 6 of the 30 surest rows.
    margin[:40] = 1.0
    found = estimate_wrong(margin, gap)
    assert SURE_SHARE == 0.3
    assert (found.count, found.disagreements, found.rows) == (20, 46, 100)
    # By hand: Wilson's interval of 6 in 30 is 0.0951 to 0.3731; the model adds 20 · (1 − e^−0.294) and 20 · (e^0.294 − 1).
    assert (found.low, found.high) == (round(20 - (10.49**2 + 5.09**2) ** 0.5), round(20 + (17.31**2 + 6.84**2) ** 0.5))


def test_rows_as_sure_as_the_last_of_them_count_too():
    margin = torch.tensor([1.0] + [-1.0] * 9)
    assert estimate_wrong(margin, torch.ones(10)).count == 1
    assert estimate_wrong(margin, torch.tensor([3.0, 2.0, 2.0] + [1.0] * 7)).count == 1  # 1 of 3, cut at one disagreement.


def test_no_rows_and_no_disagreement():
    assert estimate_wrong(torch.empty(0), torch.empty(0)).high == 0
    found = estimate_wrong(-torch.ones(50), torch.rand(50))
    assert (found.count, found.low) == (0, 0) and 0 < found.high < 20
    ranked = suspects(torch.tensor([[1.0, 0.0]] * 50), [0] * 50)
    assert ranked.threshold == torch.inf and not ranked.flag().any()


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from([-2.0, -1.0, 1.0, torch.inf]), st.sampled_from([0.0, 1.0, 5.0])), min_size=1))
def test_ends_hold_the_estimate_or_all_disagreements(rows):
    margin, gap = (torch.tensor(column) for column in zip(*rows, strict=True))
    found = estimate_wrong(margin, gap)
    assert 0 <= found.low <= found.high <= found.rows and found.count <= found.disagreements <= found.rows
    assert found.count <= found.high and (found.count >= found.low or found.count == found.disagreements)


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.3])
def test_planted_errors_are_counted_although_the_model_errs(rate):
    stream = torch.Generator().manual_seed(0)
    clean = torch.randint(3, (5000,), generator=stream)
    scores = 4 * torch.eye(3)[clean] + 2 * torch.randn(5000, 3, generator=stream)
    is_wrong = torch.rand(5000, generator=stream) < rate
    labels = torch.where(is_wrong, (clean + 1) % 3, clean)
    found = suspects(scores, labels)
    wrong = int(is_wrong.sum())
    assert found.estimate.low <= wrong <= found.estimate.high and found.estimate.disagreements > wrong + 300
    assert found.estimate.count == pytest.approx(wrong, rel=0.2, abs=60)
    marked = found.flag()
    assert int(marked.sum()) == found.estimate.count and float(found.suspicion[marked].min()) == found.threshold
