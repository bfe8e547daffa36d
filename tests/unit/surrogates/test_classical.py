"""The classical surrogates: their one option, and what the laws cannot see."""

import math

import pytest
import torch

from linearcore.surrogates import Exponential, Hinge, SmoothedHinge, SquaredHinge


@pytest.mark.parametrize("width", (0, -0.5, float("nan"), float("inf"), "0.5", True, None), ids=repr)
def test_width_must_be_positive(width: object) -> None:
    with pytest.raises(ValueError, match=r"`width` must be a positive number, got "):
        SmoothedHinge(width)


def test_width_of_one_or_more_leaves_no_core() -> None:
    assert SmoothedHinge(0.75).core == (-math.inf, 0.25)
    assert SmoothedHinge(1.0).core is None
    assert SmoothedHinge(2.0).core is None


def test_smoothed_hinge_tends_to_the_hinge() -> None:
    """It lies below by at most γ/2."""
    u = torch.linspace(-3, 3, 601, dtype=torch.float64)
    gap = Hinge().value(u) - SmoothedHinge(1e-3).value(u)
    assert (gap >= -1e-15).all()
    assert (gap <= 0.5e-3 + 1e-15).all()


def test_hinge_has_its_right_hand_slope_at_the_kink() -> None:
    assert Hinge().derivative([0.5, 1.0, 1.5]).tolist() == [-1.0, 0.0, 0.0]


def test_which_of_them_bound_the_zero_one_loss() -> None:
    assert Hinge().bounds_zero_one
    assert SquaredHinge().bounds_zero_one
    assert Exponential().bounds_zero_one
    assert not SmoothedHinge(0.5).bounds_zero_one  # 1 − γ/2 at zero


def test_exponential_overflows_to_infinity_and_not_to_nan() -> None:
    u = torch.tensor([-89.0, 110.0], dtype=torch.float32)
    assert Exponential().value(u).tolist() == [math.inf, 0.0]
    assert Exponential().derivative(u).tolist() == [-math.inf, 0.0]


def test_they_are_values() -> None:
    assert Hinge() == Hinge()
    assert SmoothedHinge(0.5) == SmoothedHinge() != SmoothedHinge(0.25)
    assert len({Hinge(), Hinge(), SquaredHinge()}) == 2
