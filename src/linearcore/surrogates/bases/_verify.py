"""Checks that a user-defined base is convex, C1, non-negative, increasing at zero, and has its declared properties."""

import math

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.surrogates.bases._base import Base, Half

_GRID_END = 30.0
_POINTS = 2001
_TOLERANCE = 1e-6


def verify_base(base: Base) -> None:
    """Raises ValueError with the first violation found on a grid over [−30, 30].

    Grid points at which Φ or Φ' overflows are skipped, so fast-growing bases are allowed.
    """
    z = torch.linspace(-_GRID_END, _GRID_END, _POINTS, dtype=torch.float64)
    z = z[(base.value(z) != math.inf) & (base.derivative(z).abs() != math.inf)]
    value, slope = base.value(z), base.derivative(z)
    _require(~value.isnan() & ~slope.isnan(), z, "be defined for all z", "remove the NaN")
    if not base.slope_at_zero > 0:
        raise ValueError(
            complaint("base", "have Φ'(0) > 0", f"Φ'(0) = {base.slope_at_zero:g}", "shift it so that it increases at zero")
        )
    _require(value >= -_TOLERANCE, z, "be non-negative", "add a constant")
    _require(_is_increasing(slope), z[1:], "be convex", "its derivative must not decrease")
    _require(
        _slope_matches(z, value, slope), z[1:], "have `first` equal to the derivative of `function`", "check the derivative"
    )
    _require(_is_continuous(base, z, slope), z[:-1], "be continuously differentiable", "smooth the kink")
    _require(_curvature_matches(base, z), z, "have `second` equal to the derivative of Φ'", "check the second derivative")
    for dtype in (torch.float64, torch.float32) if base.vanishes else ():
        limit = torch.tensor([-math.inf], dtype=dtype)
        is_zero = (base.value(limit) == 0) & (base.derivative(limit) == 0)
        _require(is_zero, limit, "be 0 at −inf with `vanishes=True`", "rewrite it, or pass `vanishes=False`")
    if base.is_monotone:
        _require((slope >= -_TOLERANCE) | (z > 0), z, "be non-decreasing with `is_monotone=True`", "pass False")
    _check_half(base, base.left, z[z <= 0], "left")
    _check_half(base, base.right, z[z >= 0], "right")


def _is_increasing(slope: Tensor) -> Tensor:
    step = slope[1:] - slope[:-1]
    return step >= -_TOLERANCE * (1 + slope[1:].abs())


def _slope_matches(z: Tensor, value: Tensor, slope: Tensor) -> Tensor:
    """Whether each difference quotient of Φ lies between the slopes at its two points, as it must for convex Φ."""
    step, rise = z[1:] - z[:-1], value[1:] - value[:-1]
    slack = 1e-9 * (1 + value[1:].abs() + value[:-1].abs())
    return (slope[:-1] * step <= rise + slack) & (rise <= slope[1:] * step + slack)


def _curvature_matches(base: Base, z: Tensor) -> Tensor:
    """Whether Φ'' is close to the difference quotients of Φ'. Knots, where left and right quotients differ, are skipped."""
    h = 1e-5
    below = (base.derivative(z) - base.derivative(z - h)) / h
    above = (base.derivative(z + h) - base.derivative(z)) / h
    slack = 1e-3 * (1 + below.abs() + above.abs() + base.derivative(z).abs())
    at_knot = (above - below).abs() > slack
    return ~torch.isfinite(above) | at_knot | ((base.curvature(z) - (below + above) / 2).abs() <= slack)


def _is_continuous(base: Base, z: Tensor, slope: Tensor) -> Tensor:
    """Whether Φ' is continuous: bisects each grid interval towards the larger change of Φ'; at a kink it does not shrink."""
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
    _require(base.derivative(z).abs() <= half.slope * slack, z, f"have |slope| ≤ {half.slope:g}, as declared", advice)
    curvature = base.curvature(z)
    _require(
        curvature <= half.curvature * slack + _TOLERANCE, z, f"have curvature ≤ {half.curvature:g}, as declared", advice
    )
    if half.is_flat_at_zero:
        near = z[z.abs() == z.abs().min()] * 0 + (-1e-6 if side == "left" else 1e-6)
        _require(base.curvature(near) <= 1e-3, near, "have Φ'' = 0 at zero with `is_flat_at_zero=True`", advice)


def _require(condition: Tensor, z: Tensor, must: str, advice: str) -> None:
    if not bool(condition.all()):
        first = float(z[~condition][0])
        raise ValueError(complaint("base", must, f"a violation near z = {first:g}", advice))
