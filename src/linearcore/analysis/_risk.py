"""Conditional risks on a finite output space, as functions of scores, with exact gradient and Hessian.

For label probabilities p the conditional risk of every form is a weighted sum of φ over margins,

    R(h; p) = Σ_k a_k φ(m_k(h)),        a = W p ≥ 0,

where h has one score for each output, and `Form.margins` defines the margins m. All functions take batches of distributions.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from linearcore.forms import MarginSystem
from linearcore.surrogates import Surrogate


class Expansion(NamedTuple):
    """R and its derivatives at θ: value (B,), gradient (B, D), Hessian (B, D, D)."""

    value: Tensor
    gradient: Tensor
    hessian: Tensor


@dataclass(frozen=True)
class Risk:
    """R(θ; p) for a batch of distributions.

    Attributes:
        surrogate: φ.
        system: the form's margins.
        probabilities: (B, M).
    """

    surrogate: Surrogate
    system: MarginSystem
    probabilities: Tensor

    @classmethod
    def with_coefficients(cls, surrogate: Surrogate, system: MarginSystem, coefficients: Tensor) -> "Risk":
        """Returns Σ_k a_k φ(m_k(θ)) with given coefficients a (K,) instead of label probabilities."""
        return cls(surrogate, replace(system, weights=coefficients.unsqueeze(-1)), coefficients.new_ones(1, 1))

    @property
    def coefficients(self) -> Tensor:
        """Coefficients a = W p, (B, K)."""
        return self.probabilities @ self.system.weights.T

    def value(self, theta: Tensor) -> Tensor:
        """Returns R(θ; p), (B,)."""
        return (self.coefficients * self.surrogate._value(self.system.margins(theta))).sum(-1)

    def expand(self, theta: Tensor) -> Expansion:
        """Returns R with exact gradient and Hessian."""
        margins, jacobian, parts = self.system.derivatives(theta)
        weight = self.coefficients
        slopes = weight * self.surrogate._derivative(margins)
        curvatures = weight * self.surrogate._curvature(margins)
        hessian = torch.einsum("bk,bkd,bke->bde", curvatures, jacobian, jacobian) + self.system.weighted_hessian(
            parts, slopes
        )
        value = (weight * self.surrogate._value(margins)).sum(-1)
        return Expansion(value, torch.einsum("bk,bkd->bd", slopes, jacobian), hessian)
