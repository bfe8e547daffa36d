"""Base class of `pairwise` and `centered`: a sum, or a mean, of φ(reference − s_v) over the competitors v."""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from linearcore._torch import is_on_host
from linearcore.forms._base import Form
from linearcore.forms._labels import Labels, label_mask
from linearcore.surrogates import Surrogate


@dataclass(frozen=True)
class Competitors(Form):
    """ℓ(s, y) = Σ_{v≠y} φ(r_y − s_v − Δ_y), or its mean over the competitors v that are not masked out.

    The reference r_y is the score of the label in `pairwise` and the mean score in `centered`.
    """

    normalize: bool = True
    has_custom_backward: ClassVar[bool] = True

    def normalized(self, normalize: bool) -> Self:
        return replace(self, normalize=normalize)

    @property
    def is_mean(self) -> bool:
        return self.normalize

    @abstractmethod
    def _references(self, scores: Tensor, is_unmasked: Tensor, chunk: slice) -> Tensor:
        """Returns r_y for the labels y in `chunk`, (N, K) or (N, 1), differentiable."""

    @abstractmethod
    def _linear_time_soft_losses(self, surrogate: Surrogate, scores: Tensor, weights: Tensor) -> Tensor | None:
        """Returns the soft losses without class margins if they take O(C) time per row, otherwise None."""

    def hard_losses(self, surrogate: Surrogate, scores: Tensor, labels: Labels) -> Tensor:
        assert labels.index is not None
        index = labels.index.unsqueeze(-1)
        is_unmasked = scores != -math.inf
        references = self._references(scores, is_unmasked, slice(None))
        reference = references if references.shape[-1] == 1 else references.gather(-1, index)
        is_competitor = is_unmasked & ~label_mask(scores, index)
        reference = _subtract_margin(reference, labels.label_margin(scores))
        total = _sum_over_competitors(surrogate, reference, scores, is_competitor)
        return total / is_competitor.to(scores.dtype).sum(-1).clamp(min=1) if self.normalize else total

    def soft_losses(self, surrogate: Surrogate, scores: Tensor, labels: Labels, chunk: slice) -> Tensor:
        weights = labels.target_weights(scores)
        if labels.margin is None:
            losses = self._linear_time_soft_losses(surrogate, scores, weights)
            if losses is not None:
                return losses
        is_unmasked = scores != -math.inf
        weights = weights[..., chunk]
        margin = None if labels.margin is None else labels.margin[chunk]
        references = _subtract_margin(self._references(scores, is_unmasked, chunk), margin)
        classes = torch.arange(scores.shape[-1], device=scores.device)
        is_counted = labels.is_counted(weights, is_unmasked[..., chunk])
        is_competitor = is_unmasked.unsqueeze(-2) & (classes[chunk].unsqueeze(-1) != classes) & is_counted.unsqueeze(-1)
        total = _sum_over_competitors(surrogate, references.unsqueeze(-1), scores.unsqueeze(-2), is_competitor)
        if self.normalize:
            total = total / is_competitor.sum(-1).clamp(min=1)
        return torch.where(is_counted, weights * total, torch.zeros_like(total)).sum(-1)

    def _values(self, surrogate: Surrogate, reference: Tensor, scores: Tensor, index: Tensor, overwrite: bool) -> Tensor:
        """Returns φ(r − s_v) for competitors v, and 0 for the label and masked classes, (N, C)."""
        is_masked = None if surrogate.vanishes else scores == -math.inf
        values = surrogate._value_of_difference(_clamp_to_finite(reference), scores, overwrite=overwrite)
        values = values if is_masked is None else values.masked_fill_(is_masked, 0.0)
        return values.scatter_(-1, index, 0.0)

    def _slopes(
        self, surrogate: Surrogate, reference: Tensor, scores: Tensor, index: Tensor, overwrite: bool
    ) -> tuple[Tensor, float]:
        """Returns (t, c): t · c is φ'(r − s_v) for competitors v, and 0 for the label and masked classes, (N, C)."""
        is_masked = None if surrogate.vanishes else scores == -math.inf
        slopes, factor = surrogate._derivative_of_difference(_clamp_to_finite(reference), scores, overwrite=overwrite)
        slopes = slopes if is_masked is None else slopes.masked_fill_(is_masked, 0.0)
        return slopes.scatter_(-1, index, 0.0), factor


def _sum_over_competitors(surrogate: Surrogate, reference: Tensor, scores: Tensor, is_competitor: Tensor) -> Tensor:
    margin = reference - scores
    # Masked before and after φ, because the gradient at ±inf would be NaN.
    values = surrogate._value(margin.masked_fill(~is_competitor, 0.0))
    return values.masked_fill(~is_competitor, 0.0).sum(-1)


def count_unmasked(scores: Tensor) -> Tensor:
    """Returns the number of unmasked classes per row, (N, 1), as floats: summing booleans is several times slower."""
    # On a CPU one pass finds that no class is masked. On a GPU this check would synchronise.
    if scores.numel() > 0 and is_on_host(scores) and bool(scores.amin() > -math.inf):
        return scores.new_full((scores.shape[0], 1), scores.shape[1])
    return torch.ne(scores, -math.inf, out=torch.empty_like(scores)).sum(-1, keepdim=True)


def _clamp_to_finite(reference: Tensor) -> Tensor:
    # With a reference of −inf the margin to a masked class would be −inf − (−inf) = NaN.
    return reference.clamp(min=torch.finfo(reference.dtype).min)


def _subtract_margin(reference: Tensor, margin: Tensor | None) -> Tensor:
    return reference if margin is None else reference - margin.to(reference.dtype)
