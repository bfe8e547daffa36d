"""`logodds`: φ(s_y − logsumexp_{v≠y} s_v), whose margin is the log-odds of the label, as in cross-entropy."""

import math
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.forms._base import Form
from linearcore.forms._labels import Labels, label_mask
from linearcore.forms._margins import LogOddsMargins, competitor_pairs
from linearcore.forms._rows import SavedTensors
from linearcore.kernels import FormCode
from linearcore.surrogates import Surrogate


@dataclass(frozen=True)
class LogOdds(Form):
    """φ(s_y − logsumexp_{v≠y} s_v): one margin per sample, the log-odds of its label.

    With the surrogate `Logistic` it equals cross-entropy. It is convex and argmax-consistent; its accuracy was close to
    cross-entropy with 10, 26 and 200 classes. With three or more classes the 0-1 regret is bounded by the square root of the
    surrogate regret, not linearly.

    The label is excluded before the logsumexp, because log p − log(1 − p) in float32 loses precision for margins above 17.
    The logsumexp is stored as the maximum and the remainder (at most log C), because for scores near 1e8 rounding would lose
    the remainder in their sum.
    """

    name: ClassVar[str] = "logodds"
    code: ClassVar[FormCode | None] = FormCode.LOGODDS
    has_sampled_kernels: ClassVar[bool] = True
    has_custom_backward: ClassVar[bool] = True
    can_fuse: ClassVar[bool] = True

    def check(self, surrogate: Surrogate) -> None:
        if not surrogate.is_monotone:
            must = 'be non-increasing for form="logodds"'
            advice = "the loss would not be convex in the scores; use a monotone base such as 'gamma', or another form"
            raise ValueError(complaint("surrogate", must, surrogate, advice))

    def soft_is_quadratic(self, labels: Labels) -> bool:
        return False

    def hard_losses(self, surrogate: Surrogate, scores: Tensor, labels: Labels) -> Tensor:
        assert labels.index is not None
        index = labels.index.unsqueeze(-1)
        label_score = scores.gather(-1, index)
        return surrogate._value(_margin(label_score, labels, *_logsumexp_without(scores, index))).squeeze(-1)

    def soft_losses(self, surrogate: Surrogate, scores: Tensor, labels: Labels, chunk: slice) -> Tensor:
        weights = labels.target_weights(scores)
        is_counted = labels.is_counted(weights, scores != -math.inf)
        scores, log_sums = _logsumexp_without_each(scores)
        margins = (scores - log_sums).masked_fill(~is_counted, 0.0)
        if labels.margin is not None:
            margins = margins - labels.margin.to(margins.dtype)
        return (weights * surrogate._value(margins)).masked_fill(~is_counted, 0.0).sum(-1)

    def hard_forward(
        self, surrogate: Surrogate, scores: Tensor, labels: Labels, *, fused: ModuleType | None, overwrite: bool = False
    ) -> tuple[Tensor, SavedTensors]:
        assert labels.index is not None
        if fused is not None:
            label_score, max_score, sum_exp = fused.log_odds(scores, labels.index)
            margin = _margin(label_score, labels, max_score, sum_exp.log())
            return surrogate._value(margin).squeeze(-1), (max_score, sum_exp, margin)
        index = labels.index.unsqueeze(-1)
        label_score = scores.gather(-1, index)
        competitors = scores.scatter_(-1, index, -math.inf) if overwrite else scores.scatter(-1, index, -math.inf)
        # Clamped to a finite number: if all competitors are masked out, −inf − (−inf) would be NaN.
        max_score = competitors.amax(-1, keepdim=True).clamp_(min=torch.finfo(scores.dtype).min)
        sum_exp = _exp_inplace(competitors.sub_(max_score)).sum(-1, keepdim=True)
        margin = _margin(label_score, labels, max_score, sum_exp.log())
        return surrogate._value(margin).squeeze(-1), (max_score, sum_exp, margin)

    def hard_gradient(
        self, surrogate: Surrogate, scores: Tensor, labels: Labels, saved: SavedTensors, grad_output: Tensor, *,
        fused: ModuleType | None, overwrite: bool = False,
    ) -> Tensor:  # fmt: skip
        assert labels.index is not None
        index = labels.index.unsqueeze(-1)
        max_score, sum_exp, margin = saved
        label_grad, competitor_factor = _gradient_factors(surrogate, margin, sum_exp, grad_output)
        if fused is not None:
            return fused.log_odds_gradient(scores, labels.index, max_score, competitor_factor, label_grad)  # type: ignore[no-any-return]
        shifted = scores.sub_(max_score) if overwrite else scores - max_score
        return _exp_inplace(shifted).mul_(competitor_factor).scatter_(-1, index, label_grad)

    def posterior(self, surrogate: Surrogate, scores: Tensor) -> Tensor:
        """Returns p_y ∝ q_y (1 − q_y) / |φ'(m_y)| with q = softmax(s) and the margins m_y = log q_y − log(1 − q_y).

        The gradient of Σ_y p_y φ(m_y) is then 0. It is the softmax for the logistic surrogate, and `surrogate.posterior` of
        the margin for two classes. If φ' = 0 at the largest margin, p is 1 for this class.
        """
        scores, log_sums = _logsumexp_without_each(scores)
        slopes = -surrogate._derivative(scores - log_sums)
        is_certain = slopes == 0  # At most one class: φ' < 0 for all margins up to 0.
        log_p = scores + log_sums - slopes.log()
        return torch.where(is_certain.any(-1, keepdim=True), is_certain.to(scores.dtype), log_p.softmax(-1))

    def margins(self, labels: Tensor, candidates: Tensor, basis: Tensor) -> LogOddsMargins:
        _, competitors = competitor_pairs(labels, candidates)
        weights = torch.eye(len(basis), dtype=basis.dtype)[labels]
        return LogOddsMargins(weights, basis, labels, competitors.reshape(len(labels), -1))

    def consistency(self, surrogate: Surrogate) -> str | None:
        reason = "the log-odds increase with the score, so the more probable of two classes has the higher score"
        return reason if surrogate.is_monotone else None

    def sampled_losses(
        self, surrogate: Surrogate, label_scores: Tensor, scores: Tensor, log_weight: Tensor, num_classes: int | Tensor
    ) -> Tensor:
        """Returns φ(s_y − log Σ_k weight_k e^{s_k}): biased, because the log of an unbiased estimate is biased.

        On average log Σ_k weight_k e^{s_k} is too small by about half the relative variance of the sum, which is O(1/K).
        """
        margin = _sampled_margin(label_scores, scores, log_weight)[0]
        return surrogate._value(margin).squeeze(-1)

    def sampled_influences(
        self, surrogate: Surrogate, label_scores: Tensor, scores: Tensor, log_weight: Tensor, num_classes: int | Tensor
    ) -> Tensor:
        margin, terms, total = _sampled_margin(label_scores, scores, log_weight)
        return -surrogate._derivative(margin) * (terms / total)

    def decision_margin(self, scores: Tensor, index: Tensor) -> Tensor:
        index = index.unsqueeze(-1)
        return scores.gather(-1, index).squeeze(-1) - scores.scatter(-1, index, -torch.inf).logsumexp(-1)


