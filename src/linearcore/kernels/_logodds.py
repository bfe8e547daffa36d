"""`logodds`: φ(s_y − logsumexp_{v≠y} s_v), cross-entropy's own margin."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore.kernels._form import FormKernel, Kept
from linearcore.kernels._fused import fused_for
from linearcore.kernels._labels import Labels, is_label


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
        own = scores.gather(-1, index)
        return self.surrogate._value(_margin(own, labels, *_log_sum_of_others(scores, index))).squeeze(-1)

    def soft(self, scores: Tensor, labels: Labels, chunk: slice) -> Tensor:
        share = labels.share(scores)
        best = scores.argmax(-1, keepdim=True)
        is_best = is_label(scores, best)
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

    def is_fused(self, scores: Tensor) -> bool:
        return fused_for(scores) is not None

    def hard_forward(self, scores: Tensor, labels: Labels, *, overwrite: bool = False) -> tuple[Tensor, Kept]:
        assert labels.index is not None
        fused = fused_for(scores)
        if fused is not None:
            own, peak, total = fused.log_odds(scores, labels.index)
            margin = _margin(own, labels, peak, total.log())
            return self.surrogate._value(margin).squeeze(-1), (peak, total, margin)
        index = labels.index.unsqueeze(-1)
        own = scores.gather(-1, index)
        others = scores.scatter_(-1, index, -math.inf) if overwrite else scores.scatter(-1, index, -math.inf)
        # Where nothing is left the peak would be −inf, and −inf − (−inf) no number; the least float will do.
        peak = others.amax(-1, keepdim=True).clamp_(min=torch.finfo(scores.dtype).min)
        total = _exp_(others.sub_(peak)).sum(-1, keepdim=True)
        margin = _margin(own, labels, peak, total.log())
        return self.surrogate._value(margin).squeeze(-1), (peak, total, margin)

    def hard_gradient(
        self, scores: Tensor, labels: Labels, kept: Kept, upstream: Tensor, *, overwrite: bool = False
    ) -> Tensor:
        assert labels.index is not None
        index = labels.index.unsqueeze(-1)
        peak, total, margin = kept
        slope, share = self.slope_and_share(margin, total, upstream)
        fused = fused_for(scores)
        if fused is not None:
            return fused.log_odds_gradient(scores, labels.index, peak, share, slope)  # type: ignore[no-any-return]
        shifted = scores.sub_(peak) if overwrite else scores - peak
        return _exp_(shifted).mul_(share).scatter_(-1, index, slope)

    def slope_and_share(self, margin: Tensor, total: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor]:
        """(N, 1) each: the gradient at the label, and what each exp(s − peak) of the others is multiplied by."""
        # A row that counts for nothing has no gradient, even where its slope is infinite, or no number.
        slope = (self.surrogate._derivative(margin) * upstream).masked_fill_(upstream == 0, 0.0)
        # Without competitors the margin is +inf and its slope 0; the total of 0 must not turn that into NaN.
        return slope, -slope / total.clamp(min=torch.finfo(total.dtype).tiny)


def _exp_(x: Tensor) -> Tensor:
    """e^x for x ≤ 0, overwriting x.

    On CPUs torch's exp2 takes a third of the time of its exp. What rounding the product costs, |x| units in the last place
    of e^x, is nothing beside the largest term of a softmax, e^0.
    """
    if x.device.type != "cpu":
        return x.exp_()
    return x.mul_(1 / math.log(2)).exp2_()


def _margin(own: Tensor, labels: Labels, peak: Tensor, rest: Tensor) -> Tensor:
    """(N, 1): s_y − logsumexp of the others − Δ_y, for hard labels."""
    margin = (own - peak) - rest
    own_margin = labels.own_margin(own)
    return margin if own_margin is None else margin - own_margin


def _log_sum_of_others(scores: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """logsumexp of a row without the class at `index`, as (N, 1) its largest score, a constant, and (N, 1) the rest.

    Where nothing is left the rest is −inf, with zero gradient.
    """
    others = scores.masked_fill(is_label(scores, index), -math.inf)
    peak = others.detach().amax(-1, keepdim=True)
    nothing = peak == -math.inf
    peak = peak.masked_fill(nothing, 0.0)
    rest = torch.logsumexp((others - peak).masked_fill(nothing, 0.0), -1, keepdim=True)
    return peak, rest.masked_fill(nothing, -math.inf)
