"""The margins of a form on a finite output space, as functions of the scores h, with their derivatives.

For label probabilities p a form's conditional risk is a weighted sum of φ over margins,

    R(h; p) = Σ_k a_k φ(m_k(h)),        a = W p ≥ 0.

The margins are linear in h, or a score minus a logsumexp. Everything is batched over many h.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class MarginSystem(ABC):
    """Margins of a form on an output space, for scores h = basis · θ.

    Attributes:
        weights: W, (K, M): how much margin k counts when the label is y.
        basis: (M, D).
    """

    weights: Tensor
    basis: Tensor

    @property
    def needs_monotone(self) -> bool:
        """Whether the loss is convex for non-increasing φ only; margins that are linear in h are convex with every φ."""
        return False

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
    """m_k = h[own_k] − logsumexp h[competitors_k].

    Attributes:
        own: (K,) indices of outputs.
        competitors: (K, R) indices of outputs.
    """

    own: Tensor
    competitors: Tensor

    @property
    def needs_monotone(self) -> bool:
        return self.competitors.shape[1] > 1

    def margins(self, theta: Tensor) -> Tensor:
        scores = theta @ self.basis.T
        return scores[:, self.own] - scores[:, self.competitors].logsumexp(-1)

    def derivatives(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        scores = theta @ self.basis.T
        share = scores[:, self.competitors].softmax(-1)
        jacobian = self.basis[self.own] - torch.einsum("bkr,krd->bkd", share, self.basis[self.competitors])
        return self.margins(theta), jacobian, share

    def curve(self, parts: Tensor | None, slopes: Tensor) -> Tensor | float:
        # ∇²m = −(E[f fᵀ] − E[f] E[f]ᵀ) over the competitors' features f under their softmax.
        assert parts is not None
        features = self.basis[self.competitors]
        mean = torch.einsum("bkr,krd->bkd", parts, features)
        second = torch.einsum("bk,bkr,krd,kre->bde", slopes, parts, features, features)
        return torch.einsum("bk,bkd,bke->bde", slopes, mean, mean) - second


def pairs(own: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Every label (G,) with each of its candidates (G, C) that is another one: two equally long lists."""
    competes = candidates != own.unsqueeze(-1)
    return own.unsqueeze(-1).expand_as(candidates)[competes], candidates[competes]
