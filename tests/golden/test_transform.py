"""T(t) against 50-digit arithmetic, for every surrogate of `tests/cases.py`.

T(t) = φ(0) − inf_u [ (1 − t)/2 · φ(−u) + (1 + t)/2 · φ(u) ]. The reference knows φ only as the piecewise definition written
out in mpmath, uses no derivative, and searches the infimum of a convex function by golden section; the library finds it by
bisection on φ'. At t = 1 the infimum is that of φ itself, which is known by hand.
"""

from collections.abc import Callable

import mpmath as mp
import numpy as np

from linearcore.analysis import transform
from linearcore.surrogates import Hinge, LinearCore, SmoothedHinge, Surrogate
from tests.cases import SHORT, SURROGATES, each
from tests.golden.test_surrogates import CLASSICAL, DEFINITIONS, quartic

Real = mp.mpf
Function = Callable[[Real], Real]

TOLERANCE = 1e-10
GRID = (0.0, 1e-6, 1e-3, 0.1, 0.4, 0.9, 0.999, 1 - 1e-9)

with mp.workdps(50):
    BASES = DEFINITIONS | {
        "algebraic": (lambda z: 1 / (1 + abs(z)) + 2 * max(z, mp.mpf(0)), mp.mpf(1)),
        "quartic-a0.5-K2": (quartic(mp.mpf(1) / 2, mp.mpf(2)), mp.mpf(1) / 2),
    }


def linear_core(base: str, surrogate: LinearCore) -> Function:
    phi, slope = BASES[base]
    tau, beta = mp.mpf(surrogate.tau), mp.mpf(surrogate.sharpness)

    def value(u: Real) -> Real:
        if u > tau:
            return phi(beta * (tau - u)) / (beta * slope)
        if surrogate.sides == 2 and u < -tau:
            return phi(beta * (-tau - u)) / (beta * slope) + 2 * tau
        return tau - u + phi(mp.mpf(0)) / (beta * slope)

    return value


def smoothed_hinge(width: float) -> Function:
    gap = mp.mpf(width)

    def phi(u: Real) -> Real:
        if u <= 1 - gap:
            return 1 - gap / 2 - u
        return (1 - u) ** 2 / (2 * gap) if u <= 1 else mp.mpf(0)

    return phi


def definition(name: str, surrogate: Surrogate) -> Function:
    if isinstance(surrogate, LinearCore):
        return linear_core(name if name in BASES else surrogate.base.name, surrogate)
    return smoothed_hinge(surrogate.width) if isinstance(surrogate, SmoothedHinge) else CLASSICAL[name][1]


def infimum(risk: Function, low: Real, high: Real) -> Real:
    """The least value of a convex function on [low, high]: 95 golden sections shorten 1e6 to 1e-14."""
    shrink = (mp.sqrt(5) - 1) / 2
    left, right = high - shrink * (high - low), low + shrink * (high - low)
    at_left, at_right = risk(left), risk(right)
    for _ in range(95):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - shrink * (high - low)
            at_left = risk(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + shrink * (high - low)
            at_right = risk(right)
    return min(at_left, at_right, risk(mp.mpf(0)))


def reference(phi: Function, t: float) -> Real:
    bias = mp.mpf(t)
    return phi(mp.mpf(0)) - infimum(lambda u: (1 - bias) / 2 * phi(-u) + (1 + bias) / 2 * phi(u), mp.mpf(0), mp.mpf(10) ** 6)


@each("name", {name: name for name in SURROGATES}, SHORT)
def test_transform_is_exact(name: str) -> None:
    got = transform(SURROGATES[name], GRID)
    with mp.workdps(50):
        phi = definition(name, SURROGATES[name])
        for t, value in zip(GRID, got.tolist(), strict=True):
            true = reference(phi, t)
            assert abs(value - true) <= TOLERANCE, (t, value, mp.nstr(true, 20))


@each("name", {name: name for name in SURROGATES}, SHORT)
def test_transform_of_a_sure_label_is_all_there_is_to_lose(name: str) -> None:
    surrogate = SURROGATES[name]
    with mp.workdps(50):
        phi = definition(name, surrogate)
        # Where it does not fall to 0 it has a minimum, near.
        least = mp.mpf(0) if surrogate.vanishes else infimum(phi, mp.mpf(0), mp.mpf(100))
        assert abs(float(transform(surrogate, 1.0)) - (phi(mp.mpf(0)) - least)) <= TOLERANCE


def test_transform_of_the_hinge_is_the_identity() -> None:
    t = np.linspace(0, 1, 101)
    np.testing.assert_allclose(transform(Hinge(), t), t, rtol=0, atol=1e-15)


def test_transform_of_the_logistic_loss_is_one_minus_the_entropy() -> None:
    t = np.linspace(0, 1, 101)[:-1]
    bits = ((1 + t) * np.log1p(t) + (1 - t) * np.log1p(-t)) / 2
    np.testing.assert_allclose(transform(SURROGATES["logistic"], t), bits, rtol=0, atol=1e-14)


def test_transform_keeps_the_shape() -> None:
    t = np.array([[0.0, 0.25], [0.5, 0.75], [0.9, 1.0]])
    whole = transform(LinearCore(), t)
    assert whole.shape == t.shape and whole.dtype == np.float64
    np.testing.assert_array_equal(whole, [[float(transform(LinearCore(), number)) for number in row] for row in t])
