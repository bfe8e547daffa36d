"""`centered`: Σ_{v≠y} φ(−(s_v − s̄)), the form whose linear bound holds."""

import math
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore._torch import is_on_host
from linearcore.forms._competitors import Competitors, count_present
from linearcore.forms._labels import Labels
from linearcore.forms._margins import LinearMargins, pairs
from linearcore.forms._rows import Kept
from linearcore.surrogates import Surrogate


@dataclass(frozen=True)
class Centered(Competitors):
    """Σ_{v≠y} φ(−(s_v − s̄)) with s̄ the mean score, or its mean over the n − 1 competitors.

    The linear bound holds for one-sided linear-core φ: 0-1 regret ≤ surrogate regret / τ for the sum, times n − 1 for the
    mean. Hard to train with many classes. It needs the mean over all classes, and so cannot be sampled.
    """

    name: ClassVar[str] = "centered"
    has_linear_bound: ClassVar[bool] = True

    def check(self, surrogate: Surrogate) -> None:
        if surrogate.core is not None and surrogate.core[0] > -math.inf:
            must = 'be one-sided for form="centered"'
            advice = "a tail steeper than the core breaks the linear bound, this form's purpose; use sides=1 or another form"
            raise ValueError(complaint("surrogate", must, surrogate, advice))

    def soft_is_quadratic(self, labels: Labels) -> bool:
        return labels.margin is not None

    def _references(self, scores: Tensor, present: Tensor, chunk: slice) -> Tensor:
        total = scores.masked_fill(~present, 0.0).sum(-1, keepdim=True)
        return total / present.to(scores.dtype).sum(-1, keepdim=True).clamp(min=1)

    def _soft_without_margin(self, surrogate: Surrogate, scores: Tensor, share: Tensor) -> Tensor:
        # Every label sees the same margins, so a competitor v counts with the shares of all labels but its own.
        present = scores != -math.inf
        if self.normalize:
            share = share / (present.sum(-1, keepdim=True) - present.to(share.dtype)).clamp(min=1)
        against = share.sum(-1, keepdim=True) - share
        counts = present & Labels.counts(against, present)
        margins = (self._references(scores, present, slice(None)) - scores).masked_fill(~counts, 0.0)
        return (against * surrogate._value(margins)).masked_fill(~counts, 0.0).sum(-1)

    def hard_forward(
        self, surrogate: Surrogate, scores: Tensor, labels: Labels, *, fused: ModuleType | None, overwrite: bool = False
    ) -> tuple[Tensor, Kept]:
        present = count_present(scores)
        there = scores if _all(present, scores) else scores.masked_fill(scores == -math.inf, 0.0)
        mean = there.sum(-1, keepdim=True).div_(present.clamp(min=1))
        index, reference = _reference(mean, labels)
        own = scores.gather(-1, index) != -math.inf
        total = self._values(surrogate, reference, scores, index, overwrite).sum(-1)
        if not self.normalize:
            return total, (mean, present)
        competitors = (present - own.to(scores.dtype)).clamp_(min=1)
        return total.div_(competitors.squeeze(-1)), (mean, present, competitors)

    def hard_gradient(
        self, surrogate: Surrogate, scores: Tensor, labels: Labels, kept: Kept, upstream: Tensor, *,
        fused: ModuleType | None, overwrite: bool = False,
    ) -> Tensor:  # fmt: skip
        mean, present = kept[:2]
        index, reference = _reference(mean, labels)
        absent = None if _all(present, scores) else scores == -math.inf
        slopes, factor = self._slopes(surrogate, reference, scores, index, overwrite)
        scale = factor * (upstream / kept[2] if self.normalize else upstream)
        pull = slopes.sum(-1, keepdim=True).div_(present.clamp(min=1))
        gradient = slopes.sub_(pull).mul_(-scale)
        return gradient if absent is None else gradient.masked_fill_(absent, 0.0)

    def margins(self, own: Tensor, candidates: Tensor, basis: Tensor) -> LinearMargins:
        eye = torch.eye(len(basis), dtype=basis.dtype)
        means = eye[candidates].mean(1, keepdim=True)
        competes = candidates != own.unsqueeze(-1)
        # Labels that share their candidates share their margins.
        rows, place = (means - eye[candidates])[competes].unique(dim=0, return_inverse=True)
        labels, _ = pairs(own, candidates)
        return LinearMargins(torch.zeros_like(rows).index_add_(0, place, eye[labels]), basis, rows)

    def consistency(self, surrogate: Surrogate) -> str:
        return "at the minimum (1 − p_v) f'(s_v − mean) is the same for all v, and f' rises"


def _reference(mean: Tensor, labels: Labels) -> tuple[Tensor, Tensor]:
    """(N, 1) each: the labels, and the mean score less their margins."""
    assert labels.index is not None
    margin = labels.own_margin(mean)
    return labels.index.unsqueeze(-1), mean if margin is None else mean - margin


def _all(present: Tensor, scores: Tensor) -> bool:
    """Whether every row is known to have all its classes. False on a device, where finding out would wait for it."""
    return is_on_host(scores) and bool((present == scores.shape[1]).all())
