"""`centered`: Σ_{v≠y} φ(−(s_v − s̄)), the form whose linear bound holds."""

import math
from dataclasses import dataclass

from torch import Tensor

from linearcore.kernels._form import Kept
from linearcore.kernels._labels import Labels
from linearcore.kernels._rivals import RivalKernel, count_present


@dataclass(frozen=True)
class CenteredKernel(RivalKernel):
    """The reference is the mean score of the classes that are there."""

    def soft_is_quadratic(self, labels: Labels) -> bool:
        return labels.margin is not None

    def _references(self, scores: Tensor, present: Tensor, chunk: slice) -> Tensor:
        total = scores.masked_fill(~present, 0.0).sum(-1, keepdim=True)
        return total / present.to(scores.dtype).sum(-1, keepdim=True).clamp(min=1)

    def _soft_without_margin(self, scores: Tensor, share: Tensor) -> Tensor:
        # Every label sees the same margins, so a competitor v counts with the shares of all labels but its own.
        present = scores != -math.inf
        if self.normalize:
            share = share / (present.sum(-1, keepdim=True) - present.to(share.dtype)).clamp(min=1)
        against = share.sum(-1, keepdim=True) - share
        counts = present & Labels.counts(against, present)
        margins = (self._references(scores, present, slice(None)) - scores).masked_fill(~counts, 0.0)
        return (against * self.surrogate._value(margins)).masked_fill(~counts, 0.0).sum(-1)

    def hard_forward(self, scores: Tensor, labels: Labels, *, overwrite: bool = False) -> tuple[Tensor, Kept]:
        present = count_present(scores)
        there = scores if _all(present, scores) else scores.masked_fill(scores == -math.inf, 0.0)
        mean = there.sum(-1, keepdim=True).div_(present.clamp(min=1))
        index, reference = self._reference(mean, labels)
        own = scores.gather(-1, index) != -math.inf
        total = self._values(reference, scores, index, overwrite).sum(-1)
        if not self.normalize:
            return total, (mean, present)
        rivals = (present - own.to(scores.dtype)).clamp_(min=1)
        return total.div_(rivals.squeeze(-1)), (mean, present, rivals)

    def hard_gradient(
        self, scores: Tensor, labels: Labels, kept: Kept, upstream: Tensor, *, overwrite: bool = False
    ) -> Tensor:
        mean, present = kept[:2]
        index, reference = self._reference(mean, labels)
        absent = None if _all(present, scores) else scores == -math.inf
        slopes, factor = self._slopes(reference, scores, index, overwrite)
        scale = factor * (upstream / kept[2] if self.normalize else upstream)
        pull = slopes.sum(-1, keepdim=True).div_(present.clamp(min=1))
        gradient = slopes.sub_(pull).mul_(-scale)
        return gradient if absent is None else gradient.masked_fill_(absent, 0.0)

    @staticmethod
    def _reference(mean: Tensor, labels: Labels) -> tuple[Tensor, Tensor]:
        assert labels.index is not None
        margin = labels.own_margin(mean)
        return labels.index.unsqueeze(-1), mean if margin is None else mean - margin


def _all(present: Tensor, scores: Tensor) -> bool:
    """Whether every row is known to have all its classes; a device is not asked, since the answer would be awaited."""
    return scores.device.type == "cpu" and bool((present == scores.shape[1]).all())
