"""Infima of risks over linear scores, attained or not.

With a monotone surrogate the infimum may be at infinity. If scores grow in a direction that lowers no margin, the loss of
the margins that it raises converges to zero. A linear program finds all these margins at once. They are removed, and the
risk of the remaining margins has a minimum that the solver can certify.
"""

from dataclasses import dataclass, replace

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
from linearcore.forms import LinearMargins, LogOddsMargins, MarginSystem
from linearcore.surrogates import Surrogate


@dataclass(frozen=True)
class PartialLogOdds(LogOddsMargins):
    """Log-odds margins without some competitors: m_k = h[labels_k] − logsumexp of the present h[competitors_k].

    Attributes:
        present: (K, R) bool, with at least one True in every row.
    """

    present: Tensor

    def margins(self, theta: Tensor) -> Tensor:
        scores = theta @ self.basis.T
        return scores[:, self.labels] - self._competitors(scores).logsumexp(-1)

    def derivatives(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        scores = theta @ self.basis.T
        weight = self._competitors(scores).softmax(-1)
        jacobian = self.basis[self.labels] - torch.einsum("bkr,krd->bkd", weight, self.basis[self.competitors])
        return self.margins(theta), jacobian, weight

    def _competitors(self, scores: Tensor) -> Tensor:
        return scores[:, self.competitors].masked_fill(~self.present, -torch.inf)


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
    system = _select(_margins_at_inputs(problem, design), is_positive)
    coefficients = coefficients[is_positive]
    if surrogate.is_monotone and surrogate.vanishes and len(coefficients):
        system, is_finite = _remove_infinite(system)
        coefficients = coefficients[is_finite]
    if not len(coefficients):
        return 0.0, 0.0
    system = replace(system, weights=torch.eye(len(coefficients), dtype=torch.float64))
    risk = Risk(surrogate, system, coefficients.unsqueeze(0))
    start = coefficients.new_zeros(1, system.basis.shape[1])
    solution = minimise(risk, start) if surrogate.is_c1 else minimise_kinked(risk, None)
    require_solved(solution)
    return float(solution.value), float(solution.residual)


def _margins_at_inputs(problem: Problem, design: Tensor) -> MarginSystem:
    """Returns the margins of the form at every input, one row per (input, margin), with scores linear in the design."""
    system, (inputs, size) = problem.system, (len(design), problem.space.size)
    if isinstance(system, LinearMargins):
        directions = _kron(design, system.rows @ problem.basis)
        return LinearMargins(system.weights, directions, torch.eye(len(directions), dtype=torch.float64))
    if not isinstance(system, LogOddsMargins):
        must, advice = "have linear or log-odds margins", "use 'pairwise', 'centered' or 'logodds'"
        raise ValueError(complaint("form", must, type(system).__name__, advice))
    first = size * torch.arange(inputs).repeat_interleave(len(system.labels))
    competitors = system.competitors.repeat(inputs, 1) + first.unsqueeze(-1)
    scores = _kron(design, problem.basis)
    return PartialLogOdds(
        system.weights, scores, system.labels.repeat(inputs) + first, competitors, torch.ones_like(competitors).bool()
    )


def _kron(left: Tensor, right: Tensor) -> Tensor:
    """Returns the Kronecker product; torch.kron raises for some one-column matrices."""
    rows, columns = len(left) * len(right), left.shape[1] * right.shape[1]
    return torch.einsum("nr,kd->nkrd", left, right).reshape(rows, columns)


def _select(system: MarginSystem, mask: Tensor) -> MarginSystem:
    """Returns the margins selected by a mask (K,)."""
    if isinstance(system, LinearMargins):
        return replace(system, basis=system.basis[mask], rows=torch.eye(int(mask.sum()), dtype=torch.float64))
    assert isinstance(system, PartialLogOdds)
    return replace(system, labels=system.labels[mask], competitors=system.competitors[mask], present=system.present[mask])


def _remove_infinite(system: MarginSystem) -> tuple[MarginSystem, Tensor]:
    """Returns the margins that stay finite if all others go to +∞, and the mask (K,) of these margins.

    A log-odds margin that stays finite may lose some of its competitors.
    """
    if isinstance(system, LinearMargins):
        is_finite = ~_can_grow(system.basis)
        return _select(system, is_finite), is_finite
    assert isinstance(system, PartialLogOdds)
    differences = system.basis[system.labels].unsqueeze(1) - system.basis[system.competitors]
    present = ~_can_grow(differences.flatten(0, 1)).reshape(system.competitors.shape)
    is_finite = present.any(-1)
    return _select(replace(system, present=present), is_finite), is_finite


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
