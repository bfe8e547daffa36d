"""T for bounded scores and under noise conditions: by brute force, in closed form, and on random finite problems."""

import math

import numpy as np
import pytest
import torch

from linearcore import Exponential, Hinge, LinearCore, Logistic, SquaredHinge, Surrogate
from linearcore.analysis import NoiseCondition, rate, transform
from tests.cases import SHORT, SURROGATES, each

TS = np.array([0.0, 1e-9, 1e-4, 0.03, 0.2, 0.5, 0.77, 0.999, 1.0])
BOUNDS = (0.05, 0.3, 1.0, 2.7, 6.0)


def least(surrogate: Surrogate, weight: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Least weight · φ(u) + (1 − weight) · φ(−u) over [low, high], by grids that zoom in on the best point."""
    low, high = np.broadcast_to(low, weight.shape).copy(), np.broadcast_to(high, weight.shape).copy()
    best = np.full(weight.shape, math.inf)
    for _ in range(6):
        u = low[..., None] + (high - low)[..., None] * np.linspace(0, 1, 61)
        risk = weight[..., None] * surrogate.value(u) + (1 - weight)[..., None] * surrogate.value(-u)
        place = risk.argmin(-1)[..., None]
        best = np.minimum(best, np.take_along_axis(risk, place, -1)[..., 0])
        step = (high - low) / 60
        at = np.take_along_axis(u, place, -1)[..., 0]
        low, high = np.maximum(low, at - 2 * step), np.minimum(high, at + 2 * step)
    return best


@each("surrogate", SURROGATES, SHORT)
def test_it_is_what_a_grid_finds(surrogate: Surrogate) -> None:
    for bound in BOUNDS:
        weight = (1 + TS) / 2
        expected = least(surrogate, weight, -bound, 0.0) - least(surrogate, weight, -bound, bound)
        np.testing.assert_allclose(transform(surrogate, TS, bound=bound), expected, atol=1e-8)


def test_closed_forms() -> None:
    t, bound = np.linspace(0, 1, 101), 0.4
    core = LinearCore(tau=0.5)
    np.testing.assert_allclose(transform(core, t, bound=bound), bound * t, atol=1e-14)
    np.testing.assert_allclose(transform(Hinge(), t, bound=3.0), t, atol=1e-14)
    np.testing.assert_allclose(transform(Hinge(), t, bound=bound), bound * t, atol=1e-14)
    inside = t <= np.tanh(bound)
    expected = np.where(inside, 1 - np.sqrt(1 - t * t), 1 - np.cosh(bound) + t * np.sinh(bound))
    np.testing.assert_allclose(transform(Exponential(), t, bound=bound), expected, atol=1e-14)
    expected = np.where(t <= bound, t * t, 2 * t * bound - bound**2)
    np.testing.assert_allclose(transform(SquaredHinge(), t, bound=bound), expected, atol=1e-14)
    entropy = ((1 + t) * np.log1p(t) + np.where(t < 1, (1 - t) * np.log1p(-np.minimum(t, 1 - 1e-16)), 0)) / 2
    beyond = math.log(2) - np.log1p(np.exp(-bound)) - (1 - t) / 2 * bound
    expected = np.where(t <= np.tanh(bound / 2), entropy, beyond)
    np.testing.assert_allclose(transform(Logistic(), t, bound=bound), expected, atol=1e-14)


def test_a_wide_bound_is_none() -> None:
    for surrogate in (LinearCore(), Logistic(), Hinge()):
        np.testing.assert_array_equal(transform(surrogate, TS, bound=1e15), transform(surrogate, TS))


FEW = {
    "core": LinearCore(),
    "narrow": LinearCore("gamma", tau=0.1),
    "two-sided": LinearCore("exponential", tau=0.5, sides=2),
    "quartic": LinearCore("quartic"),
    "hinge": Hinge(),
    "logistic": Logistic(),
    "exponential": Exponential(),
    "squared hinge": SquaredHinge(),
}


@pytest.mark.parametrize("surrogate", FEW.values(), ids=FEW.keys())
def test_the_bound_holds_on_ten_thousand_problems(surrogate: Surrogate) -> None:
    """Five inputs with random masses, label probabilities and scores; 1,250 problems for each of eight surrogates."""
    rng = np.random.default_rng(0)
    bound = rng.choice(BOUNDS, (1250, 1))
    mass = rng.dirichlet(np.ones(5), 1250)
    eta = np.where(rng.random((1250, 5)) < 0.5, rng.random((1250, 5)), 0.5 + rng.normal(0, 0.01, (1250, 5)).clip(-0.5, 0.5))
    size = np.where(rng.random((1250, 5)) < 0.3, 10.0 ** rng.uniform(-6, 0, (1250, 5)), rng.random((1250, 5)))
    h = bound * size * rng.choice([-1, 1], (1250, 5))
    risk = eta * surrogate.value(h) + (1 - eta) * surrogate.value(-h)
    regret = (mass * (risk - least(surrogate, eta, -bound, bound))).sum(1)
    wrong = (mass * np.abs(2 * eta - 1) * (h * (2 * eta - 1) <= 0)).sum(1)
    least_regret = sum((bound[:, 0] == b) * transform(surrogate, wrong, bound=b) for b in BOUNDS)
    assert (least_regret <= regret + 1e-9).all()
    assert (least_regret > 0.2 * regret).any()


def test_under_noise_the_bound_holds_and_is_attained() -> None:
    rng = np.random.default_rng(1)
    noise = NoiseCondition(0.5, 1.5)
    for surrogate in (LinearCore(), Logistic()):
        for _ in range(200):
            mass, t = rng.dirichlet(np.full(6, 0.5)), rng.random(6) ** 3
            order = np.argsort(t)
            worst = np.cumsum(mass[order]) / np.cumsum((mass * t)[order]) ** noise.exponent
            wrong = rng.random(6) < 0.5
            if wrong.any() and worst.max() <= noise.constant:  # The inputs with the smallest t decide the condition.
                pointwise = (mass * transform(surrogate, t))[wrong].sum()
                assert transform(surrogate, (mass * t)[wrong].sum(), noise=noise) <= pointwise + 1e-12
        share = 0.3  # One input with this mass, at which the condition is an equality.
        t = share**2 / noise.constant**2 / share
        expected = share * transform(surrogate, t)
        np.testing.assert_allclose(transform(surrogate, share * t, noise=noise), expected, rtol=1e-9)


def test_massart_is_a_line_and_no_condition_is_none() -> None:
    regret = np.array([0.0, 0.01, 0.1, 0.2])
    expected = regret / 0.2 * transform(Logistic(), 0.2)
    np.testing.assert_allclose(transform(Logistic(), regret, noise=NoiseCondition.massart(0.2)), expected, rtol=1e-12)
    np.testing.assert_array_equal(transform(Logistic(), TS, noise=NoiseCondition(0.0)), transform(Logistic(), TS))
    beyond = transform(Logistic(), 0.7, noise=NoiseCondition.massart(0.2))
    assert beyond == pytest.approx(float(transform(Logistic(), 0.7)))


@pytest.mark.parametrize("alpha", (0.0, 0.25, 0.5, 0.75, 1.0))
def test_exponents_under_noise(alpha: float) -> None:
    noise = NoiseCondition(alpha, 2.0)
    assert rate(Logistic(), noise=noise).limit == pytest.approx(1 / (2 - alpha), abs=1e-4)
    assert rate(LinearCore(), noise=noise).limit == pytest.approx(1, abs=0.02)
    found = rate(LinearCore("gamma", tau=0.3), noise=noise, deltas=[1e-3, 1e-2, 1e-1])
    step = 1e-4
    up, down = (transform(LinearCore("gamma", tau=0.3), found.target * (1 + s), noise=noise) for s in (step, -step))
    np.testing.assert_allclose(found.slopes, np.log((1 + step) / (1 - step)) / np.log(up / down), rtol=1e-5)


BAD = {
    "bound": (lambda: transform(Logistic(), 0.5, bound=0.0), "`bound` must be a positive number"),
    "exponent": (lambda: NoiseCondition(1.5), "`exponent` must be a number in [0, 1]"),
    "constant": (lambda: NoiseCondition(0.5, 0.9), "`constant` must be a number of at least 1"),
    "margin": (lambda: NoiseCondition.massart(0.0), "`margin` must be in (0, 1]"),
    "path": (lambda: rate(Logistic(), path=lambda d: [0.5, 0.5], bound=1.0), "`path` must be None with `bound` or `noise`"),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD.keys())
def test_messages(call, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)


def test_a_tensor_keeps_its_shape() -> None:
    assert transform(Logistic(), torch.full((2, 3), 0.1), bound=1.0).shape == (2, 3)
