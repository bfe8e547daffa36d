"""Conditional risks on a finite output space, as functions of scores, with exact gradient and Hessian.

For label probabilities p every form's conditional risk is a weighted sum of φ over margins,

    R(h; p) = Σ_k a_k φ(m_k(h)),        a = W p ≥ 0,

where h holds a score for each output, and the form declares its margins m (`Form.margins`). Everything here is batched: many
distributions are looked at in one call.
"""

from dataclasses import dataclass
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

    @property
    def coefficients(self) -> Tensor:
        """a = W p, (B, K)."""
        return self.probabilities @ self.system.weights.T

    def value(self, theta: Tensor) -> Tensor:
        """(B,): R(θ; p)."""
        return (self.coefficients * self.surrogate._value(self.system.margins(theta))).sum(-1)

    def expand(self, theta: Tensor) -> Expansion:
        """R with exact gradient and Hessian."""
        margins, jacobian, parts = self.system.derivatives(theta)
        weight = self.coefficients
        slopes = weight * self.surrogate._derivative(margins)
        bends = weight * self.surrogate._curvature(margins)
        hessian = torch.einsum("bk,bkd,bke->bde", bends, jacobian, jacobian) + self.system.weighted_hessian(parts, slopes)
        value = (weight * self.surrogate._value(margins)).sum(-1)
        return Expansion(value, torch.einsum("bk,bkd->bd", slopes, jacobian), hessian)
