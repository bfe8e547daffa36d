"""Labels of the rows of a batch: class indices, or probabilities over the classes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from linearcore.kernels import is_differentiated


def label_mask(scores: Tensor, index: Tensor) -> Tensor:
    """Returns booleans (N, C) that are True at `index` (N, 1). A comparison, because compilers cannot fuse a scatter."""
    return torch.arange(scores.shape[-1], device=scores.device) == index


@dataclass(frozen=True)
class Labels:
    """Labels of N rows: one class per row (*hard*) or a weight for each class (*soft*).

    The loss of a row is ℓ(s, index) for hard labels and Σ_y w_y ℓ(s, y) for soft labels, with the target weights

        w_y = weight_y · ((1 − smoothing) · q_y + smoothing / C)

    where q is the probability target, or 1 at `index` and 0 elsewhere.

    Attributes:
        index: (N,) class indices, or None for probability targets.
        probability: (N, C) target probabilities, or None.
        weight: (C,) class weights for soft labels. For hard labels the caller applies the class weights.
        margin: (C,) class margins Δ: all margins of a row with label y are reduced by Δ_y.
        smoothing: label smoothing.
    """

    index: Tensor | None = None
    probability: Tensor | None = None
    weight: Tensor | None = None
    margin: Tensor | None = None
    smoothing: float = 0.0

    @property
    def tensors(self) -> tuple[Tensor | None, ...]:
        """All tensor fields in order, as separate arguments for an autograd function."""
        return self.index, self.probability, self.weight, self.margin

    @classmethod
    def from_tensors(cls, tensors: Sequence[Tensor | None], smoothing: float) -> "Labels":
        """Inverse of `tensors`."""
        index, probability, weight, margin = tensors
        return cls(index, probability, weight, margin, smoothing)

    @property
    def is_hard(self) -> bool:
        return self.probability is None and self.smoothing == 0

    def rows(self, block: slice) -> "Labels":
        """Returns the labels of a block of rows."""
        return replace(
            self,
            index=None if self.index is None else self.index[block],
            probability=None if self.probability is None else self.probability[block],
        )

    def label_margin(self, scores: Tensor) -> Tensor | None:
        """Returns Δ_y of each row's hard label, (N, 1), in the dtype of `scores`."""
        if self.margin is None or self.index is None:
            return None
        return self.margin.to(scores.dtype)[self.index].unsqueeze(-1)

    def has_weight(self, scores: Tensor) -> Tensor:
        """Returns booleans in a shape that broadcasts to (N, C): the target weight w_y is not 0."""
        if self.smoothing:
            is_label = torch.ones(1, scores.shape[-1], dtype=torch.bool, device=scores.device)
        elif self.probability is not None:
            is_label = self.probability != 0
        else:
            assert self.index is not None
            is_label = label_mask(scores, self.index.unsqueeze(-1))
        return is_label if self.weight is None else is_label & (self.weight != 0)

    def target_weights(self, scores: Tensor) -> Tensor:
        """Returns w, (N, C), for soft labels."""
        num_classes = scores.shape[-1]
        if self.probability is not None:
            weights = self.probability.to(scores.dtype)
            if self.smoothing:
                weights = weights * (1 - self.smoothing) + self.smoothing / num_classes
        else:
            assert self.index is not None
            weights = torch.full_like(scores, self.smoothing / num_classes)
            index_weight = torch.full_like(scores[..., :1], 1 - self.smoothing)
            weights = weights.scatter_add(-1, self.index.unsqueeze(-1), index_weight)
        return weights if self.weight is None else weights * self.weight.to(scores.dtype)

    @staticmethod
    def is_counted(weights: Tensor, is_unmasked: Tensor) -> Tensor:
        """Returns booleans in the shape of `weights`: the labels whose loss enters the weighted sum.

        Labels with weight 0 are left out, because their loss may be infinite and 0 · inf is NaN. If the weights require a
        gradient, which is the loss, only labels that are masked out as well are left out.
        """
        return (weights != 0) | is_unmasked if is_differentiated(weights) else weights != 0
