"""Margins of a form on a finite output space, as functions of the scores h, with derivatives.

With label probabilities p, the conditional risk of a form is a weighted sum of φ over margins m_k:

    R(h; p) = Σ_k a_k φ(m_k(h)),        a = W p ≥ 0.

A margin is linear in h, or a score minus a logsumexp. All functions are batched over h.

What the analysis needs beyond values and derivatives, a system declares: whether a linear program can minimise it
(`is_linear`), and for minima over linear scores of many inputs `at_inputs`, `directions` and `restricted`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor


@dataclass(frozen=True)
class MarginSystem(ABC):
    """Margins of a form on an output space, for scores h = basis · θ.

    Attributes:
        weights: W, (K, M): weight of margin k for label y.
        basis: (M, D) maps parameters θ to the scores of all M outputs.
    """

    #: Whether the margins are linear in θ, with coefficients `directions[:, 0]`.
    is_linear: ClassVar[bool] = False
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

    def at_inputs(self, design: Tensor) -> "MarginSystem | None":
        """Returns the margins at each of N inputs, for scores that are linear in the rows of `design` (N, R).

        One row per input and margin. None if the system does not support it; else it has `directions` and `restricted`.
        """
        return None

    @property
    def directions(self) -> Tensor:
        """(K, P, D): margin k grows to +∞ along θ if and only if ⟨directions_kp, θ⟩ > 0 for all its P parts."""
        raise NotImplementedError

    def restricted(self, present: Tensor) -> "MarginSystem":
        """Returns the margins without the parts that are False in `present` (K, P), and without margins with no part."""
        raise NotImplementedError


@dataclass(frozen=True)
class LinearMargins(MarginSystem):
    """Linear margins m = rows · h.

    Attributes:
        rows: (K, M) coefficients.
    """

    is_linear: ClassVar[bool] = True
    rows: Tensor

    def margins(self, theta: Tensor) -> Tensor:
        return theta @ (self.rows @ self.basis).T

    def derivatives(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        jacobian = self.rows @ self.basis
        return theta @ jacobian.T, jacobian.expand(theta.shape[0], -1, -1), None

    def weighted_hessian(self, softmax: Tensor | None, slopes: Tensor) -> Tensor | float:
        return 0.0

    def at_inputs(self, design: Tensor) -> "LinearMargins":
        directions = _kron(design, self.rows @ self.basis)
        return LinearMargins(self.weights, directions, torch.eye(len(directions), dtype=directions.dtype))

    @property
    def directions(self) -> Tensor:
        return (self.rows @ self.basis).unsqueeze(1)

    def restricted(self, present: Tensor) -> "LinearMargins":
        return replace(self, rows=self.rows[present.any(-1)])


@dataclass(frozen=True)
class LogOddsMargins(MarginSystem):
    """Log-odds margins m_k = h[labels_k] − logsumexp h[competitors_k].

    Attributes:
        labels: (K,) indices of outputs.
        competitors: (K, R) indices of outputs.
        present: (K, R) bool, with at least one True in every row: the competitors in the logsumexp. None for all of them.
    """

    labels: Tensor
    competitors: Tensor
    present: Tensor | None = None

    @property
    def needs_monotone(self) -> bool:
        return self.competitors.shape[1] > 1

    def margins(self, theta: Tensor) -> Tensor:
        scores = theta @ self.basis.T
        return scores[:, self.labels] - self._competitor_scores(scores).logsumexp(-1)

    def derivatives(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        scores = theta @ self.basis.T
        softmax = self._competitor_scores(scores).softmax(-1)
        jacobian = self.basis[self.labels] - torch.einsum("bkr,krd->bkd", softmax, self.basis[self.competitors])
        return self.margins(theta), jacobian, softmax

    def weighted_hessian(self, softmax: Tensor | None, slopes: Tensor) -> Tensor | float:
        # ∇²m = −(E[f fᵀ] − E[f] E[f]ᵀ), with expectations over the competitors' features f under their softmax.
        assert softmax is not None
        features = self.basis[self.competitors]
        mean = torch.einsum("bkr,krd->bkd", softmax, features)
        second = torch.einsum("bk,bkr,krd,kre->bde", slopes, softmax, features, features)
        return torch.einsum("bk,bkd,bke->bde", slopes, mean, mean) - second

    def at_inputs(self, design: Tensor) -> "LogOddsMargins":
        inputs = len(design)
        first = len(self.basis) * torch.arange(inputs).repeat_interleave(len(self.labels))
        competitors = self.competitors.repeat(inputs, 1) + first.unsqueeze(-1)
        present = None if self.present is None else self.present.repeat(inputs, 1)
        scores = _kron(design, self.basis)
        return LogOddsMargins(self.weights, scores, self.labels.repeat(inputs) + first, competitors, present)

    @property
    def directions(self) -> Tensor:
        return self.basis[self.labels].unsqueeze(1) - self.basis[self.competitors]

    def restricted(self, present: Tensor) -> "LogOddsMargins":
        present = present if self.present is None else present & self.present
        kept = present.any(-1)
        return replace(self, labels=self.labels[kept], competitors=self.competitors[kept], present=present[kept])

    def _competitor_scores(self, scores: Tensor) -> Tensor:
        competitors = scores[:, self.competitors]
        return competitors if self.present is None else competitors.masked_fill(~self.present, -torch.inf)


def competitor_pairs(labels: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Returns all pairs of a label (G,) and a different candidate (G, C), as two vectors of equal length."""
    is_competitor = candidates != labels.unsqueeze(-1)
    return labels.unsqueeze(-1).expand_as(candidates)[is_competitor], candidates[is_competitor]


def _kron(left: Tensor, right: Tensor) -> Tensor:
    """Returns the Kronecker product; torch.kron raises for some one-column matrices."""
    rows, columns = len(left) * len(right), left.shape[1] * right.shape[1]
    return torch.einsum("nr,kd->nkrd", left, right).reshape(rows, columns)
