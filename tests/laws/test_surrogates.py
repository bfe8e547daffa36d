"""Every fact that a surrogate declares is read back and measured on the function itself.

Laws: convex; C1 and C2 at the knots exactly where declared; Lipschitz and smoothness constants reached and never
exceeded (`docs/reading-the-paper-with-care.md` (d): a slope bounded by 1 is not true of every linear-core surrogate);
monotone where declared and only there ((e): the quartic rises again); vanishing; knots complete; the core straight, of
the right slope and as wide as declared; the upper bound on the 0-1 loss.
"""

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from linearcore.surrogates import ConvolutionalFenchelYoung, Surrogate
from tests.cases import every_surrogate

margins_drawn = settings(max_examples=25)

STEP = 5e-4
FAR = 10.0 ** torch.arange(2, 31, dtype=torch.float64)


def grid(phi: Surrogate, *, far: bool = False) -> Tensor:
    """Margins in rising order: [−40, 40] finely, every knot with its two neighbouring floats, on demand up to ±1e30."""
    knots = torch.tensor(phi.knots, dtype=torch.float64)
    infinity = torch.tensor(math.inf, dtype=torch.float64)
    parts = [torch.arange(-40, 40, STEP, dtype=torch.float64), knots, knots.nextafter(infinity), knots.nextafter(-infinity)]
    return torch.cat(parts + ([FAR, -FAR] if far else [])).unique()


def sides_of(phi: Surrogate, h: float = 1e-6) -> tuple[Tensor, Tensor]:
    """Points just left and just right of every knot."""
    knots = torch.tensor(phi.knots, dtype=torch.float64)
    return knots - h, knots + h


def drawn_margins(bound: float | None) -> st.SearchStrategy[list[float]]:
    floats = st.floats(allow_nan=False) if bound is None else st.floats(-bound, bound)
    return st.lists(floats | st.floats(-5, 5), min_size=2, max_size=8)


@every_surrogate
def test_straight_lines_are_as_declared(phi: Surrogate) -> None:
    u = grid(phi)
    if phi.lines:
        highest = torch.stack([slope * u + height for slope, height in phi.lines]).amax(0)
        torch.testing.assert_close(phi.value(u), highest, rtol=1e-12, atol=1e-12)
    else:  # A loss that bends only in its knots would be such a maximum.
        assert bool((phi.curvature(u) > 0).any())


@every_surrogate
def test_second_differences_are_not_negative(phi: Surrogate) -> None:
    u = torch.arange(-15, 15, 0.05, dtype=torch.float64)
    value = phi.value(u)
    bend = value[2:] - 2 * value[1:-1] + value[:-2]
    assert phi.is_convex
    assert (bend >= -1e-14 * (1 + value[1:-1].abs() + value[2:].abs() + value[:-2].abs())).all()


@every_surrogate
@margins_drawn
@given(margins=drawn_margins(None))
def test_slope_never_falls_at_any_margin(phi: Surrogate, margins: list[float]) -> None:
    slope = phi.derivative(torch.tensor(sorted(margins), dtype=torch.float64))
    rounding = 1e-15 * slope.abs().clamp(max=1e300)
    assert (slope[1:] >= slope[:-1] - rounding[:-1] - rounding[1:]).all()


@every_surrogate
@margins_drawn
@given(margins=drawn_margins(1e6))
def test_tangents_stay_below(phi: Surrogate, margins: list[float]) -> None:
    """φ(b) ≥ φ(a) + φ'(a)(b − a): convexity once more, with `value` and `derivative` in one inequality."""
    a = torch.tensor(margins, dtype=torch.float64)
    b = a.flip(0)
    value, step = phi.value(a), phi.derivative(a) * (b - a)
    finite = torch.isfinite(value) & torch.isfinite(step)
    slack = 1e-13 * (1 + value.abs() + step.abs() + a.abs())
    assert (phi.value(b) >= value + step - slack)[finite].all()


@every_surrogate
def test_value_is_continuous_and_c1_is_as_declared(phi: Surrogate) -> None:
    below, above = sides_of(phi)
    jump = (phi.derivative(above) - phi.derivative(below)).abs()
    assert ((phi.value(above) - phi.value(below)).abs() <= 1e-5).all()
    if phi.is_c1:
        assert (jump <= 1e-4).all()
    else:
        assert jump.max() >= 0.05


@every_surrogate
def test_c2_is_as_declared(phi: Surrogate) -> None:
    below, above = sides_of(phi)
    jump = (phi.curvature(above) - phi.curvature(below)).abs()
    if phi.is_c2:
        assert phi.is_c1
        assert (jump <= 1e-4).all()
    else:
        kink = (phi.derivative(above) - phi.derivative(below)).abs()
        assert torch.cat([jump, kink]).max() >= 0.05


@every_surrogate
def test_lipschitz_constant_is_reached_and_never_exceeded(phi: Surrogate) -> None:
    steepest = float(phi.derivative(grid(phi, far=True)).abs().max())
    if math.isinf(phi.lipschitz):
        assert steepest >= 1e6
    else:
        assert phi.lipschitz * (1 - 1e-6) <= steepest <= phi.lipschitz * (1 + 1e-14)


