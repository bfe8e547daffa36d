"""`pairwise`: Σ_{v≠y} φ(s_y − s_v), Eq. (3) of the paper."""

import math
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import torch
from torch import Tensor

from linearcore.forms._competitors import Competitors, count_present
from linearcore.forms._labels import Labels
from linearcore.forms._margins import LinearMargins, pairs
from linearcore.forms._rows import Kept
from linearcore.surrogates import Surrogate


@dataclass(frozen=True)
class Pairwise(Competitors):
    """Σ_{v≠y} φ(s_y − s_v), the paper's sum loss, or its mean over the n − 1 competitors.

    Convex, as smooth as φ, and argmax-consistent for differentiable non-increasing φ. The paper's linear bound fails for
    three classes and more (`docs/reading-the-paper-with-care.md`, a).

    Reference: Eq. (3) of the paper.
    """

    name: ClassVar[str] = "pairwise"

    def _references(self, scores: Tensor, present: Tensor, chunk: slice) -> Tensor:
        return scores[..., chunk]

    def _soft_without_margin(self, surrogate: Surrogate, scores: Tensor, share: Tensor) -> None:
        return None

    def hard_forward(
        self, surrogate: Surrogate, scores: Tensor, labels: Labels, *, fused: ModuleType | None, overwrite: bool = False
    ) -> tuple[Tensor, Kept]:
        index, own = _own(scores, labels)
        missing = own == -math.inf
        competitors = (count_present(scores) - (~missing).to(scores.dtype)).clamp_(min=1) if self.normalize else None
        total = self._values(surrogate, own, scores, index, overwrite).sum(-1)
        # The label itself is masked out: infinitely wrong, unless all others are, too.
        total.masked_fill_(missing.squeeze(-1) & (total > 0), math.inf)
        return (total, ()) if competitors is None else (total.div_(competitors.squeeze(-1)), (competitors,))

    def hard_gradient(
        self, surrogate: Surrogate, scores: Tensor, labels: Labels, kept: Kept, upstream: Tensor, *,
        fused: ModuleType | None, overwrite: bool = False,
    ) -> Tensor:  # fmt: skip
        index, own = _own(scores, labels)
        slopes, factor = self._slopes(surrogate, own, scores, index, overwrite)
        scale = factor * (upstream / kept[0] if self.normalize else upstream)
        pull = slopes.sum(-1, keepdim=True).mul_(scale)
        return slopes.mul_(-scale).scatter_(-1, index, pull)

    def margins(self, own: Tensor, candidates: Tensor, basis: Tensor) -> LinearMargins:
        labels, others = pairs(own, candidates)
        eye = torch.eye(len(basis), dtype=basis.dtype)
        return LinearMargins(eye[labels], basis, eye[labels] - eye[others])

    def consistency(self, surrogate: Surrogate) -> str | None:
        reason = "swapping scores lowers the risk if the likelier class was behind, and at a tie parting them does"
        return reason if surrogate.is_monotone else None

    def sampled(
        self, surrogate: Surrogate, own: Tensor, others: Tensor, log_weight: Tensor, num_classes: int | Tensor
    ) -> Tensor:
        """Σ_k weight_k φ(s_y − s_k): unbiased for the sum over all competitors, and so is its gradient."""
        # Masked out or without weight: φ(∞) need not be 0, nor its slope a number.
        idle = (log_weight == -math.inf) | (others == -math.inf)
        margin = (own.unsqueeze(-1) - others).masked_fill(idle, 0.0)
        weight = log_weight.to(others.dtype).exp().masked_fill(idle, 0.0)
        total = (weight * surrogate._value(margin)).sum(-1)
        if not self.normalize:
            return total
        return total / ((num_classes - 1).clamp(min=1) if isinstance(num_classes, Tensor) else max(1, num_classes - 1))


def _own(scores: Tensor, labels: Labels) -> tuple[Tensor, Tensor]:
    """(N, 1) each: the labels, and their scores less their margins."""
    assert labels.index is not None
    index = labels.index.unsqueeze(-1)
    own = torch.gather(scores, -1, index)
    margin = labels.own_margin(scores)
    return index, own if margin is None else own - margin
