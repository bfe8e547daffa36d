"""Properties of a function φ, measured at points: a check, not a proof."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from linearcore._checks import complaint

Function = Callable[[Tensor], Tensor]

_END, _POINTS = 30.0, 6001
#: Points beyond the grid, at which growth is looked at.
_FAR = (100.0, 1e3, 1e4)
_TOLERANCE = 1e-6
#: Largest relative change of the slope inside a core.
_STRAIGHT = 1e-12


@dataclass(frozen=True)
class Facts:
    """Measured properties, with the names of `Surrogate`."""

    lipschitz: float
    smoothness: float
    is_c1: bool
    is_monotone: bool
    vanishes: bool
    knots: tuple[float, ...]
    core: tuple[float, float] | None
    lines: tuple[tuple[float, float], ...]


def measure(value: Function, derivative: Function, curvature: Function) -> Facts:
    """Measures φ on a grid over [−30, 30] and at ±100, ±1000 and ±10⁴.

    Raises:
        ValueError: with the first point at which φ is not a convex surrogate.
    """
    grid = torch.linspace(-_END, _END, _POINTS, dtype=torch.float64)
    # Fast-growing functions overflow far from 0; they are measured where they are finite.
    grid = grid[(value(grid) != math.inf) & (derivative(grid).abs() != math.inf)]
    slopes, values = derivative(grid), value(grid)
    _require(values.isfinite() & slopes.isfinite(), grid, "be finite", "rewrite it without overflow or 0/0")
    if len(grid) < 100 or float(grid[0]) > -1 or float(grid[-1]) < 1:
        raise ValueError(complaint("phi", "be finite near 0", "an overflow", "rewrite it, for example with softplus"))
    _require(values >= -_TOLERANCE, grid, "be non-negative", "add a constant, or use max(0, …)")
    _require_convex(grid, values, slopes)
    kinks = _jumps(derivative, grid, _TOLERANCE)
    _require_slope_at_zero(derivative, kinks)
    bends = [
        place for place in _jumps(curvature, grid, 1e-3) if min((abs(place - kink) for kink in kinks), default=1) > 1e-3
    ]
    far = torch.tensor([sign * point for sign in (-1, 1) for point in _FAR], dtype=torch.float64)
    # A function that grows slowly on the grid does not overflow by itself: its formula does, as log1p(exp(−u)).
    grows_slowly = torch.where(far < 0, slopes[0], slopes[-1]).abs() < 1e6
    advice = "rewrite it without overflow, for example with softplus"
    _require(value(far).isfinite() | ~grows_slowly, far, "be finite", advice)
    steep = _sup(derivative, grid, far)
    everything = torch.cat([grid, far])
    all_slopes = derivative(everything)
    is_monotone = bool((all_slopes[all_slopes.isfinite()] <= _TOLERANCE).all())
    end = float(value(far[-1:]))
    return Facts(
        lipschitz=steep,
        smoothness=math.inf if kinks else _sup(curvature, grid, far),
        is_c1=not kinks,
        is_monotone=is_monotone,
        vanishes=is_monotone and 0 <= end <= 1e-12,
        knots=tuple(sorted(kinks + bends)),
        core=_core(derivative, grid),
        lines=_lines(value, derivative, kinks) if not bends and not bool(curvature(grid).any()) else (),
    )


def _require(condition: Tensor, grid: Tensor, must: str, advice: str) -> None:
    if not bool(condition.all()):
        raise ValueError(complaint("phi", must, f"a violation at u = {float(grid[~condition][0]):.4g}", advice))


def _require_convex(grid: Tensor, values: Tensor, slopes: Tensor) -> None:
    """Raises unless slopes increase and each chord is between the slopes at its ends."""
    rise, step = values[1:] - values[:-1], grid[1:] - grid[:-1]
    slack = 1e-9 * (1 + values[1:].abs() + values[:-1].abs())
    increases = slopes[1:] - slopes[:-1] >= -_TOLERANCE * (1 + slopes[1:].abs())
    fits = (slopes[:-1] * step <= rise + slack) & (rise <= slopes[1:] * step + slack)
    _require(increases & fits, grid[1:], "be convex", "only convex losses can be certified")


def _require_slope_at_zero(derivative: Function, kinks: list[float]) -> None:
    slope = float(derivative(torch.zeros(1, dtype=torch.float64)))
    if any(abs(kink) < 1e-9 for kink in kinks):
        got, advice = "a kink at 0", "a loss with a kink at 0 is not consistent; move the kink to a positive margin"
        raise ValueError(complaint("phi", "be differentiable at 0", got, advice))
    if not slope < -_TOLERANCE:
        advice = "a loss that does not fall at 0 is not consistent; mirror it, u ↦ −u, or shift it"
        raise ValueError(complaint("phi", "have φ'(0) < 0", f"{slope:.3g}", advice))


def _jumps(function: Function, grid: Tensor, tolerance: float) -> list[float]:
    """Returns the points at which a function jumps: bisection towards the larger change, which shrinks unless it jumps."""
    low, high = grid[:-1].clone(), grid[1:].clone()
    at_low, at_high = function(low), function(high)
    for _ in range(45):
        middle = (low + high) / 2
        at_middle = function(middle)
        is_right = (at_high - at_middle).abs() > (at_middle - at_low).abs()
        low, high = torch.where(is_right, middle, low), torch.where(is_right, high, middle)
        at_low, at_high = torch.where(is_right, at_middle, at_low), torch.where(is_right, at_high, at_middle)
    is_jump = (at_high - at_low).abs() > tolerance * (1 + at_high.abs())
    places: list[float] = []
    for place in ((low + high) / 2)[is_jump].tolist():
        # A jump at a grid point is found from both sides.
        if not places or place - places[-1] > 1e-6:
            places.append(round(place, 12) + 0.0)
    return places


def _sup(function: Function, grid: Tensor, far: Tensor) -> float:
    """Returns the largest absolute value, or inf if it still grows beyond the grid or cannot be computed there."""
    inside, outside = function(grid).abs().max(), function(far).abs()
    if not bool(outside.isfinite().all()):
        return math.inf
    near, farther = outside.reshape(2, -1)[:, 1].max(), outside.reshape(2, -1)[:, 2].max()
    if float(farther) > 1.01 * max(float(near), float(inside)):
        return math.inf
    return max(float(inside), float(outside.max()))


def _lines(value: Function, derivative: Function, kinks: list[float]) -> tuple[tuple[float, float], ...]:
    """Returns (slope, intercept) of the line on each side of the kinks of a piecewise linear function."""
    ends = [-_END, *kinks, _END]
    middles = torch.tensor([(low + high) / 2 for low, high in pairwise(ends)], dtype=torch.float64)
    slopes, values = derivative(middles), value(middles)
    return tuple(zip(slopes.tolist(), (values - slopes * middles).tolist(), strict=True))


def _core(derivative: Function, grid: Tensor) -> tuple[float, float] | None:
    """Returns the interval around 0 on which the slope is constant, or None if it is shorter than the grid's step."""
    slope = derivative(torch.zeros(1, dtype=torch.float64))
    ends = []
    for sign in (-1.0, 1.0):
        side = (sign * grid[sign * grid > 0]).sort().values
        points = torch.cat([side, torch.tensor(_FAR, dtype=torch.float64)])

        def is_straight(u: Tensor, sign: float = sign) -> Tensor:
            return (derivative(sign * u) - slope).abs() <= _STRAIGHT * slope.abs()

        bent = (~is_straight(points)).nonzero().squeeze(-1)
        if not len(bent):
            ends.append(math.inf)
            continue
        first = int(bent[0])
        low, high = (points[first - 1 : first] if first else torch.zeros_like(points[:1])), points[first : first + 1]
        for _ in range(60):
            middle = (low + high) / 2
            keeps = is_straight(middle)
            low, high = torch.where(keeps, middle, low), torch.where(keeps, high, middle)
        ends.append(round(float(low), 9))
    return None if min(ends) < 1e-4 else (-ends[0], ends[1])
