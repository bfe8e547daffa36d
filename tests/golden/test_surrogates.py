"""Values, slopes and curvatures against 50-digit arithmetic on the definitions, and against numbers derived by hand.

The definitions below are the piecewise ones of the reference page, written out in mpmath and differentiated by mpmath;
nothing is taken from the library. Margins, thresholds and sharpness are binary fractions, so both sides see the same
numbers, and the agreement asked for is relative, deep in the tails too.
"""

import math
from collections.abc import Callable

import mpmath as mp
import pytest
import torch

from linearcore.surrogates import (
    BASES,
    ConvolutionalFenchelYoung,
    Exponential,
    Hinge,
    LinearCore,
    Logistic,
    QuarticBase,
    SmoothedHinge,
    SquaredHinge,
    Surrogate,
)

Real = mp.mpf
Function = Callable[[Real], Real]

RELATIVE = 1e-14


def quartic(a: Real, constant: Real) -> Function:
    return lambda z: a * z + z**4 / 12 + constant


def exponential(z: Real) -> Real:
    """e^z, going on as its tangent past z = 16."""
    return mp.exp(z) if z <= 16 else mp.exp(16) * (1 + z - 16)


def gamma(z: Real) -> Real:
    return (z**2 - 4 * z + 6) * mp.exp(z) if z <= 0 else 4 * z + (z**2 + 4 * z + 6) * mp.exp(-z)


with mp.workdps(50):
    # Φ and Φ'(0), the latter by hand.
    DEFINITIONS: dict[str, tuple[Function, Real]] = {
        "logistic": (lambda z: mp.log1p(mp.exp(z)), mp.mpf(1) / 2),
        "exponential": (exponential, mp.mpf(1)),
        "quartic": (quartic(mp.mpf(1), mp.mpf(3) / 4 * mp.cbrt(3)), mp.mpf(1)),
        "truncated_quadratic": (lambda z: max(1 + z, mp.mpf(0)) ** 2 / 2, mp.mpf(1)),
        "gamma": (gamma, mp.mpf(2)),
    }


def linear_core(base: str, tau: float, sides: int, sharpness: float) -> Function:
    phi, slope = DEFINITIONS[base]
    tau, beta = mp.mpf(tau), mp.mpf(sharpness)

    def sharp(z: Real) -> Real:
        return phi(beta * z) / beta

    def surrogate(u: Real) -> Real:
        if u > tau:
            return sharp(tau - u) / slope
        if sides == 2 and u < -tau:
            return sharp(-tau - u) / slope + 2 * tau
        return tau - u + sharp(mp.mpf(0)) / slope

    return surrogate


def smoothed_hinge(u: Real) -> Real:
    """Width γ = ½."""
    gap = mp.mpf(1) / 2
    if u <= 1 - gap:
        return 1 - gap / 2 - u
    return (1 - u) ** 2 / (2 * gap) if u <= 1 else mp.mpf(0)


def convolutional_fenchel_young(u: Real) -> Real:
    if u > 1:
        return mp.log1p(mp.exp(1 - u))
    return (1 - u) / 2 + mp.log(2) if u >= -1 else mp.log1p(mp.exp(-1 - u)) + 1


CLASSICAL: dict[str, tuple[Surrogate, Function]] = {
    "hinge": (Hinge(), lambda u: max(1 - u, mp.mpf(0))),
    "squared_hinge": (SquaredHinge(), lambda u: max(1 - u, mp.mpf(0)) ** 2),
    "smoothed_hinge": (SmoothedHinge(0.5), smoothed_hinge),
    "logistic": (Logistic(), lambda u: mp.log1p(mp.exp(-u))),
    "exponential": (Exponential(), lambda u: mp.exp(-u)),
    "convolutional_fenchel_young": (ConvolutionalFenchelYoung(), convolutional_fenchel_young),
}

#: Distances past the end of the core in units of 1/β; 0 is the knot itself.
PAST = (0.0, 2.0**-20, 0.125, 0.5, 1.0, 1.5, 2.0, 5.0, 16.0, 20.0, 40.0, 300.0, 700.0)


