"""Least risks of bounded scores: at single inputs, and of linear scores on a box of features.

With bound Λ no margin of the form exceeds Λ. For two classes that is |h(x)| ≤ Λ, for "centered" s_v ≥ s̄ − Λ. Linear scores
keep to this on the whole box [−1, 1]^d of features if each margin m_k(x) = b_k + ⟨w_k, x⟩ has b_k + ‖w_k‖₁ ≤ Λ. Constant
scores are among them, so at every input of the box exactly the scores with margins of at most Λ occur.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from linearcore._checks import complaint
from linearcore.analysis._kinked import minimise_kinked
from linearcore.analysis._minimum import NotSolvedError
from linearcore.analysis._problem import Problem
from linearcore.analysis._risk import Risk
from linearcore.analysis._solve import Solution, minimise_in_polytope
from linearcore.analysis._transform import transform_parts
from linearcore.surrogates import Surrogate

#: Largest error of a minimum that is accepted.
_LARGEST_ERROR = 1e-5


@dataclass(frozen=True)
class BoundedScores:
    """The scores with margins of at most `bound`, for a surrogate and a multi-class form.

    Raises:
        ValueError: if the margins of the form are not linear in the scores.
    """

    surrogate: Surrogate
    problem: Problem
    bound: float

    def __post_init__(self) -> None:
        if self.problem.multiclass_form is None or self.problem.system.directions.shape[1] != 1:
            must = "be a multi-class form with margins that are linear in the scores"
            raise ValueError(
                complaint("form", must, repr(self.problem.form_name), "use 'centered', or two classes with any form")
            )
        self.problem.require_convex(self.surrogate)

    @property
    def margins(self) -> Tensor:
        """(K, D) distinct margins as linear functions of the parameters θ of the scores."""
        rows: Tensor = self.problem.system.directions[:, 0].unique(dim=0)
        return rows

    @property
    def corners(self) -> Tensor:
        """(C, C) extreme scores: one class as high, and all others as low, as the bound allows."""
        size = self.problem.space.size
        directions = size * torch.eye(size, dtype=torch.float64) - 1
        return directions * (self.bound / (directions[0] @ self.problem.basis @ self.margins.T).max())

    def losses(self, scores: Tensor, labels: Tensor) -> Tensor:
        """Returns the losses (N,) of scores (N, C) and labels (N,)."""
        targets = F.one_hot(labels, self.problem.space.size).double()
        return Risk(self.surrogate, self.problem.system, targets).value(scores @ self.problem.basis)

    def loss_range(self) -> tuple[float, float]:
        """Returns the smallest and the largest loss. The loss is convex in the scores, so the largest is at a corner."""
        size = self.problem.space.size
        labels = torch.arange(size)
        largest = self.losses(self.corners.repeat_interleave(size, 0), labels.repeat(size)).max()
        return float(self.pointwise(torch.eye(size, dtype=torch.float64))[0].min()), float(largest)

    def pointwise(self, probabilities: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the least conditional risks (B,) and minimising scores (B, C), for label probabilities (B, C)."""
        if self.problem.is_binary:
            more = probabilities[:, 1] - probabilities[:, 0]
            parts = transform_parts(self.surrogate, more.abs().clamp(max=1), bound=self.bound)
            share = (parts.minimiser * more.sign() / self.bound).unsqueeze(-1)
            return self.surrogate._value(torch.zeros_like(more)) - parts.value, share * self.corners[1]
        rows, index = probabilities.unique(dim=0, return_inverse=True)
        risk = Risk(self.surrogate, self.problem.system, rows)
        start = rows.new_zeros(len(rows), self.problem.basis.shape[1])
        solution = self._minimise(risk, start, -self.margins, self.bound)
        return solution.value[index], (solution.theta @ self.problem.basis.T)[index]

    def linear(self, design: Tensor, masses: Tensor) -> tuple[float, float, Tensor]:
        """Minimises the risk of linear scores that keep to the bound on the box.

        Args:
            design: (N, 1 + d): ones, and features in [−1, 1].
            masses: (N, C) P(x, y).

        Returns:
            The minimum, a bound of its error, and the coefficients (1 + d, C) of the minimising scores.
        """
        margins, size = self.margins, self.problem.basis.shape[1]
        count, features = len(margins), design.shape[1] - 1
        coefficients = (masses @ self.problem.system.weights.T).reshape(-1)
        is_positive = coefficients > 0
        system = self.problem.system.at_inputs(design)
        assert system is not None
        system = system.restricted(is_positive.unsqueeze(-1))
        # The variables are θ and, for each margin and feature, a bound of the absolute value of the coefficient.
        system = replace(system, basis=F.pad(system.basis, (0, count * features)))
        risk = Risk.with_coefficients(self.surrogate, system, coefficients[is_positive])
        rows, offset = _box_constraints(margins, features, self.bound)
        start = rows.new_zeros(1, rows.shape[1])
        start[:, (1 + features) * size :] = self.bound / (2 + 2 * features)
        solution = self._minimise(risk, start, rows, offset)
        theta = solution.theta[0, : (1 + features) * size].reshape(1 + features, size)
        return float(solution.value), float(solution.residual), theta @ self.problem.basis.T

    def _minimise(self, risk: Risk, start: Tensor, rows: Tensor, offset: float | Tensor) -> Solution:
        if self.surrogate.is_c1:
            # Scores, and so all variables, are at most C·Λ in absolute value.
            radius = 2 * self.problem.space.size * self.bound * start.shape[1] ** 0.5
            solution = minimise_in_polytope(risk, start, rows, offset, radius)
        else:
            solution = minimise_kinked(risk, rows, offset)
        error = float(solution.residual.max())
        if not error <= _LARGEST_ERROR:
            raise NotSolvedError(f"the minimum over bounded scores was not certified: error up to {error:.2g}")
        return solution


def _box_constraints(margins: Tensor, features: int, bound: float) -> tuple[Tensor, Tensor]:
    """Returns rows and offset of rows · z + offset ≥ 0: a_kj ≥ |w_kj| and b_k + Σ_j a_kj ≤ bound."""
    count = len(margins)
    zeros = margins.new_zeros(count, count * features)
    eye = torch.eye(count * features, dtype=margins.dtype)
    sums = torch.eye(count, dtype=margins.dtype).repeat_interleave(features, 1)
    intercepts = torch.cat([margins, margins.new_zeros(count, features * margins.shape[1]), sums], 1)
    # Row k·d + j is the coefficient of feature j in margin k.
    slopes = torch.einsum("kd,jr->kjrd", margins, torch.eye(1 + features, dtype=margins.dtype)[1:])
    slopes = slopes.reshape(count * features, -1)
    rows = torch.cat([-intercepts, torch.cat([-slopes, eye], 1), torch.cat([slopes, eye], 1)])
    offset = torch.cat([margins.new_full((count,), bound), zeros.new_zeros(2 * count * features)])
    return rows, offset
