"""Conditional risks on a finite output space, as functions of scores, with exact gradient and Hessian.

For label probabilities p every form's conditional risk is a weighted sum of φ over margins,

    R(h; p) = Σ_k a_k φ(m_k(h)),        a = W p ≥ 0,

where h holds a score for each output. The margins are linear in h (pairwise, centered), or a score minus a logsumexp
(logodds). Everything here is batched: many distributions are looked at in one call.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from linearcore.surrogates import Surrogate


@dataclass(frozen=True)
class MarginSystem(ABC):
    """Margins of a form on an output space, for scores h = basis · θ.

    Attributes:
        weights: W, (K, M): how much margin k counts when the label is y.
        basis: (M, D).
    """

    weights: Tensor
    basis: Tensor

    @abstractmethod
    def margins(self, theta: Tensor) -> Tensor:
        """(B, K) from θ (B, D)."""

    @abstractmethod
    def derivatives(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Margins (B, K), their Jacobian (B, K, D), and their Hessians' parts for `curve`."""

    @abstractmethod
    def curve(self, parts: Tensor | None, slopes: Tensor) -> Tensor | float:
        """(B, D, D): Σ_k slopes_k ∇²m_k."""


@dataclass(frozen=True)
class LinearMargins(MarginSystem):
    """m = rows · h.

    Attributes:
        rows: (K, M).
    """

    rows: Tensor

    def margins(self, theta: Tensor) -> Tensor:
        return theta @ (self.rows @ self.basis).T

    def derivatives(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        jacobian = self.rows @ self.basis
        return theta @ jacobian.T, jacobian.expand(theta.shape[0], -1, -1), None

    def curve(self, parts: Tensor | None, slopes: Tensor) -> Tensor | float:
        return 0.0


@dataclass(frozen=True)
class LogOddsMargins(MarginSystem):
    """m_k = h[own_k] − logsumexp h[rivals_k].

    Attributes:
        own: (K,) indices of outputs.
        rivals: (K, R) indices of outputs.
    """

    own: Tensor
    rivals: Tensor

    def margins(self, theta: Tensor) -> Tensor:
        scores = theta @ self.basis.T
        return scores[:, self.own] - scores[:, self.rivals].logsumexp(-1)

    def derivatives(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        scores = theta @ self.basis.T
        share = scores[:, self.rivals].softmax(-1)
        jacobian = self.basis[self.own] - torch.einsum("bkr,krd->bkd", share, self.basis[self.rivals])
        return self.margins(theta), jacobian, share

    def curve(self, parts: Tensor | None, slopes: Tensor) -> Tensor | float:
        # ∇²m = −(E[f fᵀ] − E[f] E[f]ᵀ) over the rivals' features f under their softmax.
        assert parts is not None
        features = self.basis[self.rivals]
        mean = torch.einsum("bkr,krd->bkd", parts, features)
        second = torch.einsum("bk,bkr,krd,kre->bde", slopes, parts, features, features)
        return torch.einsum("bk,bkd,bke->bde", slopes, mean, mean) - second


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
        hessian = torch.einsum("bk,bkd,bke->bde", bends, jacobian, jacobian) + self.system.curve(parts, slopes)
        value = (weight * self.surrogate._value(margins)).sum(-1)
        return Expansion(value, torch.einsum("bk,bkd->bd", slopes, jacobian), hessian)
