"""T(t): the minimal surrogate regret of a binary prediction with 0-1 regret t."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.surrogates import Surrogate

#: Largest margin of the search. At this margin every surrogate equals its infimum up to rounding.
_MAX_MARGIN = 2.0**40


class Transform(NamedTuple):
    """T, the minimiser of its infimum, and its slope, each in the shape of t."""

    value: Tensor
    minimiser: Tensor
    slope: Tensor


def transform(surrogate: Surrogate, t: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Computes the estimation-error transformation of a binary surrogate.

        T(t) = φ(0) − inf_u [ (1 − t)/2 · φ(−u) + (1 + t)/2 · φ(u) ]

    T(0-1 regret) ≤ surrogate regret, and T is the largest function with this property. A linear core on [−τ, τ] has
    T(t) ≥ τ·t.

    Args:
        surrogate: any φ.
        t: numbers in [0, 1], any shape: |2η − 1| for a positive label with probability η.

    Returns:
        T(t) in the shape of `t`, float64, with an error of about 1e-12.

    Raises:
        ValueError: if some t is outside [0, 1].

    Example:
        >>> from linearcore import Hinge, LinearCore
        >>> from linearcore.analysis import transform
        >>> transform(Hinge(), [0.0, 0.25, 1.0]).tolist()
        [0.0, 0.25, 1.0]
        >>> bool(transform(LinearCore(tau=0.5), 0.01) >= 0.5 * 0.01)
        True

    Cost: about 100 evaluations of φ' on an array in the shape of `t`.

    Reference: Theorem 3.2 of the paper.
    """
    numbers = np.asarray(t, dtype=np.float64)
    if not bool(((numbers >= 0) & (numbers <= 1)).all()):
        raise ValueError(complaint("t", "be in [0, 1]", f"values from {numbers.min()} to {numbers.max()}", "it is |2η − 1|"))
    value = transform_parts(surrogate, torch.from_numpy(np.array(numbers))).value
    return np.asarray(value.numpy())


def transform_parts(surrogate: Surrogate, t: Tensor) -> Transform:
    """Returns T with its minimiser and slope, for a float64 tensor of t in [0, 1].

    The risk is convex in u, so its slope changes sign at the minimiser u. Bisection finds u to the last bit, also for φ with
    kinks. By the envelope theorem T'(t) = (φ(−u) − φ(u))/2.
    """
    less, more = (1 - t) / 2, (1 + t) / 2

    def slope(u: Tensor) -> Tensor:
        return more * surrogate._derivative(u) - less * surrogate._derivative(-u)

    low = torch.zeros_like(t)
    high = torch.ones_like(t)
    while bool(((is_falling := slope(high) < 0) & (high < _MAX_MARGIN)).any()):
        low, high = torch.where(is_falling, high, low), torch.where(is_falling, 2 * high, high)
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
