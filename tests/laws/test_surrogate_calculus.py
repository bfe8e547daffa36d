"""The closed forms are each other's derivatives, for autograd too, at every margin including the knots.

Also the identities between surrogates: sharpness is a rescaling, the threshold a shift when one-sided and a pulling
apart of the tails when two-sided (`docs/reading-the-paper-with-care.md` (f)), the smoothed hinge is a linear-core
surrogate ((j)), and the binary convolutional Fenchel–Young loss is half of one.
"""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from linearcore.surrogates import BASES, ConvolutionalFenchelYoung, LinearCore, SmoothedHinge, Surrogate
from tests.cases import ALGEBRAIC, SURROGATES, every_linear_core, every_surrogate

every_base = pytest.mark.parametrize("base", (*BASES.values(), ALGEBRAIC), ids=(*BASES, "algebraic"))


def margins(phi: Surrogate) -> Tensor:
    """A coarse grid and the knots themselves."""
    return torch.cat([torch.linspace(-12, 12, 97, dtype=torch.float64), torch.tensor(phi.knots, dtype=torch.float64)])


def away_from_knots(phi: Surrogate) -> Tensor:
    u = torch.linspace(-3.9, 4.1, 17, dtype=torch.float64)
    knots = torch.tensor(phi.knots, dtype=torch.float64)
    return u[((u[:, None] - knots).abs() > 0.01).all(1)]


def slope_by_autograd(outputs: Tensor, u: Tensor, *, create_graph: bool = False) -> Tensor:
    return torch.autograd.grad(outputs.sum(), u, create_graph=create_graph, materialize_grads=True)[0]


@every_surrogate
def test_derivative_is_the_gradient_of_value_also_at_knots(phi: Surrogate) -> None:
    u = margins(phi).requires_grad_()
    torch.testing.assert_close(slope_by_autograd(phi.value(u), u), phi.derivative(u), rtol=1e-12, atol=1e-14)


@every_surrogate
def test_curvature_is_the_gradient_of_derivative_also_at_knots(phi: Surrogate) -> None:
    u = margins(phi).requires_grad_()
    torch.testing.assert_close(slope_by_autograd(phi.derivative(u), u), phi.curvature(u), rtol=1e-12, atol=1e-14)


@every_surrogate
def test_curvature_is_the_second_gradient_of_value_also_at_knots(phi: Surrogate) -> None:
    u = margins(phi).requires_grad_()
    slope = slope_by_autograd(phi.value(u), u, create_graph=True)
    torch.testing.assert_close(slope_by_autograd(slope, u), phi.curvature(u), rtol=1e-12, atol=1e-14)


