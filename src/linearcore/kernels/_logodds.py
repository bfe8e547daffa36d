"""`logodds`: φ(s_y − logsumexp_{v≠y} s_v), cross-entropy's own margin."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore.kernels._form import FormKernel, Kept
from linearcore.kernels._labels import Labels

#: From this many classes on torch's fused softmax is faster than separate passes (benchmarks/dense_loss.py).
_MANY = 128


@dataclass(frozen=True)
class LogOddsKernel(FormKernel):
    """One margin a row: the log-odds of the label under softmax.

    The label is taken out *before* the logsumexp. From log p − log(1 − p) the margin would be lost in float32 at 17 and
    infinite soon after. And the logsumexp stays in two parts, its largest score and what the others add to that, at most
    log C: in their sum the second would be lost to rounding at scores near 1e8.
    """

    def soft_is_quadratic(self, labels: Labels) -> bool:
        return False

    def hard(self, scores: Tensor, labels: Labels) -> Tensor:
        assert labels.index is not None
        index = labels.index.unsqueeze(-1)
        return self.surrogate._value(_margin(scores, labels, *_log_sum_of_others(scores, index))).squeeze(-1)

    def soft(self, scores: Tensor, labels: Labels, chunk: slice) -> Tensor:
        share = labels.share(scores)
        best = scores.argmax(-1, keepdim=True)
        is_best = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, best, True)
        counts = labels.counts(share, scores != -math.inf)
        scores = scores - scores.gather(-1, best).detach()  # Margins do not see it, and the sums below stay small.
        without_best = torch.add(*_log_sum_of_others(scores, best))
        everything = torch.logaddexp(without_best, scores.gather(-1, best))
        # Every class but the best has p ≤ ½, so that log(1 − p) loses nothing; the best has its own logsumexp.
        others = (scores - everything).masked_fill(is_best, -1.0)
        log_sums = torch.where(is_best, without_best, everything + torch.log1p(-others.exp()))
        margins = (scores - log_sums).masked_fill(~counts, 0.0)
        if labels.margin is not None:
            margins = margins - labels.margin.to(margins.dtype)
        return (share * self.surrogate._value(margins)).masked_fill(~counts, 0.0).sum(-1)

    def hard_forward(self, scores: Tensor, labels: Labels) -> tuple[Tensor, Kept]:
        assert labels.index is not None
        others = scores.scatter(-1, labels.index.unsqueeze(-1), -math.inf)
        peak = others.amax(-1, keepdim=True)
        nothing = peak == -math.inf
        peak.masked_fill_(nothing, 0.0)
        if scores.shape[-1] < _MANY:
            total = others.sub_(peak).exp_().sum(-1, keepdim=True)
        else:
            # One fused pass; the peak's share is 1/total. Where nothing is left the softmax is NaN.
            total = torch.softmax(others, -1).amax(-1, keepdim=True).reciprocal_().masked_fill_(nothing, 0.0)
        return self.surrogate._value(_margin(scores, labels, peak, total.log())).squeeze(-1), (peak, total)

    def hard_gradient(self, scores: Tensor, labels: Labels, kept: Kept, upstream: Tensor) -> Tensor:
        assert labels.index is not None
        peak, total = kept
        slope = self.surrogate._derivative(_margin(scores, labels, peak, total.log())) * upstream
        # Without competitors the margin is +inf and its slope 0; the total of 0 must not turn that into NaN.
        share = -slope / total.masked_fill(total == 0, 1.0)
        return torch.sub(scores, peak).exp_().mul_(share).scatter_(-1, labels.index.unsqueeze(-1), slope)


def _margin(scores: Tensor, labels: Labels, peak: Tensor, rest: Tensor) -> Tensor:
    """(N, 1): s_y − logsumexp of the others − Δ_y, for hard labels."""
    assert labels.index is not None
    margin = (scores.gather(-1, labels.index.unsqueeze(-1)) - peak) - rest
    own_margin = labels.own_margin(scores)
    return margin if own_margin is None else margin - own_margin


def _log_sum_of_others(scores: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """logsumexp of a row without the class at `index`, as (N, 1) its largest score, a constant, and (N, 1) the rest.

    Where nothing is left the rest is −inf, with zero gradient.
    """
    others = scores.scatter(-1, index, -math.inf)
    peak = others.detach().amax(-1, keepdim=True)
    nothing = peak == -math.inf
    peak = peak.masked_fill(nothing, 0.0)
    rest = torch.logsumexp((others - peak).masked_fill(nothing, 0.0), -1, keepdim=True)
    return peak, rest.masked_fill(nothing, -math.inf)
