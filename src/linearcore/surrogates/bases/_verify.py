"""Checks that a user's base is one: convex, C1, non-negative, rising through zero, true to its declared facts."""

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.surrogates.bases._base import Base, Half

_REACH = 30.0
_POINTS = 2001
_TOLERANCE = 1e-6


def verify_base(base: Base) -> None:
    """Raises ValueError with the first reason why `base` is not a base, found on a grid over [−30, 30].

    Points at which Φ or Φ' overflows are left out, so that fast-growing bases can be used.
    """
    z = torch.linspace(-_REACH, _REACH, _POINTS, dtype=torch.float64)
    finite = torch.isfinite(base.value(z)) & torch.isfinite(base.derivative(z))
    z = z[finite]
    value, slope = base.value(z), base.derivative(z)
    if not base.slope_at_zero > 0:
        raise ValueError(
            complaint("base", "have Φ'(0) > 0", f"Φ'(0) = {base.slope_at_zero:g}", "shift it so that it rises through zero")
        )
    _require(value >= -_TOLERANCE, z, "be non-negative", "add a constant")
    _require(_rises(slope), z[1:], "be convex", "its derivative must never fall")
    _require(_matches(base, z, slope), z, "have `first` equal to the derivative of `function`", "check the derivative")
    _require(_continuous(base, z, slope), z[:-1], "be continuously differentiable", "smooth the kink")
    if base.is_monotone:
        _require((slope >= -_TOLERANCE) | (z > 0), z, "be non-decreasing, as `is_monotone=True` says", "declare it False")
    _check_half(base, base.left, z[z <= 0], "left")
    _check_half(base, base.right, z[z >= 0], "right")


def _rises(slope: Tensor) -> Tensor:
    step = slope[1:] - slope[:-1]
    return step >= -_TOLERANCE * (1 + slope[1:].abs())


def _matches(base: Base, z: Tensor, slope: Tensor) -> Tensor:
    """Φ'(z) lies between the difference quotients on either side, as it must for a convex function."""
    h = 1e-4
    below = (base.value(z) - base.value(z - h)) / h
    above = (base.value(z + h) - base.value(z)) / h
    slack = 1e-5 * (1 + slope.abs() + base.value(z).abs())
    return ~torch.isfinite(above) | ((below - slack <= slope) & (slope <= above + slack))


def _continuous(base: Base, z: Tensor, slope: Tensor) -> Tensor:
    """Bisects every grid interval towards the half with the larger jump of Φ'; a kink is a jump that stays."""
    low, high = z[:-1].clone(), z[1:].clone()
    slope_low, slope_high = slope[:-1].clone(), slope[1:].clone()
    for _ in range(30):
        middle = (low + high) / 2
        slope_middle = base.derivative(middle)
        jump_is_right = slope_high - slope_middle > slope_middle - slope_low
        low, high = torch.where(jump_is_right, middle, low), torch.where(jump_is_right, high, middle)
        slope_low = torch.where(jump_is_right, slope_middle, slope_low)
        slope_high = torch.where(jump_is_right, slope_high, slope_middle)
    return slope_high - slope_low <= _TOLERANCE * (1 + slope_high.abs())


def _check_half(base: Base, half: Half, z: Tensor, side: str) -> None:
    slack = 1 + _TOLERANCE
    advice = f"correct `{side}`"
    _require(base.derivative(z).abs() <= half.slope * slack, z, f"have slopes within the declared {half.slope:g}", advice)
    curvature = base.curvature(z)
    _require(
        curvature <= half.curvature * slack + _TOLERANCE, z, f"have curvature within the declared {half.curvature:g}", advice
    )
    if half.is_flat_at_zero:
        near = z[z.abs() == z.abs().min()] * 0 + (-1e-6 if side == "left" else 1e-6)
        _require(base.curvature(near) <= 1e-3, near, "have Φ'' = 0 at zero, as `is_flat_at_zero` says", advice)


def _require(condition: Tensor, z: Tensor, must: str, advice: str) -> None:
    if not bool(condition.all()):
        where = float(z[~condition][0])
        raise ValueError(complaint("base", must, f"a violation near z = {where:g}", advice))
