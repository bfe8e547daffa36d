"""Infima of risks over linear scores, attained or not.

With a monotone surrogate the infimum may be at infinity. If scores grow in a direction that lowers no margin, the loss of
the margins that it raises converges to zero. A linear program finds all these margins at once. They are removed, and the
risk of the remaining margins has a minimum that the solver can certify.
"""

import numpy as np
import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore._extras import require
from linearcore.analysis._kinked import minimise_kinked
from linearcore.analysis._minimum import NotSolvedError, require_solved
from linearcore.analysis._problem import Problem
from linearcore.analysis._risk import Risk
from linearcore.analysis._solve import minimise
from linearcore.forms import MarginSystem
from linearcore.surrogates import Surrogate


def infimum(surrogate: Surrogate, problem: Problem, design: Tensor, masses: Tensor) -> tuple[float, float]:
    """Returns inf over linear scores of Σ_{x,y} masses_{xy} ℓ(scores of x, y), and its optimality residual.

    Args:
        surrogate: φ.
        problem: a multi-class form on C classes.
        design: (N, R); the scores of an input are linear in its row.
        masses: (N, C), P(x, y).

    Raises:
        ValueError: if the risk is not convex, so its minimum cannot be certified.
        NotSolvedError: if the solver does not converge.
    """
    problem.require_convex(surrogate)
    coefficients = (masses @ problem.system.weights.T).reshape(-1)
    is_positive = coefficients > 0
    # Margins with coefficient 0 are removed, because they must not constrain the directions at infinity.
    system = _margins_at_inputs(problem, design)
    system = system.restricted(is_positive.unsqueeze(-1).expand(system.directions.shape[:2]))
    coefficients = coefficients[is_positive]
    if surrogate.is_monotone and surrogate.vanishes and len(coefficients):
        system, is_finite = _remove_infinite(system)
        coefficients = coefficients[is_finite]
    if not len(coefficients):
        return 0.0, 0.0
    risk = Risk.with_coefficients(surrogate, system, coefficients)
    start = coefficients.new_zeros(1, system.basis.shape[1])
    solution = minimise(risk, start) if surrogate.is_c1 else minimise_kinked(risk, None)
    require_solved(solution)
    return float(solution.value), float(solution.residual)


def _margins_at_inputs(problem: Problem, design: Tensor) -> MarginSystem:
    """Returns the margins of the form at every input, one row per (input, margin), with scores linear in the design."""
    system = problem.system.at_inputs(design)
    if system is None:
        must, advice = "have margins with `at_inputs`", "use 'pairwise', 'centered' or 'logodds'"
        raise ValueError(complaint("form", must, type(problem.system).__name__, advice))
    return system


def _remove_infinite(system: MarginSystem) -> tuple[MarginSystem, Tensor]:
    """Returns the margins that stay finite if all others go to +∞, and the mask (K,) of these margins.

    A margin that stays finite may lose some of its parts, such as competitors in log-odds.
    """
    directions = system.directions
    present = ~_can_grow(directions.flatten(0, 1)).reshape(directions.shape[:2])
    return system.restricted(present), present.any(-1)


def _can_grow(directions: Tensor) -> Tensor:
    """Returns (K,): whether ⟨directions_k, θ⟩ > 0 for some θ with ⟨directions_j, θ⟩ ≥ 0 for all j.

        max Σ_k t_k      t_k ≤ ⟨directions_k, θ⟩,   0 ≤ t_k ≤ 1

    The sum of the θ of two margins raises both, and any θ may be scaled. So the maximum has t_k = 1 for all such margins.
    """
    require("scipy", extra="lab")
    from scipy.optimize import linprog

    rows = directions.numpy()
    margins, size = rows.shape
    objective = np.concatenate([np.zeros(size), -np.ones(margins)])
    bounds = [(None, None)] * size + [(0.0, 1.0)] * margins
    constraints = np.hstack([-rows, np.eye(margins)])
    result = linprog(objective, A_ub=constraints, b_ub=np.zeros(margins), bounds=bounds, method="highs")
    if result.status != 0:
        raise NotSolvedError(f"the linear program for margins at infinity was not solved: {result.message}")
    return torch.tensor(result.x[size:] > 0.5)
