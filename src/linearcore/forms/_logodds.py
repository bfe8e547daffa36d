"""`logodds`: φ(s_y − logsumexp_{v≠y} s_v), cross-entropy's own margin."""

import math
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.forms._base import Form
from linearcore.forms._labels import Labels, is_label
from linearcore.forms._margins import LogOddsMargins, pairs
from linearcore.forms._rows import Kept
from linearcore.kernels import compute_gradients, fused_for, links
from linearcore.structures import Chain, Sites
from linearcore.surrogates import Surrogate


@dataclass(frozen=True)
class LogOdds(Form):
    """φ(s_y − logsumexp_{v≠y} s_v): one margin a sample, the log-odds of its label. With `Logistic` it is cross-entropy.

    Convex, argmax-consistent, and the form that trains as well as cross-entropy (measured with 10, 26 and 200 classes).
    Square-root rate for three classes and more.

    The label is taken out *before* the logsumexp. From log p − log(1 − p) the margin would be lost in float32 at 17 and
    infinite soon after. And the logsumexp stays in two parts, its largest score and what the others add to that, at most
    log C: in their sum the second would be lost to rounding at scores near 1e8.
    """

    name: ClassVar[str] = "logodds"
    has_fast_path: ClassVar[bool] = True
    can_fuse: ClassVar[bool] = True

    def check(self, surrogate: Surrogate) -> None:
        if not surrogate.is_monotone:
            must = 'be non-increasing for form="logodds"'
            advice = "the loss would not be convex in the scores; use a monotone base such as 'gamma', or another form"
            raise ValueError(complaint("surrogate", must, surrogate, advice))

    def soft_is_quadratic(self, labels: Labels) -> bool:
        return False

    def hard(self, surrogate: Surrogate, scores: Tensor, labels: Labels) -> Tensor:
        assert labels.index is not None
        index = labels.index.unsqueeze(-1)
        own = scores.gather(-1, index)
        return surrogate._value(_margin(own, labels, *_log_sum_of_others(scores, index))).squeeze(-1)

    def soft(self, surrogate: Surrogate, scores: Tensor, labels: Labels, chunk: slice) -> Tensor:
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
        return (share * surrogate._value(margins)).masked_fill(~counts, 0.0).sum(-1)

    def hard_forward(
        self, surrogate: Surrogate, scores: Tensor, labels: Labels, *, fused: ModuleType | None, overwrite: bool = False
    ) -> tuple[Tensor, Kept]:
        assert labels.index is not None
        if fused is not None:
            own, peak, total = fused.log_odds(scores, labels.index)
            margin = _margin(own, labels, peak, total.log())
            return surrogate._value(margin).squeeze(-1), (peak, total, margin)
        index = labels.index.unsqueeze(-1)
        own = scores.gather(-1, index)
        others = scores.scatter_(-1, index, -math.inf) if overwrite else scores.scatter(-1, index, -math.inf)
        # Where nothing is left the peak would be −inf, and −inf − (−inf) no number; the least float will do.
        peak = others.amax(-1, keepdim=True).clamp_(min=torch.finfo(scores.dtype).min)
        total = _exp_(others.sub_(peak)).sum(-1, keepdim=True)
        margin = _margin(own, labels, peak, total.log())
        return surrogate._value(margin).squeeze(-1), (peak, total, margin)

    def hard_gradient(
        self, surrogate: Surrogate, scores: Tensor, labels: Labels, kept: Kept, upstream: Tensor, *,
        fused: ModuleType | None, overwrite: bool = False,
    ) -> Tensor:  # fmt: skip
        assert labels.index is not None
        index = labels.index.unsqueeze(-1)
        peak, total, margin = kept
        slope, share = _slope_and_share(surrogate, margin, total, upstream)
        if fused is not None:
            return fused.log_odds_gradient(scores, labels.index, peak, share, slope)  # type: ignore[no-any-return]
        shifted = scores.sub_(peak) if overwrite else scores - peak
        return _exp_(shifted).mul_(share).scatter_(-1, index, slope)

    def margins(self, own: Tensor, candidates: Tensor, basis: Tensor) -> LogOddsMargins:
        _, others = pairs(own, candidates)
        weights = torch.eye(len(basis), dtype=basis.dtype)[own]
        return LogOddsMargins(weights, basis, own, others.reshape(len(own), -1))

    def consistency(self, surrogate: Surrogate) -> str | None:
        reason = "the log-odds rise with the score, so the likelier of two classes has the higher one"
        return reason if surrogate.is_monotone else None

    def sampled(
        self, surrogate: Surrogate, own: Tensor, others: Tensor, log_weight: Tensor, num_classes: int | Tensor
    ) -> Tensor:
        """φ(s_y − log Σ_k weight_k e^{s_k}): biased, being the logarithm of an estimate.

        It errs low on the competitors' side by about half the relative variance of Σ_k weight_k e^{s_k}, O(1/K).
        """
        weighted = others + log_weight.to(others.dtype)
        peak = weighted.detach().amax(-1, keepdim=True)
        # Where every candidate counts for nothing there is nothing to lose to: margin +inf.
        nothing = peak == -math.inf
        peak = peak.masked_fill(nothing, 0.0)
        total = (weighted - peak).exp().sum(-1, keepdim=True).masked_fill(nothing, 1.0)
        margin = (own.unsqueeze(-1) - peak) - total.log()
        return surrogate._value(margin.masked_fill(nothing, math.inf)).squeeze(-1)

    def local_losses(
        self, surrogate: Surrogate, emissions: Tensor, chain: Chain, tags: Tensor, sites: Sites, backend: str
    ) -> Tensor:
        # The fused gradient adds up in whatever order the device likes.
        if backend != "fused" or torch.are_deterministic_algorithms_enabled():
            return super().local_losses(surrogate, emissions, chain, tags, sites, backend)
        rows: Tensor = _FusedLocal.apply(surrogate, emissions, *chain, tags, sites)  # type: ignore[no-untyped-call]
        return rows.view(tags.shape)

    def lead(self, scores: Tensor, index: Tensor) -> Tensor:
        own = index.unsqueeze(-1)
        return scores.gather(-1, own).squeeze(-1) - scores.scatter(-1, own, -torch.inf).logsumexp(-1)