@every_surrogate
def test_right_limits_at_knots(phi: Surrogate) -> None:
    """Slope and curvature at a knot are those on its right. Knots are rounded: one that lies an ulp left of the true one
    has its left-hand curvature, so only knots that are binary fractions can tell."""
    exact = [knot for knot in phi.knots if (knot * 8).is_integer()]
    at = torch.tensor(exact, dtype=torch.float64)
    torch.testing.assert_close(phi.derivative(at), phi.derivative(at + 1e-9), rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(phi.curvature(at), phi.curvature(at + 1e-9), rtol=1e-7, atol=1e-7)


@every_surrogate
def test_gradcheck_and_gradgradcheck(phi: Surrogate) -> None:
    u = away_from_knots(phi).requires_grad_()
    assert gradcheck(phi.value, u)
    assert gradgradcheck(phi.value, u)


@every_surrogate
def test_value_is_the_integral_of_derivative(phi: Surrogate) -> None:
    """φ(b) − φ(a) = ∫ φ', by a fine trapezoid from knot to knot: catches a branch that is off by a constant."""
    ends = sorted({-6.0, *(knot for knot in phi.knots if -6 < knot < 6), 6.0})
    for a, b in pairwise(ends):
        u = torch.linspace(a, b, 20001, dtype=torch.float64)
        # The kinked hinge has its right-hand slope at the knot; the value just inside belongs to this piece.
        slope = phi.derivative(u.clamp(a, b - 1e-12))
        rise = float(torch.trapezoid(slope, u))
        assert rise == pytest.approx(float(phi.value(b)) - float(phi.value(a)), rel=1e-5, abs=1e-6)


@settings(max_examples=60)
@given(
    base=st.sampled_from((*BASES.values(), ALGEBRAIC)),
    sides=st.sampled_from((1, 2)),
    tau=st.floats(0.05, 5.0),
    sharpness=st.floats(0.1, 10.0),
)
def test_closed_forms_agree_at_any_setting(base, sides: int, tau: float, sharpness: float) -> None:
    """Away from the knots, where the last bit decides which side of them a margin is on."""
    phi = LinearCore(base, tau, sides, sharpness)
    u = away_from_knots(phi).requires_grad_()
    slope = slope_by_autograd(phi.value(u), u, create_graph=True)
    torch.testing.assert_close(slope, phi.derivative(u), rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(slope_by_autograd(slope, u), phi.curvature(u), rtol=1e-11, atol=1e-11)
    test_sharpness_is_a_rescaling(phi)


@every_linear_core
def test_sharpness_is_a_rescaling(phi: LinearCore) -> None:
    """φ_{τ,β}(u) = φ_{βτ,1}(βu)/β."""
    beta = phi.sharpness
    plain = LinearCore(phi.base, phi.tau * beta, phi.sides)
    u = torch.linspace(-7.03, 7.03, 101, dtype=torch.float64)
    torch.testing.assert_close(phi.value(u), plain.value(beta * u) / beta, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(phi.derivative(u), plain.derivative(beta * u), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(phi.curvature(u), beta * plain.curvature(beta * u), rtol=1e-12, atol=1e-12)


@every_linear_core
def test_offset_is_the_value_at_the_end_of_the_core(phi: LinearCore) -> None:
    assert float(phi.value(phi.tau)) == pytest.approx(phi.offset, rel=1e-15)


@every_base
@pytest.mark.parametrize("tau", (0.25, 3.0))
def test_threshold_is_a_shift_when_one_sided(base, tau: float) -> None:
    u = torch.linspace(-8, 8, 129, dtype=torch.float64)
    torch.testing.assert_close(
        LinearCore(base, tau).value(u), LinearCore(base, 1.0).value(u - tau + 1), rtol=1e-13, atol=1e-13
    )


@every_base
@pytest.mark.parametrize("tau", (0.25, 3.0))
def test_threshold_pulls_the_tails_apart_when_two_sided(base, tau: float) -> None:
    """The right tail moves by τ − 1 to the right; the left one by as much to the left, and 2(τ − 1) up."""
    wide, plain = LinearCore(base, tau, 2), LinearCore(base, 1.0, 2)
    beyond = torch.linspace(0, 8, 65, dtype=torch.float64)
    torch.testing.assert_close(wide.value(tau + beyond), plain.value(1 + beyond), rtol=1e-13, atol=1e-13)
    left = plain.value(-1 - beyond) + 2 * (tau - 1)
    torch.testing.assert_close(wide.value(-tau - beyond), left, rtol=1e-13, atol=1e-13)


@every_base
def test_sides_agree_up_to_the_left_end_of_the_core(base) -> None:
    u = torch.linspace(-1, 9, 101, dtype=torch.float64)
    torch.testing.assert_close(LinearCore(base).value(u), LinearCore(base, sides=2).value(u), rtol=1e-15, atol=0)
    left = torch.linspace(-4, -1.1, 30, dtype=torch.float64)
    assert (LinearCore(base, sides=2).value(left) > LinearCore(base).value(left)).all()


@pytest.mark.parametrize("width", (0.1, 0.3, 0.5, 0.9))
def test_smoothed_hinge_is_a_linear_core_surrogate(width: float) -> None:
    hinge = SmoothedHinge(width)
    core = LinearCore("truncated_quadratic", tau=1 - width, sharpness=1 / width)
    u = torch.linspace(-3.03, 3.03, 203, dtype=torch.float64)
    for name in ("value", "derivative", "curvature"):
        torch.testing.assert_close(getattr(hinge, name)(u), getattr(core, name)(u), rtol=1e-13, atol=1e-14)
    for fact in ("lipschitz", "smoothness", "knots", "core", "is_c1", "is_c2", "is_monotone", "vanishes", "bounds_zero_one"):
        assert getattr(hinge, fact) == pytest.approx(getattr(core, fact)), fact


def test_convolutional_fenchel_young_is_half_the_two_sided_logistic() -> None:
    half, core = ConvolutionalFenchelYoung(), LinearCore("logistic", tau=1.0, sides=2)
    u = torch.linspace(-60, 60, 961, dtype=torch.float64)
    for name in ("value", "derivative", "curvature"):
        torch.testing.assert_close(getattr(half, name)(u), getattr(core, name)(u) / 2, rtol=1e-15, atol=0)
    assert (half.lipschitz, half.smoothness) == (core.lipschitz / 2, core.smoothness / 2)
    assert (half.knots, half.core, half.is_c2) == (core.knots, core.core, core.is_c2)


def test_logistic_tail_is_the_logistic_surrogate_twice() -> None:
    """Beyond τ the logistic linear-core surrogate is 2 log(1 + e^{τ−u}): `Logistic`, moved by τ and doubled."""
    u = torch.linspace(1, 30, 117, dtype=torch.float64)
    torch.testing.assert_close(LinearCore().value(u), 2 * SURROGATES["logistic"].value(u - 1), rtol=1e-15, atol=0)
