"""`centered`: Σ_{v≠y} φ(−(s_v − s̄)), the form with a linear consistency bound."""

import math
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar, Literal

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore._torch import is_on_host
from linearcore.forms._competitors import Competitors, count_unmasked
from linearcore.forms._labels import Labels
from linearcore.forms._margins import LinearMargins, competitor_pairs
from linearcore.forms._rows import SavedTensors
from linearcore.kernels import FormCode
from linearcore.surrogates import Surrogate


@dataclass(frozen=True)
class Centered(Competitors):
    """Σ_{v≠y} φ(−(s_v − s̄)) with s̄ the mean score, or its mean over the n − 1 competitors.

    For one-sided linear-core φ: 0-1 regret ≤ surrogate regret / τ for the sum, and (n − 1) times this bound for the mean.
    Trains poorly with many classes. Cannot be sampled, because it needs the mean over all classes.
    """

    name: ClassVar[str] = "centered"
    code: ClassVar[FormCode | None] = FormCode.CENTERED
    class_reference: ClassVar[Literal["label", "mean"] | None] = "mean"
    has_linear_bound: ClassVar[bool] = True

    def check(self, surrogate: Surrogate) -> None:
        if surrogate.core is not None and surrogate.core[0] > -math.inf:
            must = 'be one-sided for form="centered"'
            advice = "a tail steeper than the core breaks the linear bound; use sides=1 or another form"
            raise ValueError(complaint("surrogate", must, surrogate, advice))

    def soft_is_quadratic(self, labels: Labels) -> bool:
        return labels.margin is not None

    def _references(self, scores: Tensor, is_unmasked: Tensor, chunk: slice) -> Tensor:
        total = scores.masked_fill(~is_unmasked, 0.0).sum(-1, keepdim=True)
        return _mark_overflow(total / is_unmasked.to(scores.dtype).sum(-1, keepdim=True).clamp(min=1))

    def _linear_time_soft_losses(self, surrogate: Surrogate, scores: Tensor, weights: Tensor) -> Tensor:
        # The margin of v is the same for all labels y ≠ v, so its weight is the sum of their target weights.
        is_unmasked = scores != -math.inf
        if self.normalize:
            weights = weights / (is_unmasked.sum(-1, keepdim=True) - is_unmasked.to(weights.dtype)).clamp(min=1)
        competitor_weights = weights.sum(-1, keepdim=True) - weights
        is_counted = is_unmasked & Labels.is_counted(competitor_weights, is_unmasked)
        margins = (self._references(scores, is_unmasked, slice(None)) - scores).masked_fill(~is_counted, 0.0)
        return (competitor_weights * surrogate._value(margins)).masked_fill(~is_counted, 0.0).sum(-1)

    def hard_forward(
        self, surrogate: Surrogate, scores: Tensor, labels: Labels, *, fused: ModuleType | None, overwrite: bool = False
    ) -> tuple[Tensor, SavedTensors]:
        num_unmasked = count_unmasked(scores)
        unmasked = scores if _has_all_classes(num_unmasked, scores) else scores.masked_fill(scores == -math.inf, 0.0)
        mean = _mark_overflow(unmasked.sum(-1, keepdim=True).div_(num_unmasked.clamp(min=1)))
        index, reference = _reference(mean, labels)
        label_is_unmasked = scores.gather(-1, index) != -math.inf
        total = self._values(surrogate, reference, scores, index, overwrite).sum(-1)
        if not self.normalize:
            return total, (mean, num_unmasked)
        num_competitors = (num_unmasked - label_is_unmasked.to(scores.dtype)).clamp_(min=1)
        return total.div_(num_competitors.squeeze(-1)), (mean, num_unmasked, num_competitors)

    def hard_gradient(
        self, surrogate: Surrogate, scores: Tensor, labels: Labels, saved: SavedTensors, grad_output: Tensor, *,
        fused: ModuleType | None, overwrite: bool = False,
    ) -> Tensor:  # fmt: skip
        mean, num_unmasked = saved[:2]
        index, reference = _reference(mean, labels)
        is_masked = None if _has_all_classes(num_unmasked, scores) else scores == -math.inf
        slopes, factor = self._slopes(surrogate, reference, scores, index, overwrite)
        scale = factor * (grad_output / saved[2] if self.normalize else grad_output)
        mean_slope = slopes.sum(-1, keepdim=True).div_(num_unmasked.clamp(min=1))
        gradient = slopes.sub_(mean_slope).mul_(-scale)
        return gradient if is_masked is None else gradient.masked_fill_(is_masked, 0.0)

    def margins(self, labels: Tensor, candidates: Tensor, basis: Tensor) -> LinearMargins:
        eye = torch.eye(len(basis), dtype=basis.dtype)
        means = eye[candidates].mean(1, keepdim=True)
        is_competitor = candidates != labels.unsqueeze(-1)
        # Labels with the same candidates have the same margins.
        rows, row_index = (means - eye[candidates])[is_competitor].unique(dim=0, return_inverse=True)
        pair_labels, _ = competitor_pairs(labels, candidates)
        return LinearMargins(torch.zeros_like(rows).index_add_(0, row_index, eye[pair_labels]), basis, rows)

    def consistency(self, surrogate: Surrogate) -> str:
        return "at the minimum (1 − p_v) f'(s_v − mean), with f(x) = φ(−x), is equal for all v, and f' is increasing"


def _reference(mean: Tensor, labels: Labels) -> tuple[Tensor, Tensor]:
    """Returns the label indices and the mean scores minus the label margins, (N, 1) each."""
    assert labels.index is not None
    margin = labels.label_margin(mean)
    return labels.index.unsqueeze(-1), mean if margin is None else mean - margin


def _mark_overflow(mean: Tensor) -> Tensor:
    """Returns the mean scores with NaN where their sum has overflowed: φ(∞) may be 0, and the loss would look right."""
    return mean.masked_fill(mean.isinf(), math.nan)


def _has_all_classes(num_unmasked: Tensor, scores: Tensor) -> bool:
    """Whether no class is masked. Always False on a GPU, to avoid a synchronisation."""
    return is_on_host(scores) and bool((num_unmasked == scores.shape[1]).all())
