"""Gradient methods on problems whose minimum is known.

`ties`: many inputs, each with its own score u_i and label bias t_i, log-uniform from 1e-10 to 0.9; the least easy inputs are
almost ties. The objective is the mean over inputs of

    r_t(u) = (1 − t)/2 · φ(−u) + (1 + t)/2 · φ(u),

and each minimiser is the root of a monotone scalar function, found by bisection to the last bit. A linear core has r_t' = −t
on [−τ, τ]: gradient descent with step size η crosses it in τ/(ηt) steps, and the mean over all t attains the rate O(1/T).

`separable`: one input without noise, t = 1. The infimum is 0, or is attained.

A regularised objective adds λ/2 · u².
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore.surrogates import Surrogate
from linearcore_paper.experiments._numbers import round_values

#: Weight of the regulariser.
LAMBDA = 0.1
#: The slope of the log-log fit is taken over the last part of the steps.
FITTED_FROM = 1 / 10
#: Below this the excess is rounding.
ROUNDING = 1e-14


class Problem(NamedTuple):
    """Biases t of the inputs, and the weight of the regulariser."""

    t: Tensor
    ridge: float = 0.0

    def risk(self, phi: Surrogate, u: Tensor) -> Tensor:
        """Returns the risk of each input."""
        fit = (1 - self.t) / 2 * phi.value(-u) + (1 + self.t) / 2 * phi.value(u)
        return fit + self.ridge / 2 * u.square()

    def slope(self, phi: Surrogate, u: Tensor) -> Tensor:
        """Returns the derivative of the risk of each input."""
        return (1 + self.t) / 2 * phi.derivative(u) - (1 - self.t) / 2 * phi.derivative(-u) + self.ridge * u

    def optimum(self, phi: Surrogate) -> Tensor:
        """Returns the minimiser of each input by bisection; at most 2**10, where all tails are 0 up to rounding."""
        low, high = torch.zeros_like(self.t), torch.full_like(self.t, 2.0**10)
        for _ in range(120):
            middle = (low + high) / 2
            falls = self.slope(phi, middle) < 0
            low, high = torch.where(falls, middle, low), torch.where(falls, high, middle)
        return high


def ties(ridge: float = 0.0) -> Problem:
    """Returns the problem with inputs close to a tie."""
    return Problem(torch.from_numpy(np.geomspace(1e-10, 0.9, 600)), ridge)


def separable() -> Problem:
    """Returns the problem with one input and no noise."""
    return Problem(torch.ones(1, dtype=torch.float64))


class Path(NamedTuple):
    """Excess risk and distance to the optimum after each step."""

    excess: npt.NDArray[np.float64]
    distance: npt.NDArray[np.float64]


def descend(phi: Surrogate, problem: Problem, method: str, steps: int) -> Path:
    """Runs a method from u = 0.

    Args:
        phi: the surrogate.
        problem: the problem.
        method: "gradient" (step size 1/L), "nesterov" (1/L and momentum, constant if the problem is regularised), or
            "subgradient" (1/√k, and 1/(λk) if the problem is regularised).
        steps: number of steps.
    """
    best = problem.optimum(phi)
    least = problem.risk(phi, best)
    ridge, smoothness = problem.ridge, phi.smoothness + problem.ridge
    momentum = (1 - math.sqrt(ridge / smoothness)) / (1 + math.sqrt(ridge / smoothness)) if ridge else None
    u = torch.zeros_like(problem.t)
    ahead, weight = u, 1.0
    excess, distance = np.empty(steps), np.empty(steps)
    for step in range(1, steps + 1):
        size = 1 / smoothness if method != "subgradient" else 1 / (ridge * step) if ridge else 1 / math.sqrt(step)
        new = ahead - size * problem.slope(phi, ahead)
        if method == "nesterov":
            grown = (1 + math.sqrt(1 + 4 * weight**2)) / 2
            factor = (weight - 1) / grown if momentum is None else momentum
            ahead, weight = new + factor * (new - u), grown
        else:
            ahead = new
        u = new
        excess[step - 1] = (problem.risk(phi, u) - least).mean()
        distance[step - 1] = (u - best).square().mean().sqrt()
    return Path(excess, distance)


def exponent(values: npt.NDArray[np.float64]) -> float | None:
    """Returns −slope of log excess against log step over the last steps; None if the excess reached rounding before."""
    steps = np.arange(1, len(values) + 1)
    late = steps >= FITTED_FROM * len(values)
    if values[late].min() < ROUNDING:
        return None
    return -float(np.polyfit(np.log(steps[late]), np.log(values[late]), 1)[0])


def factor(values: npt.NDArray[np.float64]) -> float:
    """Returns the factor by which the distance shrinks per step, fitted between 1e-6 and 1e-12."""
    steps = np.arange(1, len(values) + 1)
    fitted = (values < 1e-6) & (values > 1e-12)
    return float(np.exp(np.polyfit(steps[fitted], np.log(values[fitted]), 1)[0]))


def guarantee(phi: Surrogate, method: str, steps: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Returns the theory's bound on the excess on `ties`: L R²/(2T), or 2 L R²/(T + 1)² with momentum."""
    size = phi.smoothness * float(ties().optimum(phi).square().mean())
    return size / (2 * steps) if method == "gradient" else 2 * size / (steps + 1) ** 2


def fails_from(phi: Surrogate, size: float) -> float | None:
    """Returns the least distance from which 50 steps of this size end with a larger risk; None up to distance 100.

    The problem has one input with t = 0.5, so both tails matter.
    """
    problem = Problem(torch.full((1,), 0.5, dtype=torch.float64))
    starts = torch.linspace(0, 100, 2001, dtype=torch.float64)
    u = starts.clone()
    for _ in range(50):
        u = u - size * problem.slope(phi, u)
        # Beyond this a run does not come back, and larger numbers would overflow.
        u = u.clamp(-1e60, 1e60)
    grows = ~(problem.risk(phi, u) <= problem.risk(phi, starts))
    return round_values(starts[grows].min(), 4) if bool(grows.any()) else None


def thinned(path: npt.NDArray[np.float64]) -> dict[str, Any]:
    """Returns about 60 points of a path, evenly spaced on a log axis."""
    steps = np.unique(np.geomspace(1, len(path), 60).astype(int))
    return {"step": steps.tolist(), "excess": round_values(np.maximum(path[steps - 1], 1e-18), 4)}
