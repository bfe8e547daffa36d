"""`noise-conditions`: exponents in closed form, constants by hand, and regrets of minimisers by simulation."""

import numpy as np
import pytest

from linearcore import Logistic
from tests.paper.outcomes import outcome, verdicts


def curves(name: str) -> tuple[dict, dict]:
    core, logistic = outcome("noise-conditions").data[name]
    return core, logistic


def test_exponents_are_those_of_the_theory():
    core, logistic = curves("exponents")
    assert core["exponent"] == pytest.approx([1.0] * 11, abs=0.01)
    assert logistic["exponent"] == pytest.approx([1 / (2 - alpha) for alpha in logistic["alpha"]], abs=1e-3)


def test_constants_under_massart_noise():
    core, logistic = curves("constants")
    # T(t) = t²/2 for logistic as t → 0, and log 2 at t = 1, with φ'(0) = −½; the core has T(1) = τ + 2 log 2.
    assert logistic["constant"][0] == pytest.approx(1 / 0.01, rel=1e-3)
    assert logistic["constant"][-1] == pytest.approx(0.5 / np.log(2), rel=1e-6)
    assert core["constant"][-1] == pytest.approx(1 / (1 + 2 * np.log(2)), rel=1e-6)
    assert max(core["constant"]) <= 1


def test_regrets_after_seventeen_labels_are_those_of_a_simulation():
    core, logistic = curves("labels")
    assert core["zero_one_regret"] == logistic["zero_one_regret"]
    rng = np.random.default_rng(0)
    t = rng.random(400_000)
    share = rng.binomial(17, (1 + t) / 2) / 17
    assert (t * (share < 0.5)).mean() == pytest.approx(core["zero_one_regret"][1], rel=0.02)
    with np.errstate(divide="ignore"):
        u = np.clip(np.log(share / (1 - share)), -4, 4)
        best = np.clip(np.log((1 + t) / (1 - t)), -4, 4)

    def risk(at: np.ndarray) -> np.ndarray:
        return (1 + t) / 2 * Logistic().value(at) + (1 - t) / 2 * Logistic().value(-at)

    assert (risk(u) - risk(best)).mean() == pytest.approx(logistic["surrogate_regret"][1], rel=0.02)


def test_bounds_are_above_the_regret():
    for curve in curves("labels"):
        assert all(bound >= regret for bound, regret in zip(curve["bound"], curve["zero_one_regret"], strict=True))


def test_verdicts():
    assert verdicts("noise-conditions") == [("holds", None)] * 3
