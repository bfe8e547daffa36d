"""What `pairwise` and `centered` share: a sum, or a mean, over competitors of φ(reference − s_v)."""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from linearcore._torch import is_on_host
from linearcore.forms._base import Form
from linearcore.forms._labels import Labels, is_label
from linearcore.surrogates import Surrogate


@dataclass(frozen=True)
class Competitors(Form):
    """ℓ(s, y) = Σ_{v≠y} φ(r_y − s_v − Δ_y), or its mean over the competitors v that are not masked out.

    The reference r_y is what the two forms differ in: the label's own score, or the mean score.
    """

    normalize: bool = True
    has_fast_path: ClassVar[bool] = True

    def normalized(self, normalize: bool) -> Self:
        return replace(self, normalize=normalize)

    @property
    def is_mean(self) -> bool:
        return self.normalize

    @abstractmethod
    def _references(self, scores: Tensor, present: Tensor, chunk: slice) -> Tensor:
        """(N, K) or (N, 1): r_y for the labels y in `chunk`, differentiable."""

    @abstractmethod
    def _soft_without_margin(self, surrogate: Surrogate, scores: Tensor, share: Tensor) -> Tensor | None:
        """The soft loss where it costs no more than O(C) a row, else None."""

    def hard(self, surrogate: Surrogate, scores: Tensor, labels: Labels) -> Tensor:
        assert labels.index is not None
        index = labels.index.unsqueeze(-1)
        present = scores != -math.inf
        references = self._references(scores, present, slice(None))
        reference = references if references.shape[-1] == 1 else references.gather(-1, index)
        competitors = present & ~is_label(scores, index)
        total = _over(surrogate, _minus(reference, labels.own_margin(scores)), scores, competitors)
        return total / competitors.to(scores.dtype).sum(-1).clamp(min=1) if self.normalize else total

    def soft(self, surrogate: Surrogate, scores: Tensor, labels: Labels, chunk: slice) -> Tensor:
        share = labels.share(scores)
        if labels.margin is None and (short := self._soft_without_margin(surrogate, scores, share)) is not None:
            return short
        present = scores != -math.inf
        share = share[..., chunk]
        margin = None if labels.margin is None else labels.margin[chunk]
        references = _minus(self._references(scores, present, chunk), margin)
        classes = torch.arange(scores.shape[-1], device=scores.device)
        # A label whose reference is not −inf has a finite loss, and so a gradient by its share, even if it is masked out.
        counts = labels.counts(share, (references != -math.inf).expand_as(share))
        competitors = present.unsqueeze(-2) & (classes[chunk].unsqueeze(-1) != classes) & counts.unsqueeze(-1)
        total = _over(surrogate, references.unsqueeze(-1), scores.unsqueeze(-2), competitors)
        if self.normalize:
            total = total / competitors.sum(-1).clamp(min=1)
        return torch.where(counts, share * total, torch.zeros_like(total)).sum(-1)

    def _values(self, surrogate: Surrogate, reference: Tensor, scores: Tensor, index: Tensor, overwrite: bool) -> Tensor:
        """(N, C): φ(r − s_v) for competitors v, 0 for everyone else."""
        absent = None if surrogate.vanishes else scores == -math.inf
        values = surrogate._value_of_difference(_finite(reference), scores, overwrite=overwrite)
        values = values if absent is None else values.masked_fill_(absent, 0.0)
        return values.scatter_(-1, index, 0.0)

    def _slopes(
        self, surrogate: Surrogate, reference: Tensor, scores: Tensor, index: Tensor, overwrite: bool
    ) -> tuple[Tensor, float]:
        """(N, C): φ'(r − s_v) for competitors v, 0 for everyone else, up to a factor; and the factor."""
        absent = None if surrogate.vanishes else scores == -math.inf
        slopes, factor = surrogate._derivative_of_difference(_finite(reference), scores, overwrite=overwrite)
        slopes = slopes if absent is None else slopes.masked_fill_(absent, 0.0)
        return slopes.scatter_(-1, index, 0.0), factor


def _over(surrogate: Surrogate, reference: Tensor, scores: Tensor, competitors: Tensor) -> Tensor:
    margin = reference - scores
    # Cleared before φ as well as after, or its gradient at ±inf would reach the scores as NaN.
    values = surrogate._value(margin.masked_fill(~competitors, 0.0))
    return values.masked_fill(~competitors, 0.0).sum(-1)


def count_present(scores: Tensor) -> Tensor:
    """(N, 1): how many classes are not masked out, as floats, whose sum takes a fraction of the time that booleans take."""
    # On a CPU one look tells whether there is anything to count; on a device the answer would have to be awaited.
    if scores.numel() > 0 and is_on_host(scores) and bool(scores.amin() > -math.inf):
        return scores.new_full((scores.shape[0], 1), scores.shape[1])
    return torch.ne(scores, -math.inf, out=torch.empty_like(scores)).sum(-1, keepdim=True)


def _finite(reference: Tensor) -> Tensor:
    # A reference of −inf would make NaN of the margin to a masked class; the least float does not.
    return reference.clamp(min=torch.finfo(reference.dtype).min)


def _minus(reference: Tensor, margin: Tensor | None) -> Tensor:
    return reference if margin is None else reference - margin.to(reference.dtype)
