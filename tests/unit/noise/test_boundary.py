"""Boundary noise: its law, where its mistakes are, and its messages."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from linearcore.noise import boundary
from linearcore.noise._boundary import _factor

#: The three polynomials as the paper prints them, of η_u and η_s.
PRINTED = {
    1: lambda u, s: -(1 / 2) * (u - s) ** 2 + 1 / 2,
    2: lambda u, s: 1 - (u - s) ** 3,
    3: lambda u, s: 1 - 1 / 3 * ((u - s) ** 3 + (u - s) ** 2 + (u - s)),
}
COPIES = 4000
ETA = np.random.default_rng(2).dirichlet(np.full(4, 0.6), size=12)
#: Every third label is not the likeliest class.
CLEAN = np.where(np.arange(12) % 3 == 0, ETA.argsort(1)[:, 0], ETA.argmax(1))


def bisected(chances: np.ndarray, rate: float) -> float:
    low, high = 0.0, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(1, middle * chances).mean() < rate else (low, middle)
    return high


@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_labels_are_drawn_from_the_stated_law(kind, rate):
    ordered = np.sort(ETA, axis=1)
    chances = PRINTED[kind](ordered[:, -1], ordered[:, -2])
    wrong = np.minimum(1, bisected(chances, rate) * chances)
    goal = np.where(ETA.argmax(1) == CLEAN, ETA.argsort(1)[:, -2], ETA.argmax(1))
    labels, eta = np.repeat(CLEAN, COPIES), np.repeat(ETA, COPIES, axis=0)
    noisy = boundary(labels, rate, posterior=eta, num_classes=4, seed=6, kind=kind).labels.numpy().reshape(12, COPIES)
    assert ((noisy == CLEAN[:, None]) | (noisy == goal[:, None])).all()
    counts = (noisy == goal[:, None]).sum(1)
    certain = wrong > 1 - 1e-9
    assert (counts[certain] == COPIES).all()
    scores = (counts - COPIES * wrong)[~certain] ** 2 / (COPIES * wrong * (1 - wrong))[~certain]
    assert 1e-3 < stats.chi2.sf(scores.sum(), len(scores)) < 1 - 1e-3


@settings(max_examples=60)
@given(st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1)), min_size=1, max_size=30), st.floats(0, 1))
def test_factor_gives_the_rate_exactly(chances, share):
    reachable = np.count_nonzero(chances) / len(chances)
    factor = _factor(torch.tensor(chances, dtype=torch.float64), share * reachable)
    assert np.minimum(1, factor * np.array(chances)).mean() == pytest.approx(share * reachable, abs=1e-9)


def with_margins(count: int = 50_000) -> tuple[torch.Tensor, torch.Tensor]:
    margin = torch.linspace(0, 1, count, dtype=torch.float64)
    return margin, torch.stack([(1 + margin) / 2, (1 - margin) / 2, 0 * margin], dim=1)


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_mistakes_gather_at_small_margins(kind):
    margin, eta = with_margins()
    noisy = boundary([0] * 50_000, 0.2, posterior=eta, num_classes=3, seed=0, kind=kind)
    wrong = (noisy.labels != 0).double()
    assert float(torch.corrcoef(torch.stack([margin, wrong]))[0, 1]) < -0.15
    tenths = wrong.reshape(10, -1).mean(1)
    assert tenths[0] > 4 * tenths[-1]
    expected = PRINTED[kind](margin, 0).reshape(10, -1).mean(1) * noisy.law["factor"]
    torch.testing.assert_close(tenths, expected, atol=0.02, rtol=0)
    assert noisy.transitions[0, 2] == 0 and noisy.law["kind"] == kind


def test_margins_of_zero_and_one():
    eta = torch.tensor([[0.5, 0.5], [1.0, 0.0]]).repeat(500, 1)
    noisy = boundary([0, 0] * 500, 0.5, posterior=eta, num_classes=2, seed=0)
    assert noisy.labels.tolist() == [1, 0] * 500


def test_kind_of_posterior_does_not_matter():
    eta = torch.tensor([[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.0, 0.5, 0.5]]).repeat(100, 1)
    labels = [0, 1, 2] * 100
    expected = boundary(labels, 0.4, posterior=eta.double(), num_classes=3, seed=0)
    for same in (eta, eta.half(), eta.numpy(), eta.tolist(), eta.clone().requires_grad_()):
        got = boundary(labels, 0.4, posterior=same, num_classes=3, seed=0)
        assert got.hash == expected.hash and got.law == expected.law


def test_half_precision_rows_are_taken():
    eta = torch.randn(200, 10, generator=torch.Generator().manual_seed(0)).softmax(1).half()
    assert boundary([0] * 200, 1.0, posterior=eta, num_classes=10, seed=0).realised_rate == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": 4}, "`kind` must be one of 1, 2, 3, got 4; the paper's Type I is 1"),
        ({"posterior": torch.ones(2, 2) / 2}, r"`posterior` must have shape \(N, 3\), got \(2, 2\)"),
        (
            {"posterior": torch.eye(3)[:2]},
            r"`labels` must have shape \(2,\), got \(3,\); .*`posterior`",
        ),
        ({"posterior": torch.eye(3) * 2 - 1}, "`posterior` must be probabilities, got .*apply a softmax"),
        ({"posterior": torch.eye(3) * torch.nan}, "`posterior` must be probabilities"),
        ({"posterior": torch.eye(3) / 2}, "`posterior` must have rows that sum to 1, got 3 of 3"),
        ({"rate": 0.5}, "`rate` must be at most 0.333333, the fraction of margins below 1, got 0.5"),
        ({"rate": 2}, "`rate` must be a probability"),
    ],
)
def test_messages(options, message):
    eta = torch.tensor([[1.0, 0, 0], [0, 1.0, 0], [0.25, 0.25, 0.5]])
    arguments = {"rate": 0.2, "posterior": eta, "num_classes": 3, "seed": 0} | options
    with pytest.raises(ValueError, match=message):
        boundary([0, 1, 2], arguments.pop("rate"), **arguments)