def _gradient_factors(surrogate: Surrogate, margin: Tensor, sum_exp: Tensor, grad_output: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the gradient of the label score, and the factor of the competitors' exp(s − max_score), (N, 1) each."""
    # Rows with zero grad_output get zero gradient, even if φ' is inf or NaN.
    label_grad = (surrogate._derivative(margin) * grad_output).masked_fill_(grad_output == 0, 0.0)
    # The clamp avoids 0/0 = NaN if there are no competitors: sum_exp is 0, the margin +inf and φ' = 0.
    return label_grad, -label_grad / sum_exp.clamp(min=torch.finfo(sum_exp.dtype).tiny)


def _exp_inplace(x: Tensor) -> Tensor:
    """Returns e^x for x ≤ 0; overwrites x.

    On CPUs torch.exp2 takes a third of the time of torch.exp. Rounding x / log 2 adds an error of about |x| ulp to e^x,
    which is negligible compared with the largest term of a softmax, 1.
    """
    if x.device.type != "cpu":
        return x.exp_()
    return x.mul_(1 / math.log(2)).exp2_()


def _margin(label_score: Tensor, labels: Labels, max_score: Tensor, remainder: Tensor) -> Tensor:
    """Returns s_y − logsumexp_{v≠y} s_v − Δ_y, (N, 1), for hard labels; logsumexp = max_score + remainder."""
    margin = (label_score - max_score) - remainder
    label_margin = labels.label_margin(label_score)
    return margin if label_margin is None else margin - label_margin


def _sampled_margin(label_scores: Tensor, scores: Tensor, log_weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the margins s_y − log Σ_k weight_k e^{s_k} (N, 1), and up to a factor the terms (N, K) and the sum (N, 1)."""
    weighted = scores + log_weight.to(scores.dtype)
    max_score = weighted.detach().amax(-1, keepdim=True)
    # Without candidates of positive weight there are no competitors, so the margin is +inf.
    all_masked = max_score == -math.inf
    max_score = max_score.masked_fill(all_masked, 0.0)
    terms = (weighted - max_score).exp()
    sum_exp = terms.sum(-1, keepdim=True).masked_fill(all_masked, 1.0)
    margin = (label_scores.unsqueeze(-1) - max_score) - sum_exp.log()
    return margin.masked_fill(all_masked, math.inf), terms, sum_exp


def _logsumexp_without(scores: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the logsumexp over all classes except `index` as two tensors (N, 1).

    The first is the maximum (detached), the second the logsumexp minus the maximum. If these classes are all masked out, the
    second is −inf with zero gradient.
    """
    competitors = scores.masked_fill(label_mask(scores, index), -math.inf)
    max_score = competitors.detach().amax(-1, keepdim=True)
    all_masked = max_score == -math.inf
    max_score = max_score.masked_fill(all_masked, 0.0)
    remainder = torch.logsumexp((competitors - max_score).masked_fill(all_masked, 0.0), -1, keepdim=True)
    return max_score, remainder.masked_fill(all_masked, -math.inf)


def _logsumexp_without_each(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the scores minus their maximum, and for each class the logsumexp of all others, (N, C) each."""
    top = scores.argmax(-1, keepdim=True)
    is_top = label_mask(scores, top)
    scores = scores - scores.gather(-1, top).detach()  # Leaves margins unchanged and avoids overflow.
    log_sum_without_top = torch.add(*_logsumexp_without(scores, top))
    log_sum_all = torch.logaddexp(log_sum_without_top, scores.gather(-1, top))
    # log1p(−p) is accurate for p ≤ ½, so for all classes except the top one, which is computed separately.
    log_p = (scores - log_sum_all).masked_fill(is_top, -1.0)
    return scores, torch.where(is_top, log_sum_without_top, log_sum_all + torch.log1p(-log_p.exp()))