def agree(phi: Surrogate, definition: Function, margins: list[float], absolute: float = 0.0) -> None:
    """φ, φ' and φ'' from the right, as the library promises at knots, within `RELATIVE` of 50 digits."""
    u = torch.tensor(margins, dtype=torch.float64)
    got = torch.stack([phi.value(u), phi.derivative(u), phi.curvature(u)]).tolist()
    with mp.workdps(50):
        for order, results in enumerate(got):
            for margin, result in zip(margins, results, strict=True):
                # 60 more digits, because a difference quotient loses them.
                with mp.workdps(110):
                    true = mp.diff(definition, mp.mpf(margin), order, direction=1)
                error = abs(mp.mpf(result) - true)
                assert error <= RELATIVE * abs(true) + max(absolute, mp.mpf(10) ** -45), (
                    order,
                    margin,
                    result,
                    mp.nstr(true, 20),
                )


@pytest.mark.parametrize(("tau", "sharpness"), ((1.0, 1.0), (0.5, 4.0)), ids=("plain", "sharp"))
@pytest.mark.parametrize("sides", (1, 2))
@pytest.mark.parametrize("base", BASES)
def test_linear_core(base: str, sides: int, tau: float, sharpness: float) -> None:
    right = [tau + z / sharpness for z in PAST]
    left = [-tau - z / sharpness for z in PAST]
    inside = [-0.375, 0.0, 0.375]
    # The quartic's three terms cancel near its minimum, where it is zero; no tail is small because a power is.
    absolute = 1e-15 if base == "quartic" else 0.0
    agree(LinearCore(base, tau, sides, sharpness), linear_core(base, tau, sides, sharpness), right + left + inside, absolute)


def test_quartic_with_constants_of_its_own() -> None:
    phi = LinearCore(QuarticBase(a=0.5, constant=2.0), tau=2.0, sides=2)
    slope = mp.mpf(1) / 2
    core = quartic(slope, mp.mpf(2))

    def definition(u: Real) -> Real:
        if u > 2:
            return core(2 - u) / slope
        return core(-2 - u) / slope + 4 if u < -2 else 2 - u + mp.mpf(2) / slope

    agree(phi, definition, [-700.0, -5.5, -2.0, 0.0, 1.0, 2.0, 2.5, 4.0, 700.0])


@pytest.mark.parametrize("name", CLASSICAL)
def test_classical(name: str) -> None:
    phi, definition = CLASSICAL[name]
    agree(phi, definition, [-700.0, -41.0, -30.5, -2.0, -1.0, -0.25, 0.0, 0.5, 0.75, 1.0, 1.25, 2.0, 30.5, 41.0, 700.0])


LOG2, LOG3 = math.log(2), math.log(3)

