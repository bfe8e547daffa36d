"""The worst-case power bound of a loss: target regret ≤ constant · (surrogate regret)^exponent."""

import math
from dataclasses import dataclass

import numpy as np
import torch

from linearcore.analysis._counterexample import ROUNDING, Counterexample
from linearcore.analysis._rate import rate
from linearcore.analysis._transform import transform_parts
from linearcore.surrogates import Surrogate

#: Slopes T'(0) below this are taken for 0.
_FLAT = 1e-7
#: Values of t at which the constant of a binary bound is computed.
_GRID = np.concatenate([np.geomspace(1e-4, 1, 2001), np.linspace(0.001, 1, 1000)])


@dataclass(frozen=True)
class WorstCase:
    """Target regret ≤ constant · (surrogate regret)^exponent, with the smallest constant that is known.

    Attributes:
        exponent: 1 for a linear bound, ½ for a square-root bound.
        constant: the constant.
        source: "theorem"; "computed", the smallest constant for two classes, from T on a grid; or "search", where the
            constant is a lower limit, attained by the worst distribution that was found.
    """

    exponent: float
    constant: float
    source: str

    def __str__(self) -> str:
        power = "" if self.exponent == 1 else f"^{self.exponent:.3g}"
        size = f"at least {self.constant:.4g}" if self.source == "search" else f"{self.constant:.4g}"
        return f"target regret ≤ c · (surrogate regret){power}, c = {size} ({self.source})"


def binary_worst_case(surrogate: Surrogate, bound: float | None) -> WorstCase:
    """Returns the bound for two classes, from T of scores in [−bound, bound].

    T is convex with T(0) = 0, so T(t)/t is smallest as t → 0: a positive slope there is the linear constant. Otherwise
    T(t) ≈ φ'(0)² t² / (2 φ''(0)), or a power that is measured if φ''(0) is 0.
    """
    at_zero = float(transform_parts(surrogate, torch.full((1,), 1e-12, dtype=torch.float64), bound=bound).slope)
    if at_zero > _FLAT:
        return WorstCase(1.0, 1 / at_zero, "computed")
    curvature, slope = float(surrogate.curvature(0.0)), float(surrogate.derivative(0.0))
    exponent = 0.5 if curvature > _FLAT else rate(surrogate, bound=bound).limit
    value = transform_parts(surrogate, torch.from_numpy(_GRID), bound=bound).value.numpy()
    constant = float((_GRID / value**exponent).max())
    limit = math.sqrt(2 * curvature) / -slope if curvature > _FLAT else 0.0
    return WorstCase(exponent, max(constant, limit), "computed")


def searched_worst_case(example: Counterexample) -> WorstCase | None:
    """Returns the largest constant that a search has found, of a linear bound or, if that is refuted, of a square root.

    None if the surrogate regret is zero at a positive target regret, so that there is no bound.
    """
    if min(example.ratio, *example.ratios) <= ROUNDING:
        return None
    if not example.refutes:
        return WorstCase(1.0, 1 / example.ratio, "search")
    return WorstCase(0.5, float(np.sqrt(example.regrets / example.ratios).max()), "search")