@every_surrogate
def test_smoothness_constant_is_reached_and_never_exceeded(phi: Surrogate) -> None:
    u = grid(phi, far=True)
    sharpest = float(phi.curvature(u).max())
    below, above = sides_of(phi, 1e-9)
    kinks = ((phi.derivative(above) - phi.derivative(below)) / 2e-9).tolist()
    if math.isinf(phi.smoothness):
        assert max([sharpest, *kinks]) >= 1e6
    else:
        assert phi.smoothness * (1 - 1e-6) <= sharpest <= phi.smoothness * (1 + 1e-14)


@every_surrogate
@margins_drawn
@given(margins=drawn_margins(1e6))
def test_differences_respect_both_constants(phi: Surrogate, margins: list[float]) -> None:
    """|φ(a) − φ(b)| ≤ Lip |a − b| and |φ'(a) − φ'(b)| ≤ smoothness |a − b|, whatever the closed forms say of themselves."""
    a = torch.tensor(margins, dtype=torch.float64)
    b = a.flip(0)
    gap = (a - b).abs()
    if math.isfinite(phi.lipschitz):
        slack = 1e-14 * (1 + phi.value(a).abs() + phi.value(b).abs() + a.abs() + b.abs())
        assert ((phi.value(a) - phi.value(b)).abs() <= phi.lipschitz * gap + slack).all()
    if math.isfinite(phi.smoothness):
        slack = 1e-14 * (1 + phi.derivative(a).abs() + phi.derivative(b).abs()) * (1 + phi.smoothness)
        assert ((phi.derivative(a) - phi.derivative(b)).abs() <= phi.smoothness * gap + slack).all()


@every_surrogate
def test_monotone_is_as_declared(phi: Surrogate) -> None:
    slope = phi.derivative(grid(phi, far=True))
    if phi.is_monotone:
        assert (slope <= 0).all()
    else:
        assert slope.max() >= 1e-3


@every_surrogate
def test_vanishes_as_declared(phi: Surrogate) -> None:
    tail = phi.value(10.0 ** torch.arange(1, 13, dtype=torch.float64))
    if phi.vanishes:
        assert (tail[1:] <= tail[:-1]).all()
        assert 0 <= float(tail[-1]) <= 1e-11
    else:
        assert tail.min() >= 1e-3


@every_surrogate
def test_bounds_the_zero_one_loss_as_declared(phi: Surrogate) -> None:
    u = torch.cat([grid(phi, far=True), torch.zeros(1, dtype=torch.float64)])
    loss = phi.value(u)
    assert (loss >= -1e-14).all()
    assert phi.bounds_zero_one == bool((loss[u <= 0] >= 1).all())


@every_surrogate
def test_knots_are_in_rising_order_and_each_is_one(phi: Surrogate) -> None:
    """At a knot the one-sided jets (φ', φ'', φ''', φ'''') differ; finite differences of `curvature` give the last two."""
    h = 1e-3

    def jet(sign: int) -> Tensor:
        at = [torch.tensor(phi.knots, dtype=torch.float64) + sign * k * h for k in (1e-3, 1, 2)]
        near, middle, far = (phi.curvature(u) for u in at)
        return torch.stack([phi.derivative(at[0]), near, sign * (far - near) / (2 * h), (far - 2 * middle + near) / h**2])

    assert list(phi.knots) == sorted(set(phi.knots))
    if phi.knots:
        assert ((jet(1) - jet(-1)).abs().amax(0) >= 0.01).all()


@every_surrogate
def test_knots_are_complete(phi: Surrogate) -> None:
    """Between knots neither slope nor curvature jumps.

    The exponential base goes on as a line past a point of its own choice, where its slope is about 9e6
    (`docs/reading-the-paper-with-care.md` (d));
    its facts are those of e^z, so margins with slopes past 1e6 are left out.
    """
    u = grid(phi)
    u = u[phi.derivative(u).abs() < 1e6]
    low, high = u[:-1], u[1:]
    knots = torch.tensor(phi.knots, dtype=torch.float64)
    smooth = ~((low[:, None] <= knots + 1e-12) & (high[:, None] >= knots - 1e-12)).any(1)
    curvature, slope = phi.curvature(u), phi.derivative(u)
    assert (slope.diff().abs() <= 0.01 * (1 + slope[1:].abs() + slope[:-1].abs()))[smooth].all()
    assert (curvature.diff().abs() <= 0.01 * (1 + curvature[1:].abs() + curvature[:-1].abs()))[smooth].all()


@every_surrogate
def test_core_is_straight_with_the_right_slope(phi: Surrogate) -> None:
    if phi.core is None:
        around = torch.tensor([-0.01, 0.01], dtype=torch.float64)
        assert phi.derivative(around).diff() >= 1e-3
        return
    low, high = phi.core
    slope = -0.5 if isinstance(phi, ConvolutionalFenchelYoung) else -1.0
    u = torch.linspace(max(low, -50.0), high, 1001, dtype=torch.float64)[:-1]
    assert low < 0 < high
    assert (phi.derivative(u) == slope).all()
    assert (phi.curvature(u) == 0).all()
    torch.testing.assert_close(phi.value(u), float(phi.value(0.0)) + slope * u, rtol=1e-15, atol=1e-15)


@every_surrogate
def test_core_is_the_widest_straight_interval(phi: Surrogate) -> None:
    if phi.core is None:
        return
    low, high = phi.core
    inside = float(phi.derivative(0.0))
    assert float(phi.derivative(high + 0.01)) > inside + 1e-10
    if math.isinf(low):
        assert float(phi.derivative(-1e30)) == inside
    else:
        assert float(phi.derivative(low - 0.01)) < inside - 1e-10
