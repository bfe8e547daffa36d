"""Suspicious labels: the measures against their formulas, the order, the marks, and classes that are not there."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from linearcore import LinearCoreLoss
from linearcore.cleaning import Suspects, _suspects, suspects
from linearcore.losses.baselines import cross_entropy, generalized_cross_entropy

INF = math.inf


def draw(rows=200, classes=5, seed=0, scale=2.0):
    stream = torch.Generator().manual_seed(seed)
    scores = scale * torch.randn(rows, classes, generator=stream, dtype=torch.float64)
    return scores, torch.randint(classes, (rows,), generator=stream)


def by_hand(scores, label):
    """Margin, log-odds and best other class of one row, by the formulas."""
    others = {v: s for v, s in enumerate(scores) if v != label}
    best = max(others, key=lambda v: (others[v], -v))
    total = sum(math.exp(s) for s in others.values())
    return others[best] - scores[label], math.log(total) - scores[label], best


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_measures_are_their_formulas(classes):
    scores, labels = draw(50, classes)
    found = suspects(scores, labels, measure="log_odds")
    for row, (numbers, label) in enumerate(zip(scores.tolist(), labels.tolist(), strict=True)):
        margin, log_odds, best = by_hand(numbers, label)
        assert found.margin[row].item() == pytest.approx(margin, abs=1e-12)
        assert found.suspicion[row].item() == pytest.approx(log_odds, abs=1e-12)
        assert found.best_other[row] == best
        assert found.suggested[row] == (best if margin > 0 else label) == max(range(classes), key=lambda v: numbers[v])
    assert torch.equal(suspects(scores, labels).suspicion, found.margin)


def test_two_classes_have_one_measure():
    scores, labels = draw(classes=2)
    margin, log_odds = suspects(scores, labels), suspects(scores, labels, measure="log_odds")
    torch.testing.assert_close(margin.suspicion, log_odds.suspicion)
    assert torch.equal(margin.order, log_odds.order)


def test_margin_keeps_its_order_under_scale_and_shift_of_rows():
    scores, labels = draw()
    shift = torch.arange(200.0, dtype=torch.float64).unsqueeze(1)
    assert torch.equal(suspects(scores, labels).order, suspects(4 * scores + shift, labels).order)


@pytest.mark.parametrize(
    "loss",
    [
        lambda s, y: 1 - s.softmax(1).gather(1, y.unsqueeze(1)).squeeze(1),
        lambda s, y: cross_entropy(s, y, reduction="none"),
        lambda s, y: generalized_cross_entropy(s, y, reduction="none"),
        lambda s, y: LinearCoreLoss(form="logodds", reduction="none")(s, y),
    ],
    ids=["self-confidence", "ce", "gce", "lc logodds"],
)
def test_log_odds_has_the_order_of_these(loss):
    scores, labels = draw()
    found = suspects(scores, labels, measure="log_odds")
    assert torch.equal(found.order, suspects(scores, labels, measure=loss(scores, labels)).order)


def test_log_odds_tells_apart_what_probabilities_round_away():
    scores = torch.tensor([[100.0, 0.0], [200.0, 0.0], [0.0, 100.0], [0.0, 200.0]])
    assert suspects(scores, [0, 0, 0, 0], measure="log_odds").order.tolist() == [3, 2, 0, 1]


def test_order_is_most_suspicious_first_and_of_equals_the_first():
    scores = torch.tensor([[0.0, 1.0], [0.0, 3.0], [0.0, 1.0], [0.0, 1.0], [0.0, -1.0]])
    assert suspects(scores, [0] * 5).order.tolist() == [1, 0, 2, 3, 4]
    many = torch.zeros(10_000, 3)
    assert torch.equal(suspects(many, [0] * 10_000).order, torch.arange(10_000))


def test_of_equal_classes_the_given_one_is_suggested_and_the_first_is_the_best_other():
    found = suspects(torch.zeros(3, 3), [0, 1, 2])
    assert found.suggested.tolist() == [0, 1, 2] and found.best_other.tolist() == [1, 0, 0]


def test_a_class_that_is_not_there():
    scores = torch.tensor([[0.0, -INF, 1.0], [-INF, 2.0, 1.0], [-INF, -INF, 3.0], [1.0, 0.5, -INF]])
    found = suspects(scores, [0, 0, 2, 0], measure="log_odds")
    assert found.suggested.tolist() == [2, 1, 2, 0] and found.best_other.tolist() == [2, 1, 2, 1]
    assert found.gap.tolist() == [1.0, 1.0, INF, 0.5]
    assert found.margin.tolist() == [1.0, INF, -INF, -0.5]
    assert found.suspicion.tolist() == [1.0, INF, -INF, -0.5]
    assert found.order.tolist() == [1, 0, 3, 2]


def test_numbers_of_ones_own():
    scores, labels = draw(4, 3)
    found = suspects(scores, labels, measure=np.array([1, 5, 3, 5]))
    assert found.order.tolist() == [1, 3, 2, 0]
    assert torch.equal(found.margin, suspects(scores, labels).margin)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int64])
def test_any_dtype_is_judged_in_double(dtype):
    scores, labels = draw(scale=30.0)
    scores = scores.to(dtype)
    found = suspects(scores, labels, measure="log_odds")
    assert found.suspicion.dtype == torch.float64
    torch.testing.assert_close(
        found.suspicion, suspects(scores.double(), labels, measure="log_odds").suspicion, rtol=0, atol=0
    )


def test_arrays_lists_and_tensors_that_train():
    scores, labels = draw()
    expected = suspects(scores, labels).order
    assert torch.equal(suspects(scores.numpy(), labels.numpy()).order, expected)
    assert torch.equal(suspects(scores.numpy(), labels.tolist()).order, expected)
    found = suspects(scores.clone().requires_grad_(), labels)
    assert torch.equal(found.order, expected) and not found.suspicion.requires_grad


def test_parts_of_rows_make_no_difference(monkeypatch):
    scores, labels = draw()
    whole = suspects(scores, labels, measure="log_odds")
    monkeypatch.setattr(_suspects, "CHUNK", 35)
    parts = suspects(scores, labels, measure="log_odds")
    for name in ("suspicion", "order", "suggested", "margin", "gap"):
        assert torch.equal(getattr(whole, name), getattr(parts, name))


def test_no_rows_are_no_error():
    found = suspects(torch.empty(0, 3), [])
    assert len(found) == 0 and found.flag(fraction=0.5).tolist() == [] and found.order.tolist() == []


@settings(max_examples=30)
@given(st.lists(st.sampled_from([-INF, -1.0, 0.0, 2.0, INF]), min_size=1, max_size=12), st.data())
def test_marks_are_the_head_of_the_order(numbers, data):
    zeros = torch.zeros(len(numbers))
    found = Suspects(torch.tensor(numbers, dtype=torch.float64), zeros.long(), zeros.long(), zeros, zeros)
    count = data.draw(st.integers(0, len(numbers)))
    assert set(found.flag(count=count).nonzero().flatten().tolist()) == set(found.order[:count].tolist())


@pytest.mark.parametrize(("fraction", "count"), [(0, 0), (0.1, 1), (0.05, 1), (0.04, 0), (0.25, 3), (1, 10), (1.0, 10)])
def test_a_share_is_rounded_to_whole_rows(fraction, count):
    scores, labels = draw(10)
    assert int(suspects(scores, labels).flag(fraction=fraction).sum()) == count


SCORES = torch.zeros(3, 2)
BAD = {
    "shape": ((torch.zeros(3), [0]), {}, ValueError, r"`scores` must have shape \(N, C\) with C ≥ 2, got \(3,\)"),
    "one class": ((torch.zeros(3, 1), [0] * 3), {}, ValueError, "with C ≥ 2"),
    "complex": ((SCORES + 0j, [0] * 3), {}, TypeError, "`scores` must be real numbers, got torch.complex64"),
    "words": ((["a"], [0]), {}, TypeError, "`scores` must be real numbers, got "),
    "labels": ((SCORES, [0, 1]), {}, ValueError, r"`labels` must have shape \(3,\), got \(2,\)"),
    "range": ((SCORES, [0, 1, 2]), {}, ValueError, r"`labels` must lie in 0\.\.1"),
    "nan": ((SCORES * math.nan, [0] * 3), {}, ValueError, "`scores` must be numbers below .inf, got 6 of 6 entries"),
    "inf": ((SCORES + INF, [0] * 3), {}, ValueError, "`scores` must be numbers below .inf"),
    "empty row": ((SCORES - INF, [0] * 3), {}, ValueError, "`scores` must have a finite entry in every row"),
    "by": ((SCORES, [0] * 3), {"measure": "loss"}, ValueError, "`measure` must be one of 'margin', 'log_odds', got 'loss'"),
    "by shape": (
        (SCORES, [0] * 3),
        {"measure": torch.zeros(2)},
        ValueError,
        r"`measure` must have shape \(3,\), got \(2,\)",
    ),
    "by nan": ((SCORES, [0] * 3), {"measure": torch.zeros(3) * math.nan}, ValueError, "`measure` must be numbers"),
}


@pytest.mark.parametrize(("arguments", "options", "error", "message"), BAD.values(), ids=BAD.keys())
def test_messages(arguments, options, error, message):
    with pytest.raises(error, match=message):
        suspects(*arguments, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fraction": 0.1, "count": 1}, "got both"),
        ({"fraction": 1.5}, r"`fraction` must be a number in \[0, 1\], got 1\.5"),
        ({"fraction": math.nan}, "`fraction` must be a number in"),
        ({"count": 4}, r"`count` must be an integer in 0\.\.3, got 4"),
        ({"count": -1}, "`count` must be"),
        ({"count": 1.0}, "`count` must be"),
        ({"count": True}, "`count` must be"),
    ],
)
def test_messages_of_marks(options, message):
    with pytest.raises(ValueError, match=message):
        suspects(SCORES, [0] * 3).flag(**options)
