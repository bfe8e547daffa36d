"""Convex solver: damped Newton steps, a logarithmic barrier for constraints, and an optimality residual for every solution.

It minimises R(θ), over a cone Cθ ≥ 0 if one is given. A logarithmic barrier finds the face of the cone that contains the
minimum. Newton steps within this face then compute the minimum to full precision. The solution is certified by the
Karush–Kuhn–Tucker conditions, with multipliers λ of the active constraints:

    residual = ‖∇R − Cᵀλ‖,      λ ≥ 0,      Cθ ≥ 0.

R is convex, so no other point is better by more than residual × distance. A solution counts as converged only if all three
hold. If the minimum is at infinity, because some labels have probability 0, the error of the value is the tail of φ: full
precision for exponential tails, about √residual for tails like 1/u.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from linearcore._extras import require
from linearcore.analysis._risk import Risk

#: Largest residual of a converged solution. Risks are of order 1.
TOLERANCE = 1e-9
#: Weights μ of the barrier, decreasing.
_BARRIERS = tuple(10.0**-power for power in range(1, 12, 2))
#: A constraint is active if its slack is below √μ: the slack of an active constraint with multiplier λ is μ/λ.
_ACTIVE_SLACK = _BARRIERS[-1] ** 0.5


@dataclass(frozen=True)
class Solution:
    """A batch of minima with their residuals.

    Attributes:
        theta: (B, D) minimisers.
        value: (B,) R at theta.
        residual: (B,) norm of the gradient of the Lagrangian; inf if a multiplier or a slack is negative.
    """

    theta: Tensor
    value: Tensor
    residual: Tensor

    @property
    def converged(self) -> Tensor:
        """(B,) whether the residual is at most `TOLERANCE`."""
        return self.residual <= TOLERANCE


def minimise(risk: Risk, start: Tensor, cone: Tensor | None = None) -> Solution:
    """Minimises R over θ (B, D) from `start`, subject to `cone` (C, D) · θ ≥ 0 if it is given.

    `start` must be strictly inside the cone.
    """
    if cone is None or not cone.shape[0]:
        return _descend(risk, start)
    theta = start
    for barrier in _BARRIERS:
        theta, _ = _newton(risk, theta, cone, barrier, steps=40, tolerance=0.1 * barrier)
    return _polish(risk, theta, cone)


def minimise_in_polytope(risk: Risk, start: Tensor, rows: Tensor, offset: float | Tensor, radius: float) -> Solution:
    """Minimises R over θ (B, D) with `rows` (C, D) · θ + `offset` ≥ 0, from `start` strictly inside.

    The residual is a bound of the error of the value. With multipliers μ/slack the Lagrangian is R − Cμ at θ, its gradient
    is g, and it is convex: no feasible point within `radius` of θ is better by more than Cμ + radius·‖g‖. At small μ
    rounding makes ‖g‖ large again, so the best μ is kept.
    """
    theta, best = start, Solution(start, risk.value(start), torch.full_like(start[:, 0], torch.inf))
    for barrier in _BARRIERS:
        theta, norm = _newton(risk, theta, rows, barrier, offset=offset, steps=100, tolerance=0.1 * barrier)
        error = len(rows) * barrier + radius * norm
        is_better = error < best.residual
        best = Solution(
            torch.where(is_better.unsqueeze(-1), theta, best.theta),
            torch.where(is_better, risk.value(theta), best.value),
            torch.where(is_better, error, best.residual),
        )
    return best


def _descend(risk: Risk, start: Tensor) -> Solution:
    no_cone = start.new_zeros(0, start.shape[1])
    theta, residual = _newton(risk, start, no_cone, 0.0, steps=400, tolerance=1e-3 * TOLERANCE)
    return Solution(theta, risk.value(theta), residual)


def _polish(risk: Risk, theta: Tensor, cone: Tensor) -> Solution:
    """Minimises within the face of the active constraints, and changes the face until no multiplier or slack is negative."""
    is_active = theta @ cone.T <= _ACTIVE_SLACK
    best = Solution(theta.clone(), risk.value(theta), torch.full_like(theta[:, 0], torch.inf))
    for _ in range(2 * cone.shape[0] + 2):
        unsolved = (~best.converged).nonzero().squeeze(-1)
        if not len(unsolved):
            break
        for face in torch.unique(is_active[unsolved], dim=0):
            rows = unsolved[(is_active[unsolved] == face).all(-1)]
            row_risk = replace(risk, probabilities=risk.probabilities[rows])
            solution, is_active[rows] = _minimise_in_face(row_risk, theta[rows], cone, face)
            best.theta[rows], best.value[rows], best.residual[rows] = solution.theta, solution.value, solution.residual
    return best


def _minimise_in_face(risk: Risk, theta: Tensor, cone: Tensor, face: Tensor) -> tuple[Solution, Tensor]:
    """Returns the minima within one face, and the next face to try for each row."""
    equalities = cone[face]
    rank = int(torch.linalg.matrix_rank(equalities)) if len(equalities) else 0
    null_space = torch.linalg.svd(equalities)[2][rank:].T if rank else torch.eye(cone.shape[1], dtype=cone.dtype)
    face_risk = replace(risk, system=replace(risk.system, basis=risk.system.basis @ null_space))
    solution = _descend(face_risk, theta @ null_space)
    minimiser = solution.theta @ null_space.T
    multipliers = minimiser.new_zeros(len(minimiser), cone.shape[0])
    if rank:
        multipliers[:, face] = _multipliers(equalities, risk.expand(minimiser).gradient)
    slack = (minimiser @ cone.T).masked_fill(face, 0.0)
    is_infeasible, is_negative = slack < -1e-12, multipliers < -TOLERANCE
    residual = solution.residual.masked_fill((is_infeasible | is_negative).any(-1), torch.inf)
    return Solution(minimiser, solution.value, residual), (face | is_infeasible) & ~is_negative


def _multipliers(equalities: Tensor, gradient: Tensor) -> Tensor:
    """Returns λ (B, E) with Eᵀλ = gradient; a non-negative λ if the equalities are linearly dependent."""
    if torch.linalg.matrix_rank(equalities) == len(equalities):
        solution: Tensor = torch.linalg.lstsq(equalities.T, gradient.T).solution.T
        return solution
    require("scipy", extra="lab")
    from scipy.optimize import nnls

    pairs = [nnls(equalities.T.numpy(), row.numpy()) for row in gradient]
    # If there is no non-negative solution, a negative multiplier is returned.
    return torch.stack([torch.as_tensor(x) - (0.0 if error <= TOLERANCE else 1.0) for x, error in pairs])


def _newton(
    risk: Risk,
    theta: Tensor,
    cone: Tensor,
    barrier: float,
    *,
    steps: int,
    tolerance: float,
    offset: float | Tensor = 0.0,
) -> tuple[Tensor, Tensor]:
    """Performs Levenberg–Marquardt steps until the norm of the gradient is at most `tolerance`; returns θ and the norm.

    The damping decreases after a step that lowers the objective, and increases otherwise. It is necessary in the linear
    core, where the Hessian is zero.
    """
    damping = theta.new_full((len(theta),), 1e-3)
    eye = torch.eye(theta.shape[1], dtype=theta.dtype)
    value, gradient, hessian = _objective(risk, theta, cone, barrier, offset)
    for _ in range(steps):
        norm = gradient.norm(dim=-1)
        if bool((norm <= tolerance).all()) or not theta.shape[1]:
            break
        # A singular matrix gives a step that is not finite. It is rejected, and the damping increases.
        step = torch.linalg.solve_ex(hessian + damping.view(-1, 1, 1) * eye, -gradient.unsqueeze(-1)).result.squeeze(-1)
        trial = theta + step * _step_fraction(theta, step, cone, offset)
        trial_value, trial_gradient, trial_hessian = _objective(risk, trial, cone, barrier, offset)
        # If the values are equal up to rounding, the norms of the gradients are compared.
        is_equal = (trial_value - value).abs() <= 1e-14 * value.abs()
        is_better = torch.where(is_equal, trial_gradient.norm(dim=-1) < norm, trial_value < value)
        theta = torch.where(is_better.view(-1, 1), trial, theta)
        value = torch.where(is_better, trial_value, value)
        gradient = torch.where(is_better.view(-1, 1), trial_gradient, gradient)
        hessian = torch.where(is_better.view(-1, 1, 1), trial_hessian, hessian)
        damping = torch.where(is_better, damping * 0.1, damping * 8).clamp(1e-15, 1e12)
    return theta, gradient.norm(dim=-1)


def _objective(
    risk: Risk, theta: Tensor, cone: Tensor, barrier: float, offset: float | Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns R − μ Σ log(Cθ + offset) with gradient and Hessian."""
    value, gradient, hessian = risk.expand(theta)
    if barrier:
        slack = theta @ cone.T + offset
        value = value - barrier * slack.log().sum(-1)
        gradient = gradient - (barrier / slack) @ cone
        hessian = hessian + torch.einsum("cd,ce,bc->bde", cone, cone, barrier / slack.square())
    return value, gradient, hessian


def _step_fraction(theta: Tensor, step: Tensor, cone: Tensor, offset: float | Tensor) -> Tensor:
    """Returns the fraction (B, 1) of the step that stays strictly inside the constraints."""
    if not cone.shape[0]:
        return torch.ones_like(theta[:, :1])
    slack, change = theta @ cone.T + offset, step @ cone.T
    limit = torch.where(change < 0, -slack / change, torch.inf).amin(-1, keepdim=True)
    return (0.99 * limit).clamp(max=1.0)
