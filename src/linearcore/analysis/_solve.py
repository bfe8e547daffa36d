"""The convex solver of the lab: damped Newton steps, a barrier for constraints, and a certificate for every answer.

It minimises R(θ) over a cone Cθ ≥ 0, or everywhere. A logarithmic barrier leads to the face of the cone on which the minimum
lies; Newton steps within that face then find it to the last digits. The certificate is the Karush–Kuhn–Tucker system: with
multipliers λ of the constraints that hold with equality,

    residual = ‖∇R − Cᵀλ‖,      λ ≥ 0,      Cθ ≥ 0.

R is convex, so these prove that no other point is better by more than residual × distance. Nothing is called solved unless
all three hold. Where the minimum lies at infinity, under labels without probability, the value is as close to it as the
tail of φ is to zero: to the last digits for exponential tails, to about √residual for tails like 1/u.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from linearcore._extras import require
from linearcore.analysis._risk import Risk

#: Residual that counts as solved. Risks are of order 1.
TOLERANCE = 1e-9
#: The barrier leaves a slack of μ/λ where a constraint pushes with λ, so that √μ divides pushing from not touching.
_BARRIERS = tuple(10.0**-power for power in range(1, 12, 2))
_TIGHT = _BARRIERS[-1] ** 0.5


@dataclass(frozen=True)
class Solution:
    """A batch of minima with their certificates.

    Attributes:
        theta: (B, D).
        value: (B,): R at theta.
        residual: (B,): norm of the gradient of the Lagrangian; inf where a multiplier or a constraint has the wrong sign.
    """

    theta: Tensor
    value: Tensor
    residual: Tensor

    @property
    def converged(self) -> Tensor:
        """(B,): whether the certificate holds."""
        return self.residual <= TOLERANCE


def minimise(risk: Risk, start: Tensor, cone: Tensor | None = None) -> Solution:
    """Minimises R over θ (B, D) from `start`, within `cone` (C, D) · θ ≥ 0 where one is given.

    `start` must lie strictly inside the cone.
    """
    if cone is None or not cone.shape[0]:
        return _descend(risk, start)
    theta = start
    for barrier in _BARRIERS:
        theta, _ = _newton(risk, theta, cone, barrier, steps=40, enough=0.1 * barrier)
    return _polish(risk, theta, cone)


def _descend(risk: Risk, start: Tensor) -> Solution:
    theta, residual = _newton(risk, start, start.new_zeros(0, start.shape[1]), 0.0, steps=400, enough=1e-3 * TOLERANCE)
    return Solution(theta, risk.value(theta), residual)


def _polish(risk: Risk, theta: Tensor, cone: Tensor) -> Solution:
    """Minimises within the face that each row of `theta` is next to, and moves to another face until the signs are right."""
    tight = theta @ cone.T <= _TIGHT
    best = Solution(theta.clone(), risk.value(theta), torch.full_like(theta[:, 0], torch.inf))
    for _ in range(2 * cone.shape[0] + 2):
        open_rows = (~best.converged).nonzero().squeeze(-1)
        if not len(open_rows):
            break
        for face in torch.unique(tight[open_rows], dim=0):
            rows = open_rows[(tight[open_rows] == face).all(-1)]
            part = replace(risk, probabilities=risk.probabilities[rows])
            found, tight[rows] = _within_face(part, theta[rows], cone, face)
            best.theta[rows], best.value[rows], best.residual[rows] = found.theta, found.value, found.residual
    return best


def _within_face(risk: Risk, theta: Tensor, cone: Tensor, face: Tensor) -> tuple[Solution, Tensor]:
    """The minima within one face, and the face that each row should look at next if its signs are wrong."""
    equalities = cone[face]
    rank = int(torch.linalg.matrix_rank(equalities)) if len(equalities) else 0
    free = torch.linalg.svd(equalities)[2][rank:].T if rank else torch.eye(cone.shape[1], dtype=cone.dtype)
    found = _descend(replace(risk, system=replace(risk.system, basis=risk.system.basis @ free)), theta @ free)
    inside = found.theta @ free.T
    multipliers = inside.new_zeros(len(inside), cone.shape[0])
    if rank:
        multipliers[:, face] = _multipliers(equalities, risk.expand(inside).gradient)
    slack = (inside @ cone.T).masked_fill(face, 0.0)
    wrong = (multipliers < -TOLERANCE) | (slack < -1e-12)
    residual = found.residual.masked_fill(wrong.any(-1), torch.inf)
    return Solution(inside, found.value, residual), (face | (slack < -1e-12)) & ~(multipliers < -TOLERANCE)


def _multipliers(equalities: Tensor, gradient: Tensor) -> Tensor:
    """(B, E): λ with Eᵀλ = gradient, non-negative where dependent equalities leave a choice."""
    if torch.linalg.matrix_rank(equalities) == len(equalities):
        solution: Tensor = torch.linalg.lstsq(equalities.T, gradient.T).solution.T
        return solution
    require("scipy", extra="lab")
    from scipy.optimize import nnls

    pairs = [nnls(equalities.T.numpy(), row.numpy()) for row in gradient]
    # What no non-negative choice explains must count as a wrong sign.
    return torch.stack([torch.as_tensor(x) - (0.0 if short <= TOLERANCE else 1.0) for x, short in pairs])


def _newton(risk: Risk, theta: Tensor, cone: Tensor, barrier: float, *, steps: int, enough: float) -> tuple[Tensor, Tensor]:
    """Levenberg–Marquardt steps until the gradient's norm is at most `enough`: returns θ and that norm.

    The damping falls after a step that lowers the objective and rises after one that does not. It is what makes the straight
    core harmless, where the Hessian is zero.
    """
    damping = theta.new_full((len(theta),), 1e-3)
    eye = torch.eye(theta.shape[1], dtype=theta.dtype)
    value, gradient, hessian = _objective(risk, theta, cone, barrier)
    for _ in range(steps):
        norm = gradient.norm(dim=-1)
        if bool((norm <= enough).all()) or not theta.shape[1]:
            break
        # A singular matrix gives a step that is not finite, which is not better, which raises the damping.
        step = torch.linalg.solve_ex(hessian + damping.view(-1, 1, 1) * eye, -gradient.unsqueeze(-1)).result.squeeze(-1)
        trial = theta + step * _room(theta, step, cone)
        trial_value, trial_gradient, trial_hessian = _objective(risk, trial, cone, barrier)
        # A gradient that shrinks is progress too, where the value has run out of digits.
        level = (trial_value - value).abs() <= 1e-14 * value.abs()
        better = torch.where(level, trial_gradient.norm(dim=-1) < norm, trial_value < value)
        theta = torch.where(better.view(-1, 1), trial, theta)
        value = torch.where(better, trial_value, value)
        gradient = torch.where(better.view(-1, 1), trial_gradient, gradient)
        hessian = torch.where(better.view(-1, 1, 1), trial_hessian, hessian)
        damping = torch.where(better, damping * 0.1, damping * 8).clamp(1e-15, 1e12)
    return theta, gradient.norm(dim=-1)


def _objective(risk: Risk, theta: Tensor, cone: Tensor, barrier: float) -> tuple[Tensor, Tensor, Tensor]:
    """R − μ Σ log(Cθ) with gradient and Hessian."""
    value, gradient, hessian = risk.expand(theta)
    if barrier:
        slack = theta @ cone.T
        value = value - barrier * slack.log().sum(-1)
        gradient = gradient - (barrier / slack) @ cone
        hessian = hessian + torch.einsum("cd,ce,bc->bde", cone, cone, barrier / slack.square())
    return value, gradient, hessian


def _room(theta: Tensor, step: Tensor, cone: Tensor) -> Tensor:
    """(B, 1): the share of the step that stays strictly inside the cone."""
    if not cone.shape[0]:
        return torch.ones_like(theta[:, :1])
    slack, change = theta @ cone.T, step @ cone.T
    reach = torch.where(change < 0, -slack / change, torch.inf).amin(-1, keepdim=True)
    return (0.99 * reach).clamp(max=1.0)
