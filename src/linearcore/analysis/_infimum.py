"""Infima of risks over linear scores, attained or not.

With monotone surrogates the infimum may lie at infinity: scores that grow in a direction which lowers no margin make the
margins that it raises cost nothing in the end. A linear program finds all such margins at once. They are left out, and what
remains has a minimum that the solver can certify.
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
    """m_k = h[own_k] − logsumexp of those h[competitors_k] that are present.

    Attributes:
        present: (K, R) booleans, at least one in every row.
    """

    present: Tensor

    def margins(self, theta: Tensor) -> Tensor:
        scores = theta @ self.basis.T
        return scores[:, self.own] - self._competitors(scores).logsumexp(-1)

    def derivatives(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        scores = theta @ self.basis.T
        share = self._competitors(scores).softmax(-1)
        jacobian = self.basis[self.own] - torch.einsum("bkr,krd->bkd", share, self.basis[self.competitors])
        return self.margins(theta), jacobian, share

    def _competitors(self, scores: Tensor) -> Tensor:
        return scores[:, self.competitors].masked_fill(~self.present, -torch.inf)


def infimum(surrogate: Surrogate, problem: Problem, design: Tensor, masses: Tensor) -> tuple[float, float]:
    """inf over linear scores of Σ_{x,y} masses_{xy} ℓ(scores of x, y), and the residual of its certificate.

    Args:
        surrogate: φ.
        problem: a multi-class form on C classes.
        design: (N, R); the scores of x are linear in its row.
        masses: (N, C).

    Raises:
        ValueError: if the risk is not convex, where no certificate would mean anything.
        NotSolvedError: if the certificate does not hold.
    """
    problem.require_convex(surrogate)
    coefficients = (masses @ problem.system.weights.T).reshape(-1)
    counted = coefficients > 0
    # A margin that carries no mass must not hold the others back.
    system = _select(_spread(problem, design), counted)
    coefficients = coefficients[counted]
    if surrogate.is_monotone and surrogate.vanishes and len(coefficients):
        system, stays = _without_escaping(system)
        coefficients = coefficients[stays]
    if not len(coefficients):
        return 0.0, 0.0
    system = replace(system, weights=torch.eye(len(coefficients), dtype=torch.float64))
    risk = Risk(surrogate, system, coefficients.unsqueeze(0))
    start = coefficients.new_zeros(1, system.basis.shape[1])
    solution = minimise(risk, start) if surrogate.is_c1 else minimise_kinked(risk, None)
    require_solved(solution)
    return float(solution.value), float(solution.residual)


def _spread(problem: Problem, design: Tensor) -> MarginSystem:
    """The margins of the form at every input: (input, margin) pairs in rows, with scores linear in the design."""
    system, (inputs, size) = problem.system, (len(design), problem.space.size)
    if isinstance(system, LinearMargins):
        directions = _kron(design, system.rows @ problem.basis)
        return LinearMargins(system.weights, directions, torch.eye(len(directions), dtype=torch.float64))
    if not isinstance(system, LogOddsMargins):
        must, advice = "have linear or log-odds margins here", "take 'pairwise', 'centered' or 'logodds'"
        raise ValueError(complaint("form", must, type(system).__name__, advice))
    first = size * torch.arange(inputs).repeat_interleave(len(system.own))
    competitors = system.competitors.repeat(inputs, 1) + first.unsqueeze(-1)
    scores = _kron(design, problem.basis)
    return PartialLogOdds(
        system.weights, scores, system.own.repeat(inputs) + first, competitors, torch.ones_like(competitors).bool()
    )


def _kron(left: Tensor, right: Tensor) -> Tensor:
    """torch.kron refuses some one-column matrices."""
    rows, columns = len(left) * len(right), left.shape[1] * right.shape[1]
    return torch.einsum("nr,kd->nkrd", left, right).reshape(rows, columns)


def _select(system: MarginSystem, chosen: Tensor) -> MarginSystem:
    """The chosen margins alone."""
    if isinstance(system, LinearMargins):
        return replace(system, basis=system.basis[chosen], rows=torch.eye(int(chosen.sum()), dtype=torch.float64))
    assert isinstance(system, PartialLogOdds)
    return replace(system, own=system.own[chosen], competitors=system.competitors[chosen], present=system.present[chosen])


def _without_escaping(system: MarginSystem) -> tuple[MarginSystem, Tensor]:
    """The margins that stay finite when all those that can have gone to +∞, and which (K,) they are.

    A log-odds margin that cannot go there can still lose competitors on the way.
    """
    if isinstance(system, LinearMargins):
        stays = ~_escaping(system.basis)
        return _select(system, stays), stays
    assert isinstance(system, PartialLogOdds)
    differences = system.basis[system.own].unsqueeze(1) - system.basis[system.competitors]
    present = ~_escaping(differences.flatten(0, 1)).reshape(system.competitors.shape)
    stays = present.any(-1)
    return _select(replace(system, present=present), stays), stays


def _escaping(directions: Tensor) -> Tensor:
    """(K,): whether ⟨directions_k, θ⟩ > 0 for some θ with ⟨directions_j, θ⟩ ≥ 0 for all j.

        max Σ_k t_k      t_k ≤ ⟨directions_k, θ⟩,   0 ≤ t_k ≤ 1

    The θ of two margins add up to one for both, and any θ may be stretched, so the maximum has t_k = 1 for all that can.
    """
    require("scipy", extra="lab")
    from scipy.optimize import linprog

    rows = directions.numpy()
    margins, size = rows.shape
    objective = np.concatenate([np.zeros(size), -np.ones(margins)])
    bounds = [(None, None)] * size + [(0.0, 1.0)] * margins
    above = np.hstack([-rows, np.eye(margins)])
    found = linprog(objective, A_ub=above, b_ub=np.zeros(margins), bounds=bounds, method="highs")
    if found.status != 0:
        raise NotSolvedError(f"the linear program for margins at infinity was not solved: {found.message}")
    return torch.tensor(found.x[size:] > 0.5)
