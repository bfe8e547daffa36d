"""`pairwise`: Σ_{v≠y} φ(s_y − s_v), Eq. (3) of the paper."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore.kernels._form import Kept
from linearcore.kernels._labels import Labels
from linearcore.kernels._rivals import RivalKernel, count_present


@dataclass(frozen=True)
class PairwiseKernel(RivalKernel):
    """The reference is the label's own score."""

    def soft_is_quadratic(self, labels: Labels) -> bool:
        return True

    def _references(self, scores: Tensor, present: Tensor, chunk: slice) -> Tensor:
        return scores[..., chunk]

    def _soft_without_margin(self, scores: Tensor, share: Tensor) -> None:
        return None

    def hard_forward(self, scores: Tensor, labels: Labels, *, overwrite: bool = False) -> tuple[Tensor, Kept]:
        index, own = self._own(scores, labels)
        missing = own == -math.inf
        rivals = (count_present(scores) - (~missing).to(scores.dtype)).clamp_(min=1) if self.normalize else None
        total = self._values(own, scores, index, overwrite).sum(-1)
        # The label itself is not there: infinitely wrong, unless nothing else is there either.
        total.masked_fill_(missing.squeeze(-1) & (total > 0), math.inf)
        return (total, ()) if rivals is None else (total.div_(rivals.squeeze(-1)), (rivals,))

    def hard_gradient(
        self, scores: Tensor, labels: Labels, kept: Kept, upstream: Tensor, *, overwrite: bool = False
    ) -> Tensor:
        index, own = self._own(scores, labels)
        slopes, factor = self._slopes(own, scores, index, overwrite)
        scale = factor * (upstream / kept[0] if self.normalize else upstream)
        pull = slopes.sum(-1, keepdim=True).mul_(scale)
        return slopes.mul_(-scale).scatter_(-1, index, pull)

    @staticmethod
    def _own(scores: Tensor, labels: Labels) -> tuple[Tensor, Tensor]:
        assert labels.index is not None
        index = labels.index.unsqueeze(-1)
        own = torch.gather(scores, -1, index)
        margin = labels.own_margin(scores)
        return index, own if margin is None else own - margin
