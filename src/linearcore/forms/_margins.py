"""Margins of a form on a finite output space, as functions of the scores h, with derivatives.

With label probabilities p, the conditional risk of a form is a weighted sum of φ over margins m_k:

    R(h; p) = Σ_k a_k φ(m_k(h)),        a = W p ≥ 0.

A margin is linear in h, or a score minus a logsumexp. All functions are batched over h.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class MarginSystem(ABC):
    """Margins of a form on an output space, for scores h = basis · θ.

    Attributes:
        weights: W, (K, M): weight of margin k for label y.
        basis: (M, D) maps parameters θ to the scores of all M outputs.
    """

    weights: Tensor
    basis: Tensor

    @property
    def needs_monotone(self) -> bool:
        """Whether convexity requires a non-increasing φ. Margins that are linear in h are convex with every convex φ."""
        return False

    @abstractmethod
    def margins(self, theta: Tensor) -> Tensor:
        """Returns the margins (B, K) for θ (B, D)."""

    @abstractmethod
    def derivatives(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Returns margins (B, K), their Jacobian (B, K, D), and the tensor that `weighted_hessian` needs."""

    @abstractmethod
    def weighted_hessian(self, softmax: Tensor | None, slopes: Tensor) -> Tensor | float:
        """Returns Σ_k slopes_k ∇²m_k, (B, D, D)."""


@dataclass(frozen=True)
class LinearMargins(MarginSystem):
    """Linear margins m = rows · h.

    Attributes:
        rows: (K, M) coefficients.
    """

    rows: Tensor

    def margins(self, theta: Tensor) -> Tensor:
        return theta @ (self.rows @ self.basis).T

    def derivatives(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        jacobian = self.rows @ self.basis
        return theta @ jacobian.T, jacobian.expand(theta.shape[0], -1, -1), None

    def weighted_hessian(self, softmax: Tensor | None, slopes: Tensor) -> Tensor | float:
        return 0.0


@dataclass(frozen=True)
class LogOddsMargins(MarginSystem):
    """Log-odds margins m_k = h[labels_k] − logsumexp h[competitors_k].

    Attributes:
        labels: (K,) indices of outputs.
        competitors: (K, R) indices of outputs.
    """

    labels: Tensor
    competitors: Tensor

    @property
    def needs_monotone(self) -> bool:
        return self.competitors.shape[1] > 1

    def margins(self, theta: Tensor) -> Tensor:
        scores = theta @ self.basis.T
        return scores[:, self.labels] - scores[:, self.competitors].logsumexp(-1)

    def derivatives(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        scores = theta @ self.basis.T
        softmax = scores[:, self.competitors].softmax(-1)
        jacobian = self.basis[self.labels] - torch.einsum("bkr,krd->bkd", softmax, self.basis[self.competitors])
        return self.margins(theta), jacobian, softmax

    def weighted_hessian(self, softmax: Tensor | None, slopes: Tensor) -> Tensor | float:
        # ∇²m = −(E[f fᵀ] − E[f] E[f]ᵀ), with expectations over the competitors' features f under their softmax.
        assert softmax is not None
        features = self.basis[self.competitors]
        mean = torch.einsum("bkr,krd->bkd", softmax, features)
        second = torch.einsum("bk,bkr,krd,kre->bde", slopes, softmax, features, features)
        return torch.einsum("bk,bkd,bke->bde", slopes, mean, mean) - second


def competitor_pairs(labels: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Returns all pairs of a label (G,) and a different candidate (G, C), as two vectors of equal length."""
    is_competitor = candidates != labels.unsqueeze(-1)
    return labels.unsqueeze(-1).expand_as(candidates)[is_competitor], candidates[is_competitor]
