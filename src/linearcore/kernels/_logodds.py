"""`logodds`: φ(s_y − logsumexp_{v≠y} s_v), cross-entropy's own margin."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore.kernels._form import FormKernel, Kept
from linearcore.kernels._labels import Labels


@dataclass(frozen=True)
class LogOddsKernel(FormKernel):
    """One margin a row: the log-odds of the label under softmax.

    The label is taken out *before* the logsumexp. From log p − log(1 − p) the margin would be lost in float32 at 17 and
    infinite soon after.
    """

    def soft_is_quadratic(self, labels: Labels) -> bool:
        return False

    def hard(self, scores: Tensor, labels: Labels) -> Tensor:
        assert labels.index is not None
        index = labels.index.unsqueeze(-1)
        margin = scores.gather(-1, index) - _log_sum_of_others(scores, index)
        own_margin = labels.own_margin()
        return self.surrogate._value(margin if own_margin is None else margin - own_margin).squeeze(-1)

    def soft(self, scores: Tensor, labels: Labels, chunk: slice) -> Tensor:
        share = labels.share(scores)
        best = scores.argmax(-1, keepdim=True)
        is_best = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, best, True)
        without_best = _log_sum_of_others(scores, best)
        everything = torch.logaddexp(without_best, scores.gather(-1, best))
        # Every class but the best has p ≤ ½, so that log(1 − p) loses nothing; the best has its own logsumexp.
        others = (scores - everything).masked_fill(is_best, -1.0)
        log_sums = torch.where(is_best, without_best, everything + torch.log1p(-others.exp()))
        absent = (scores == -math.inf) & (share == 0)
        margins = (scores - log_sums).masked_fill(absent, 0.0)
        if labels.margin is not None:
            margins = margins - labels.margin.to(margins.dtype)
        return (share * self.surrogate._value(margins)).masked_fill(absent, 0.0).sum(-1)

    def hard_forward(self, scores: Tensor, labels: Labels) -> tuple[Tensor, Kept]:
        assert labels.index is not None
        index = labels.index.unsqueeze(-1)
        others = scores.scatter(-1, index, -math.inf)
        log_sum = torch.logsumexp(others, -1, keepdim=True)
        margin = self._margin(scores, labels, log_sum)
        return self.surrogate._value(margin).squeeze(-1), (log_sum,)

    def hard_gradient(self, scores: Tensor, labels: Labels, kept: Kept, upstream: Tensor) -> Tensor:
        assert labels.index is not None
        (log_sum,) = kept
        slope = self.surrogate._derivative(self._margin(scores, labels, log_sum)) * upstream
        # Without competitors the margin is +inf and its slope 0; exp must not turn that into 0 · inf.
        alone = log_sum == -math.inf
        gradient = torch.sub(scores, log_sum.masked_fill(alone, 0.0)).exp_().mul_(-slope)
        return gradient.scatter_(-1, labels.index.unsqueeze(-1), slope)

    @staticmethod
    def _margin(scores: Tensor, labels: Labels, log_sum: Tensor) -> Tensor:
        assert labels.index is not None
        margin = scores.gather(-1, labels.index.unsqueeze(-1)) - log_sum
        own_margin = labels.own_margin()
        return margin if own_margin is None else margin - own_margin


def _log_sum_of_others(scores: Tensor, index: Tensor) -> Tensor:
    """(N, 1): logsumexp of a row without the class at `index`; −inf, with zero gradient, where nothing is left."""
    others = scores.scatter(-1, index, -math.inf)
    nothing = (others == -math.inf).all(-1, keepdim=True)
    return torch.logsumexp(others.masked_fill(nothing, 0.0), -1, keepdim=True).masked_fill(nothing, -math.inf)
