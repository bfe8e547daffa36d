"""Minimizability gaps of linear hypothesis sets, against SciPy, by hand, and in the bound that they belong to."""

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
import torch

from linearcore import Centered, Exponential, Hinge, LinearCore, Logistic, LogOdds, Pairwise, SquaredHinge, Surrogate
from linearcore.analysis import NotSolvedError, _solve, minimal_risk, transform
from linearcore.analysis._gaps import minimizability_gap, zero_one_gap
from linearcore.forms import Form
from tests.oracles import row_losses

SURROGATES = {
    "core": LinearCore(),
    "gamma": LinearCore("gamma", 0.3, 1, 3.0),
    "quartic": LinearCore("quartic"),
    "squared hinge": SquaredHinge(),
    "hinge": Hinge(),
    "logistic": Logistic(),
    "exponential": Exponential(),
}
every_surrogate = pytest.mark.parametrize("surrogate", SURROGATES.values(), ids=SURROGATES.keys())
SQUARE = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
XOR = [0, 0, 1, 1]


def noisy(size: int, num_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Few distinct inputs, so that labels are not certain given the input, and not separable."""
    rng = np.random.default_rng(seed)
    return rng.integers(-1, 2, (size, 2)).astype(float), rng.integers(0, num_classes, size)


def empirical_risk(surrogate: Surrogate, form: Pairwise | Centered | LogOdds, scores: torch.Tensor, labels) -> torch.Tensor:
    return torch.stack([row_losses(surrogate, form, row)[y] for row, y in zip(scores, labels, strict=True)]).mean()


@pytest.mark.parametrize("form", (Pairwise(False), Centered(False), LogOdds()), ids=("pairwise", "centered", "logodds"))
@pytest.mark.parametrize("intercept", (True, False), ids=("with b", "without b"))
def test_both_terms_are_scipys(form, intercept: bool) -> None:
    surrogate, (features, labels) = LinearCore(tau=0.5), noisy(25, 3)
    found = minimizability_gap(surrogate, form, features, labels, intercept=intercept)
    design = torch.tensor(np.hstack([features, np.ones((25, 1))]) if intercept else features)

    def risk(weights: np.ndarray) -> tuple[float, np.ndarray]:
        leaf = torch.tensor(weights.reshape(design.shape[1], 3), requires_grad=True)
        value = empirical_risk(surrogate, form, design @ leaf, labels)
        return float(value.detach()), torch.autograd.grad(value, leaf)[0].numpy().reshape(-1)

    run = scipy.optimize.minimize(risk, np.zeros(design.shape[1] * 3), jac=True, method="BFGS", options={"gtol": 1e-7})
    assert found.best_in_class == pytest.approx(run.fun, abs=1e-7)
    pointwise = 0.0
    for x in np.unique(features, axis=0):
        here = labels[(features == x).all(1)]
        p = np.bincount(here, minlength=3) / len(here)
        if intercept or x.any():
            least = minimal_risk(surrogate, form, p).value
        else:
            least = float((torch.tensor(p) * row_losses(surrogate, form, torch.zeros(3).double())).sum())
        pointwise += len(here) / 25 * least
    assert found.pointwise == pytest.approx(pointwise, abs=1e-9)
    assert found.gap == found.best_in_class - found.pointwise and found.residual <= 1e-9


@every_surrogate
def test_binary_pointwise_term_is_the_transform(surrogate: Surrogate) -> None:
    features, labels = noisy(40, 2)
    found = minimizability_gap(surrogate, "pairwise", features, labels)
    expected = 0.0
    for x in np.unique(features, axis=0):
        here = labels[(features == x).all(1)]
        t = abs(2 * here.mean() - 1)
        expected += len(here) / 40 * (float(surrogate.value(0.0)) - float(transform(surrogate, t)))
    assert found.pointwise == pytest.approx(expected, abs=1e-10)
    assert found.gap >= 0


@every_surrogate
def test_one_input_has_no_gap(surrogate: Surrogate) -> None:
    found = minimizability_gap(surrogate, "pairwise", [[2.0, 1.0]] * 5, [0, 1, 1, 2, 1])
    assert found.gap == pytest.approx(0, abs=1e-10)


@every_surrogate
def test_independent_inputs_have_no_gap(surrogate: Surrogate) -> None:
    features = np.repeat(np.eye(3), 3, 0)
    found = minimizability_gap(surrogate, "pairwise", features, [0, 0, 1, 1, 1, 0, 1, 1, 1], intercept=False)
    assert found.gap == pytest.approx(0, abs=1e-10) and found.best_in_class > 0.1


@pytest.mark.parametrize("name", ("core", "gamma", "squared hinge", "hinge", "logistic", "exponential"))
def test_xor_costs_what_zero_margins_cost(name: str) -> None:
    # By symmetry and convexity h = 0 is best, while at each input alone the loss can be made as small as one likes.
    found = minimizability_gap(SURROGATES[name], "pairwise", SQUARE, XOR)
    assert found.gap == pytest.approx(float(SURROGATES[name].value(0.0)), abs=1e-9)
    assert found.pointwise == 0


@pytest.mark.parametrize("form", ("pairwise", "centered", "logodds"))
@pytest.mark.parametrize("surrogate", (Logistic(), Exponential(), LinearCore()), ids=("logistic", "exponential", "core"))
def test_separable_samples_have_infimum_zero_although_no_scores_attain_it(surrogate: Surrogate, form: str) -> None:
    found = minimizability_gap(surrogate, form, np.eye(3), [0, 1, 2])
    assert found.best_in_class == found.pointwise == found.gap == 0
    # Three classes in a row: pairwise and logodds can part them, but no centred linear score is highest in the middle only.
    found = minimizability_gap(surrogate, form, [[0.0], [1.0], [2.0]], [0, 1, 2])
    assert (found.gap > 0.1) if form == "centered" else (found.gap == 0)


@pytest.mark.parametrize("form", (Pairwise(False), LogOdds()), ids=("pairwise", "logodds"))
def test_what_cannot_be_separated_is_left_when_the_rest_has_gone_to_infinity(form: Form) -> None:
    # Class 2 is alone at x = 9; at x = 0 a fair coin between 0 and 1 remains, which costs log 2 in two samples of three.
    found = minimizability_gap(Logistic(), form, [[0.0], [0.0], [9.0]], [0, 1, 2])
    # To the last digits: rivals at infinity are left out, not sent far away.
    assert found.best_in_class == pytest.approx(2 / 3 * math.log(2), abs=1e-15)
    assert found.gap == pytest.approx(0, abs=1e-15)


def test_a_surrogate_that_rises_again_has_its_minimum_in_the_finite() -> None:
    surrogate = SURROGATES["quartic"]
    best = scipy.optimize.minimize_scalar(lambda w: float(surrogate.value(np.array([w, 3 * w])).mean()), tol=1e-12).fun
    found = minimizability_gap(surrogate, "pairwise", [[1.0], [3.0]], [1, 1], intercept=False)
    assert best > 0.1 and found.gap == pytest.approx(best, abs=1e-9)


def test_a_zero_input_without_intercept_can_only_be_scored_zero() -> None:
    found = minimizability_gap(Logistic(), "pairwise", [[0.0], [0.0], [0.0], [1.0]], [1, 1, 0, 1], intercept=False)
    assert found.pointwise == pytest.approx(0.75 * math.log(2)) and found.gap == pytest.approx(0, abs=1e-12)
    only = minimizability_gap(Hinge(), Centered(False), [[0.0], [0.0]], [0, 2], intercept=False)
    assert (only.best_in_class, only.pointwise, only.gap) == (2, 2, 0)


@every_surrogate
def test_signs_and_indices_are_the_same_labels(surrogate: Surrogate) -> None:
    features, labels = noisy(20, 2)
    assert minimizability_gap(surrogate, "pairwise", features, labels) == minimizability_gap(
        surrogate, "pairwise", features, 2 * labels - 1
    )


def test_the_gap_does_not_depend_on_units() -> None:
    features, labels = noisy(30, 2)
    plain = minimizability_gap(LinearCore(), "pairwise", features, labels)
    scaled = minimizability_gap(LinearCore(), "pairwise", features * [1e-4, 1e5] + [3.0, -7.0], labels)
    assert scaled.gap == pytest.approx(plain.gap, abs=1e-9)


@pytest.mark.parametrize("tau", (0.3, 1.0))
def test_the_bound_with_gaps_holds_for_linear_functions(tau: float) -> None:
    # E₀₁(h) − E₀₁* + M₀₁ ≤ (E_φ(h) − E_φ* + M_φ)/τ: section 2 with Γ(t) = t/τ, for any linear h.
    surrogate, rng = LinearCore(tau=tau), np.random.default_rng(3)
    features, labels = noisy(14, 2, seed=1)
    smooth = minimizability_gap(surrogate, "pairwise", features, labels)
    wrong = zero_one_gap(features, labels)
    assert wrong.gap > 0
    signs = 2 * labels - 1
    for _ in range(200):
        margin = signs * (features @ rng.normal(size=2) + rng.normal()) * rng.exponential()
        left = (margin <= 0).mean() - wrong.best_in_class + wrong.gap
        right = float(surrogate.value(margin).mean()) - smooth.best_in_class + smooth.gap
        assert left <= right / tau + 1e-12


def test_zero_one_gap_of_xor_is_one_error_of_four() -> None:
    found = zero_one_gap(SQUARE, XOR)
    assert (found.best_in_class, found.pointwise, found.gap, found.residual) == (0.25, 0, 0.25, 0)


@pytest.mark.parametrize("intercept", (True, False), ids=("with b", "without b"))
def test_zero_one_gap_is_that_of_all_thresholds(intercept: bool) -> None:
    # On a line a linear function is a threshold and a direction.
    rng = np.random.default_rng(0)
    for _ in range(10):
        x, y = rng.integers(1, 7, 9).astype(float), rng.integers(0, 2, 9)
        cuts = np.arange(0.5, 8) if intercept else [0.5]
        best = min(((s * (x - cut) > 0) != y).mean() for cut in cuts for s in (-1, 1))
        found = zero_one_gap(x.reshape(-1, 1), y, intercept=intercept)
        assert found.best_in_class == pytest.approx(best)
        bayes = sum(min((y[x == v] == 0).sum(), (y[x == v] == 1).sum()) for v in np.unique(x)) / 9
        assert found.pointwise == pytest.approx(bayes) and found.gap == pytest.approx(best - bayes, abs=1e-15)


def test_zero_one_gap_of_three_classes_on_a_line_is_that_of_all_interval_orders() -> None:
    # Scores linear in x: each class answers on one interval, in some order, some on none.
    x, y = np.arange(6.0), np.array([0, 1, 0, 2, 1, 2])
    best = min(
        np.mean(np.array(order)[np.searchsorted([a, b], x, side="right")] != y)
        for order in itertools.permutations(range(3))
        for a, b in itertools.combinations_with_replacement(np.arange(-0.5, 6), 2)
    )
    assert zero_one_gap(x.reshape(-1, 1), y).best_in_class == pytest.approx(best)


def test_nothing_is_returned_that_was_not_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    original = _solve._newton
    monkeypatch.setattr(_solve, "_newton", lambda *given, **how: original(*given, **how | {"steps": 1}))
    with pytest.raises(NotSolvedError):
        minimizability_gap(Logistic(), "pairwise", *noisy(20, 2))
    with pytest.raises(NotSolvedError, match="none of the 2 best labelings of 4 inputs is linear; increase `max_labelings`"):
        zero_one_gap([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], max_labelings=2)


MESSAGES = {
    "features": (lambda: zero_one_gap([1.0, 2.0], [0, 1]), "`features` must have shape (n, d)"),
    "NaN": (lambda: zero_one_gap([[math.nan]], [0]), "`features` must be finite"),
    "length": (lambda: zero_one_gap([[1.0], [2.0]], [0]), "`labels` must have shape (2,), got (1,)"),
    "halves": (lambda: zero_one_gap([[1.0]], [0.5]), "`labels` must be a list of class indices"),
    "negative": (lambda: zero_one_gap([[1.0], [2.0]], [-2, 0]), "`labels` must not be negative"),
    "too many": (lambda: zero_one_gap([[1.0]], [3], num_classes=2), "`labels` must be in [0, 2)"),
    "form": (lambda: minimizability_gap(Logistic(), "structured-sum", SQUARE, XOR), "`form` must be one of 'pairwise'"),
    "convex": (
        lambda: minimizability_gap(LinearCore("quartic"), "logodds", [[1.0]], [0], num_classes=3),
        "`surrogate` must be non-increasing for form='logodds'",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), MESSAGES.values(), ids=MESSAGES.keys())
def test_messages(call, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)
