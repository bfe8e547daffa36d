"""The exponential base: e^z, and the straight line it becomes so that nothing overflows."""

import pytest
import torch

from linearcore.surrogates import ExponentialBase, LinearCore


def test_continuation_is_the_tangent() -> None:
    base = ExponentialBase(linear_past=2.0)
    z = torch.tensor([-3.0, 1.5, 2.0, 2.5, 7.0], dtype=torch.float64)
    tangent = torch.e**2 * (1 + z - 2)
    torch.testing.assert_close(base.value(z), torch.where(z <= 2, z.exp(), tangent), rtol=1e-15, atol=0)
    torch.testing.assert_close(base.derivative(z), z.clamp(max=2).exp(), rtol=1e-15, atol=0)
    torch.testing.assert_close(base.curvature(z), torch.where(z <= 2, z.exp(), 0.0), rtol=1e-15, atol=0)


def test_two_sided_is_convex_and_c1_through_the_continuation() -> None:
    phi = LinearCore(ExponentialBase(linear_past=3.0), sides=2)
    u = torch.linspace(-8, -2, 6001, dtype=torch.float64)
    slope = phi.derivative(u)
    assert (slope.diff() >= 0).all()
    assert slope.diff().max() <= 0.05


def test_worst_errors_keep_a_finite_gradient_that_is_not_zero() -> None:
    """Where a clamp would give zero. e^16 · 1e30 still fits float32."""
    u = torch.tensor([-18.0, -1e3, -1e30], dtype=torch.float32, requires_grad=True)
    loss = LinearCore("exponential", sides=2).value(u)
    (gradient,) = torch.autograd.grad(loss.sum(), u)
    assert loss.isfinite().all()
    torch.testing.assert_close(gradient, torch.full((3,), -(torch.e**16)))


@pytest.mark.parametrize("point", (0, -1.0, float("nan"), "16"), ids=repr)
def test_point_must_be_positive(point: object) -> None:
    with pytest.raises(ValueError, match=r"`linear_past` must be a positive number, got "):
        ExponentialBase(linear_past=point)
