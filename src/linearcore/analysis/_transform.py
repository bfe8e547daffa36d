"""T(t): the minimal surrogate regret of a binary prediction with 0-1 regret t."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._checks import complaint, positive
from linearcore.analysis._noise_condition import NoiseCondition
from linearcore.surrogates import Surrogate

#: Largest margin of the search. At this margin every surrogate equals its infimum up to rounding.
_MAX_MARGIN = 2.0**40


class Transform(NamedTuple):
    """T, the minimiser of its infimum, and its slope, each in the shape of t."""

    value: Tensor
    minimiser: Tensor
    slope: Tensor


def transform(
    surrogate: Surrogate, t: npt.ArrayLike, *, bound: float | None = None, noise: NoiseCondition | None = None
) -> npt.NDArray[np.float64]:
    """Computes the estimation-error transformation of a binary surrogate.

        T(t) = φ(0) − inf_{|u| ≤ Λ} [ (1 − t)/2 · φ(−u) + (1 + t)/2 · φ(u) ]

    T(0-1 regret) ≤ surrogate regret, and T is the largest function with this property. A linear core on [−τ, τ] has
    T(t) ≥ min(τ, Λ)·t. The score functions must take every value in [−Λ, Λ] at every input.

    Args:
        surrogate: any φ.
        t: numbers in [0, 1], any shape: |2η − 1| for a positive label with probability η; with `noise`, the 0-1 regret.
        bound: Λ, the largest |h(x)|; None for unbounded scores.
        noise: returns the least surrogate regret of all problems with this noise condition, mT(t/m), where m is the largest
            probability of a wrong prediction.

    Returns:
        T(t) in the shape of `t`, float64, with an error of about 1e-12.

    Raises:
        ValueError: if some t is outside [0, 1], or `bound` is not positive.

    Example:
        >>> from linearcore import Hinge, LinearCore
        >>> from linearcore.analysis import transform
        >>> transform(Hinge(), [0.0, 0.25, 1.0]).tolist()
        [0.0, 0.25, 1.0]
        >>> bool(transform(LinearCore(tau=0.5), 0.01) >= 0.5 * 0.01)
        True
        >>> float(transform(LinearCore(), 0.5, bound=0.25))
        0.125

    Cost: about 100 evaluations of φ' on an array in the shape of `t`.

    Reference: Theorem 3.2 of the paper for unbounded scores; docs/proofs.md for the rest.
    """
    numbers = np.asarray(t, dtype=np.float64)
    if not bool(((numbers >= 0) & (numbers <= 1)).all()):
        raise ValueError(complaint("t", "be in [0, 1]", f"values from {numbers.min()} to {numbers.max()}", "it is |2η − 1|"))
    value = transform_parts(surrogate, torch.from_numpy(np.array(numbers)), bound=bound, noise=noise).value
    return np.asarray(value.numpy())


def transform_parts(
    surrogate: Surrogate, t: Tensor, *, bound: float | None = None, noise: NoiseCondition | None = None
) -> Transform:
    """Returns T with its minimiser and slope, for a float64 tensor of t in [0, 1]; arguments as in `transform`."""
    limit = math.inf if bound is None else positive("bound", bound, "pass the largest |h(x)|, for example 2.0")
    if noise is None:
        return _pointwise(surrogate, t, limit)
    margin, mass = noise.margin(t), noise.mass(t)
    value, minimiser, slope = _pointwise(surrogate, margin, limit)
    # d/dt of m T(t/m) with m = c·t^α, and T' where m = 1.
    is_limited = (mass < 1) & (margin > 0)
    mixed = noise.exponent * value / torch.where(is_limited, margin, 1.0) + (1 - noise.exponent) * slope
    return Transform(mass * value, minimiser, torch.where(is_limited, mixed, slope))


def _pointwise(surrogate: Surrogate, t: Tensor, bound: float) -> Transform:
    """Returns T at one input, with scores in [−bound, bound].

    The risk is convex in u and falls at 0, so scores of the wrong sign have risk φ(0) or more, and the slope of the risk
    changes sign at the minimiser u ≥ 0, unless `bound` comes first. Bisection finds u to the last bit, also for φ with
    kinks. By the envelope theorem T'(t) = (φ(−u) − φ(u))/2.
    """
    less, more = (1 - t) / 2, (1 + t) / 2

    def slope(u: Tensor) -> Tensor:
        return more * surrogate._derivative(u) - less * surrogate._derivative(-u)

    low = torch.zeros_like(t)
    limit = min(bound, _MAX_MARGIN)
    high = torch.full_like(t, min(1.0, limit))
    while bool(((is_falling := slope(high) < 0) & (high < limit)).any()):
        low, high = torch.where(is_falling, high, low), torch.where(is_falling, 2 * high, high).clamp(max=limit)
    for _ in range(100):
        middle = (low + high) / 2
        is_falling = slope(middle) < 0
        low, high = torch.where(is_falling, middle, low), torch.where(is_falling, high, middle)
    u = high
    at_u, at_minus_u = surrogate._value(u), surrogate._value(-u)
    # Avoids 0 · inf = NaN at t = 1, where u is huge and φ(−u) has weight 0.
    risk = torch.where(less > 0, less * at_minus_u, 0.0) + more * at_u
    start = surrogate._value(torch.zeros_like(t))
    return Transform((start - risk).clamp(min=0), u, (at_minus_u - at_u) / 2)
