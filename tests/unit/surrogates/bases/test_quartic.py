"""The quartic base: its constants, and that the loss built on it rises again.

`docs/reading-the-paper-with-care.md` (e).
"""

import pytest
import torch

from linearcore.surrogates import LinearCore, QuarticBase


@pytest.mark.parametrize("a", (0.1, 1.0, 5.0))
def test_least_constant_makes_the_minimum_zero(a: float) -> None:
    base = QuarticBase(a)
    turning = torch.tensor([-((3 * a) ** (1 / 3))], dtype=torch.float64)
    assert float(base.value(turning)) == pytest.approx(0, abs=1e-14 * (1 + a))
    assert float(base.derivative(turning)) == pytest.approx(0, abs=1e-14 * (1 + a))
    assert base.constant == base.at_zero == pytest.approx(0.75 * a * (3 * a) ** (1 / 3), rel=1e-15)


@pytest.mark.parametrize("constant", (0.0, -1.0, 1.08, float("nan")), ids=repr)
def test_constant_too_small(constant: float) -> None:
    with pytest.raises(ValueError, match=r"`constant` must be at least 1.08169, got "):
        QuarticBase(constant=constant)


@pytest.mark.parametrize("a", (0, -1.0, float("inf"), "1", False), ids=repr)
def test_slope_must_be_positive(a: object) -> None:
    with pytest.raises(ValueError, match=r"`a` must be a positive number, got "):
        QuarticBase(a)


@pytest.mark.parametrize("a", (0.5, 1.0))
def test_loss_rises_beyond_the_turning_point(a: float) -> None:
    phi = LinearCore(QuarticBase(a), tau=1.0)
    turning = 1 + (3 * a) ** (1 / 3)
    assert float(phi.derivative(turning - 1e-6)) < 0 < float(phi.derivative(turning + 1e-6))
    assert float(phi.value(turning + 1)) > float(phi.value(turning)) + 0.5
    assert not phi.is_monotone


def test_too_right_is_certain() -> None:
    """Margins past the turning point minimise no expected loss; the posterior is 1 there, not more."""
    assert LinearCore("quartic").posterior([3.0, -3.0, 1e9]).tolist() == [1.0, 0.0, 1.0]
