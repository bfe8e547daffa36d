"""The search finds what `docs/reading-the-paper-with-care.md` (a) shows, and nothing where a bound is proven."""

import numpy as np
import pytest
import torch

from linearcore import Centered, Hinge, LinearCore, Logistic
from linearcore.analysis import counterexample, regret_ratio
from linearcore.analysis._counterexample import bring_to_regret
from linearcore.analysis._problem import Problem
from linearcore.structures import Sequences
from tests.cases import each

CORES = {f"{base}-{sides}": LinearCore(base, sides=sides) for base in ("logistic", "exponential") for sides in (1, 2)}


@each(
    ("surrogate", "form"),
    {f"{name}-{form}": (core, form) for name, core in CORES.items() for form in ("pairwise", "logodds")},
    ("logistic-1-pairwise", "exponential-2-logodds"),
)
def test_three_classes_have_no_linear_bound(surrogate: LinearCore, form: str) -> None:
    """The ratio falls below 0.05, and ratio/regret settles: a square-root rate."""
    found = counterexample(surrogate, form, 3, starts=200)
    assert found.refutes
    assert found.ratio < 0.05
    scaled = found.ratios / found.regrets
    assert scaled[-1] == pytest.approx(scaled[-2], rel=0.01)
    assert scaled[-2] == pytest.approx(scaled[-3], rel=0.01)


def test_what_was_found_can_be_checked_again() -> None:
    found = counterexample(LinearCore(), "pairwise", 3, starts=60)
    again = regret_ratio(LinearCore(), "pairwise", found.probabilities, found.prediction)
    assert again.ratio == pytest.approx(found.ratio, rel=1e-6)
    assert again.target_regret == pytest.approx(found.target_regret, rel=1e-9)


def test_two_sided_centered_loses_the_bound_with_four_classes() -> None:
    found = counterexample(LinearCore(sides=2), "centered", 4, starts=200)
    assert found.refutes and found.ratio < 0.01


@each(
    ("num_classes", "tau", "base"),
    {
        "3-logistic": (3, 1.0, "logistic"),
        "4-gamma": (4, 0.5, "gamma"),
        "5-truncated_quadratic": (5, 1.0, "truncated_quadratic"),
        "6-exponential": (6, 2.0, "exponential"),
    },
    ("4-gamma",),
)
def test_one_sided_centered_keeps_it(num_classes: int, tau: float, base: str) -> None:
    """2,000 starts and more, random and adversarial, at target regrets down to 1e-4; and the search comes close to τ."""
    found = counterexample(LinearCore(base, tau=tau), Centered(normalize=False), num_classes, starts=2000)
    assert found.searched >= 2000 and found.unsolved <= 2
    assert found.ratio >= tau - 1e-6
    # As regret falls the least ratio tends to τ: in proportion to it, for the C2 gamma like its cube root only.
    assert found.ratio < (1.2 if base == "gamma" else 1.01) * tau
    assert not found.refutes


def test_unary_scores_lose_the_structured_centered_bound() -> None:
    """Free scores keep it on the same space: the bound needs scores that may be any function of the output."""
    space = Sequences(2, 2)
    assert counterexample(
        LinearCore(), "structured-centered", outputs=space, cost="hamming", family="unary", starts=200
    ).refutes
    free = counterexample(LinearCore(), "structured-centered", outputs=space, cost="hamming", family="free", starts=200)
    assert free.ratio >= 1 - 1e-6


def test_the_hinge_with_three_classes_is_not_even_consistent() -> None:
    found = counterexample(Hinge(), "pairwise", 3, starts=30)
    assert found.ratio < 1e-6 and found.refutes


def test_the_same_seed_finds_the_same() -> None:
    first, second = (counterexample(Logistic(), "logodds", 3, starts=40, seed=7) for _ in range(2))
    np.testing.assert_array_equal(first.probabilities, second.probabilities)


@pytest.mark.parametrize("cost", ("zero-one", "hamming"))
@pytest.mark.parametrize("regret", (0.2, 1e-4))
def test_bring_to_regret(cost: str, regret: float) -> None:
    problem = Problem("structured-centered", Sequences(2, 2), cost)
    rows = torch.rand(50, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    rows = torch.cat(
        [rows / rows.sum(-1, keepdim=True), torch.eye(4, dtype=torch.float64), torch.full((1, 4), 0.25).double()]
    )
    for prediction in range(4):
        there = bring_to_regret(problem, rows, prediction, regret)
        assert torch.allclose(there.sum(-1), torch.ones(len(rows), dtype=torch.float64))
        assert bool((there >= 0).all())
        found = problem.target_regret(there)[:, prediction]
        assert torch.allclose(found, torch.full_like(found, regret), rtol=1e-9)
