"""Class-conditional noise: its law and its messages."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from linearcore.noise import class_conditional

MATRIX = np.array([[0.5, 0.3, 0.2, 0.0], [0.0, 1.0, 0.0, 0.0], [0.25, 0.0, 0.15, 0.6], [0.1, 0.2, 0.7, 0.0]])
CLEAN = torch.arange(4).repeat_interleave(torch.tensor([20_000, 5_000, 10_000, 15_000]))


def test_every_row_is_drawn_from_its_row():
    counts = class_conditional(CLEAN, MATRIX, seed=2).transitions.double().numpy()
    expected = MATRIX * counts.sum(1, keepdims=True)
    possible = expected > 0
    assert (counts[~possible] == 0).all()
    statistic = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    freedom = possible.sum() - 4
    assert 1e-3 < stats.chi2.sf(statistic, freedom) < 1 - 1e-3


def test_rate_is_the_expected_share():
    noisy = class_conditional(CLEAN, MATRIX, seed=0)
    assert noisy.rate == pytest.approx((20_000 * 0.5 + 10_000 * 0.85 + 15_000) / 50_000)
    assert abs(noisy.realised_rate - noisy.rate) < 0.01


def test_shape_of_labels_and_kind_of_matrix_do_not_matter():
    expected = class_conditional(CLEAN, MATRIX, seed=0)
    shaped = class_conditional(CLEAN.reshape(50, 1000), MATRIX.tolist(), seed=0)
    assert shaped.labels.shape == (50, 1000)
    assert shaped.hash == expected.hash and shaped.law == expected.law
    assert class_conditional(CLEAN, torch.tensor(MATRIX).T.contiguous().T, seed=0).law == expected.law


def test_a_class_that_never_errs_does_not_err_by_rounding():
    almost = [[1 - 5e-7, 0.0], [0.5, 0.5]]
    noisy = class_conditional([0] * 1000, almost, seed=0)
    assert noisy.rate == 0


@settings(max_examples=40)
@given(
    st.integers(2, 6).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 3), min_size=n, max_size=n), min_size=n, max_size=n)
    )
)
def test_what_has_no_probability_never_happens(weights):
    counts = np.array(weights) + np.eye(len(weights)) * (np.sum(weights, axis=1) == 0)
    noisy = class_conditional(torch.arange(len(counts)).repeat(50), counts / counts.sum(1, keepdims=True), seed=1)
    assert (noisy.transitions.numpy()[counts == 0] == 0).all()


@pytest.mark.parametrize(
    ("transitions", "message"),
    [
        ([[1.0, 0.0]], r"`transitions` must be a square matrix, got shape \(1, 2\)"),
        ([1.0], r"be a square matrix, got shape \(1,\)"),
        ([[1.0]], "`num_classes` must be an integer of at least 2, got 1"),
        ([[1.2, -0.2], [0.0, 1.0]], "`transitions` must be probabilities, got 1 of 4 entries"),
        ([[float("nan"), 1.0], [0.0, 1.0]], "`transitions` must be probabilities"),
        ([[0.5, 0.4], [0.0, 1.0]], "`transitions` must have rows that sum to 1, got 1 of 2 entries.*divide each row"),
    ],
)
def test_messages(transitions, message):
    with pytest.raises(ValueError, match=message):
        class_conditional([0, 0], transitions, seed=0)


def test_labels_must_have_a_row():
    with pytest.raises(ValueError, match=r"`labels` must lie in 0\.\.3"):
        class_conditional([4], MATRIX, seed=0)