# (surrogate, margin, value, slope, curvature), all at τ = 1 and β = 1 unless said.
BY_HAND = {
    # φ(0) = τ + c with c = Φ(0)/Φ'(0) = log 2 / ½.
    "logistic, zero": (LinearCore(), 0.0, 1 + 2 * LOG2, -1, 0),
    # z = τ − u = −log 3, e^z = 1/3: 2 log(4/3); σ(z) = 1/4, so −2 · 1/4; 2 · 1/4 · 3/4.
    "logistic, right": (LinearCore(), 1 + LOG3, 2 * math.log(4 / 3), -1 / 2, 3 / 8),
    # z = −τ − u = log 3: 2 log 4 + 2τ; σ(z) = 3/4, so −2 · 3/4; curvature as on the right.
    "logistic, left of two": (LinearCore(sides=2), -1 - LOG3, 4 * LOG2 + 2, -3 / 2, 3 / 8),
    # One-sided, the same margin is in the core: τ − u + c.
    "logistic, left of one": (LinearCore(), -1 - LOG3, 2 + LOG3 + 2 * LOG2, -1, 0),
    # e^{−log 2} = ½, three times.
    "exponential, right": (LinearCore("exponential"), 1 + LOG2, 1 / 2, -1 / 2, 1 / 2),
    # e^{log 2} = 2, and 2τ on top of the value.
    "exponential, left": (LinearCore("exponential", sides=2), -1 - LOG2, 4, -2, 2),
    # β = 2: Φ(βz)/β at βz = −log 2: ½ · ½; the slope is Φ'(βz) = ½; the curvature β Φ''(βz) = 2 · ½.
    "exponential, sharp": (LinearCore("exponential", sharpness=2.0), 1 + LOG2 / 2, 1 / 4, -1 / 2, 1),
    # z = −1: −1 + 1/12 + (3/4) 3^{1/3}; −(1 − 1/3); z² = 1.
    "quartic, right": (LinearCore("quartic"), 2.0, -11 / 12 + 0.75 * 3 ** (1 / 3), -2 / 3, 1),
    # z = −2: past the turning point (3a)^{1/3} = 1.44 the loss rises: −(1 − 8/3) = +5/3.
    "quartic, rising": (LinearCore("quartic"), 3.0, -2 + 16 / 12 + 0.75 * 3 ** (1 / 3), 5 / 3, 4),
    # z = −½: ½ (1 − ½)², −(1 − ½), 1.
    "truncated, right": (LinearCore("truncated_quadratic"), 1.5, 1 / 8, -1 / 2, 1),
    # z = −τ − u = 1: ½ · 2² + 2, −2, 1.
    "truncated, left": (LinearCore("truncated_quadratic", sides=2), -2.0, 4, -2, 1),
    # z = −1: (1 + 4 + 6) e⁻¹ / 2; −(1 + 2 + 2) e⁻¹ / 2; e⁻¹ / 2.
    "gamma, right": (LinearCore("gamma"), 2.0, 11 / (2 * math.e), -5 / (2 * math.e), 1 / (2 * math.e)),
    # z = 1: (4 + 11 e⁻¹)/2 + 2; −(4 − 5 e⁻¹)/2; e⁻¹/2.
    "gamma, left": (LinearCore("gamma", sides=2), -2.0, 4 + 5.5 / math.e, -2 + 2.5 / math.e, 0.5 / math.e),
    # ½ + log 2 at zero, half the slope of a linear-core surrogate.
    "fenchel-young, zero": (ConvolutionalFenchelYoung(), 0.0, 1 / 2 + LOG2, -1 / 2, 0),
}


@pytest.mark.parametrize(("phi", "margin", "value", "slope", "curvature"), BY_HAND.values(), ids=BY_HAND.keys())
def test_numbers_derived_by_hand(phi: Surrogate, margin: float, value: float, slope: float, curvature: float) -> None:
    assert float(phi.value(margin)) == pytest.approx(value, rel=1e-14)
    assert float(phi.derivative(margin)) == pytest.approx(slope, rel=1e-14)
    assert float(phi.curvature(margin)) == pytest.approx(curvature, rel=1e-14)


def test_constants_of_the_table() -> None:
    """c, Lipschitz and smoothness for one and two sides, as typed in the reference page's table at τ = β = 1."""
    inf = math.inf
    table = {
        "logistic": (2 * LOG2, (1, 2), (1 / 2, 1 / 2)),
        "exponential": (1, (1, inf), (1, inf)),
        "quartic": (0.75 * 3 ** (1 / 3), (inf, inf), (inf, inf)),
        "truncated_quadratic": (1 / 2, (1, inf), (1, 1)),
        "gamma": (3, (1, 2), (2 * math.exp(-2), 2 * math.exp(-2))),
    }
    assert set(table) == set(BASES)
    for base, (offset, lipschitz, smoothness) in table.items():
        both = [LinearCore(base, sides=sides) for sides in (1, 2)]
        assert both[0].offset == pytest.approx(offset, rel=1e-15)
        assert [phi.lipschitz for phi in both] == list(lipschitz)
        assert [phi.smoothness for phi in both] == pytest.approx(smoothness, rel=1e-15)


def test_posterior_by_hand() -> None:
    """One-sided exponential at u = τ + log 3: φ'(u) = −1/3, φ'(−u) = −1, so 1/(1 + 1/3). Two-sided: −1/3 and −3, so 9/10."""
    assert float(LinearCore("exponential").posterior(1 + LOG3)) == pytest.approx(3 / 4, rel=1e-14)
    assert float(LinearCore("exponential", sides=2).posterior(1 + LOG3)) == pytest.approx(9 / 10, rel=1e-14)