class _FusedLocal(torch.autograd.Function):
    """`LogOdds.local_losses` in one launch forward and one backward, beside what belongs to φ.

    A second derivative differentiates the definition.
    """

    @staticmethod
    def forward(
        ctx: Any, surrogate: Surrogate, emissions: Tensor, start: Tensor, transitions: Tensor, end: Tensor,
        tags: Tensor, sites: Sites,
    ) -> Tensor:  # fmt: skip
        fused = fused_for(emissions)
        assert fused is not None
        linked = links(tags, sites)
        scores, own, peak, total = fused.local_log_odds(emissions, (start, transitions, end), linked, tags)
        margin = (own - peak) - total.log()
        ctx.surrogate, ctx.sites = surrogate, sites
        ctx.save_for_backward(emissions, start, transitions, end, tags, *linked, scores, peak, total, margin)
        return surrogate._value(margin).squeeze(-1)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        *given, tags = ctx.saved_tensors[:5]
        if torch.is_grad_enabled():
            chain = Chain(*given[1:])
            losses = LogOdds().local_losses(ctx.surrogate, given[0], chain, tags, ctx.sites, "reference")
            wanted = ctx.needs_input_grad[1:5]
            found = compute_gradients(losses, given, upstream.view(tags.shape), wanted, create_graph=True)
            return None, *found, None, None
        *linked, scores, peak, total, margin = ctx.saved_tensors[5:]
        slope, share = _slope_and_share(ctx.surrogate, margin, total, upstream.unsqueeze(-1))
        fused = fused_for(given[0])
        assert fused is not None
        found = fused.local_gradient(scores, tags, tuple(linked), peak, share, slope, given[0].dtype)
        return None, *found, None, None


def _slope_and_share(surrogate: Surrogate, margin: Tensor, total: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor]:
    """(N, 1) each: the gradient at the label, and what each exp(s − peak) of the others is multiplied by."""
    # A row that counts for nothing has no gradient, even where its slope is infinite, or no number.
    slope = (surrogate._derivative(margin) * upstream).masked_fill_(upstream == 0, 0.0)
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
