"""`pairwise`: Σ_{v≠y} φ(s_y − s_v), Eq. (3) of the paper."""

import math
from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar, Literal

import torch
from torch import Tensor

from linearcore.forms._competitors import Competitors, count_unmasked
from linearcore.forms._labels import Labels
from linearcore.forms._margins import LinearMargins, competitor_pairs
from linearcore.forms._rows import SavedTensors
from linearcore.kernels import FormCode
from linearcore.surrogates import Surrogate


@dataclass(frozen=True)
class Pairwise(Competitors):
    """Σ_{v≠y} φ(s_y − s_v), the paper's loss, or its mean over the n − 1 competitors.

    Convex, as smooth as φ, and argmax-consistent for differentiable non-increasing φ. The paper's linear bound is false for
    three or more classes: see section (a) of `docs/reading-the-paper-with-care.md`.

    Reference: Eq. (3) of the paper.
    """

    name: ClassVar[str] = "pairwise"
    code: ClassVar[FormCode | None] = FormCode.PAIRWISE
    class_reference: ClassVar[Literal["label", "mean"] | None] = "label"
    has_sampled_kernels: ClassVar[bool] = True

    def _references(self, scores: Tensor, is_unmasked: Tensor, chunk: slice) -> Tensor:
        return scores[..., chunk]

    def _linear_time_soft_losses(self, surrogate: Surrogate, scores: Tensor, weights: Tensor) -> None:
        return None

    def hard_forward(
        self, surrogate: Surrogate, scores: Tensor, labels: Labels, *, fused: ModuleType | None, overwrite: bool = False
    ) -> tuple[Tensor, SavedTensors]:
        index, label_score = _label_scores(scores, labels)
        is_masked = label_score == -math.inf
        num_competitors = (count_unmasked(scores) - (~is_masked).to(scores.dtype)).clamp_(min=1) if self.normalize else None
        total = self._values(surrogate, label_score, scores, index, overwrite).sum(-1)
        # If the label is masked out the loss is infinite, unless all competitors are masked out too.
        total.masked_fill_(is_masked.squeeze(-1) & (total > 0), math.inf)
        return (total, ()) if num_competitors is None else (total.div_(num_competitors.squeeze(-1)), (num_competitors,))

    def hard_gradient(
        self, surrogate: Surrogate, scores: Tensor, labels: Labels, saved: SavedTensors, grad_output: Tensor, *,
        fused: ModuleType | None, overwrite: bool = False,
    ) -> Tensor:  # fmt: skip
        index, label_score = _label_scores(scores, labels)
        slopes, factor = self._slopes(surrogate, label_score, scores, index, overwrite)
        scale = factor * (grad_output / saved[0] if self.normalize else grad_output)
        label_gradient = slopes.sum(-1, keepdim=True).mul_(scale)
        return slopes.mul_(-scale).scatter_(-1, index, label_gradient)

    def margins(self, labels: Tensor, candidates: Tensor, basis: Tensor) -> LinearMargins:
        pair_labels, competitors = competitor_pairs(labels, candidates)
        eye = torch.eye(len(basis), dtype=basis.dtype)
        return LinearMargins(eye[pair_labels], basis, eye[pair_labels] - eye[competitors])

    def consistency(self, surrogate: Surrogate) -> str | None:
        reason = (
            "swapping two scores lowers the risk if the more probable class had the lower one; separating a tie does too"
        )
        return reason if surrogate.is_monotone else None

    def sampled_losses(
        self, surrogate: Surrogate, label_scores: Tensor, scores: Tensor, log_weight: Tensor, num_classes: int | Tensor
    ) -> Tensor:
        """Returns Σ_k weight_k φ(s_y − s_k): value and gradient are unbiased for the sum over all competitors."""
        return self.sampled_influences(surrogate, label_scores, scores, log_weight, num_classes).sum(-1)

    def sampled_influences(
        self, surrogate: Surrogate, label_scores: Tensor, scores: Tensor, log_weight: Tensor, num_classes: int | Tensor
    ) -> Tensor:
        # Candidates with weight 0 or score −inf are set to 0, because φ(∞) may be nonzero and its slope NaN.
        is_ignored = (log_weight == -math.inf) | (scores == -math.inf)
        margin = (label_scores.unsqueeze(-1) - scores).masked_fill(is_ignored, 0.0)
        weight = log_weight.to(scores.dtype).exp().masked_fill(is_ignored, 0.0)
        terms = weight * surrogate._value(margin)
        if not self.normalize:
            return terms
        if isinstance(num_classes, Tensor):
            return terms / (num_classes - 1).clamp(min=1).unsqueeze(-1)
        return terms / max(1, num_classes - 1)


def _label_scores(scores: Tensor, labels: Labels) -> tuple[Tensor, Tensor]:
    """Returns the label indices and the label scores minus the label margins, (N, 1) each."""
    assert labels.index is not None
    index = labels.index.unsqueeze(-1)
    label_score = torch.gather(scores, -1, index)
    margin = labels.label_margin(scores)
    return index, label_score if margin is None else label_score - margin
