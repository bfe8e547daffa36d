"""What the rows of a batch are labelled with, as the forms take it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from linearcore.kernels import is_differentiated


def is_label(scores: Tensor, index: Tensor) -> Tensor:
    """(N, C) booleans, true at `index` (N, 1). A comparison and not a scatter, so that compilers can fuse it."""
    return torch.arange(scores.shape[-1], device=scores.device) == index


@dataclass(frozen=True)
class Labels:
    """Either one class a row (*hard*) or a weight on every class (*soft*).

    A hard row costs ℓ(s, index). A soft row costs Σ_y share_y ℓ(s, y), where the shares are

        share_y = weight_y · ((1 − smoothing) · q_y + smoothing / C)

    and q is the probability target, or one at `index`.

    Attributes:
        index: (N,) class indices, or None for probability targets.
        probability: (N, C) target probabilities, or None.
        weight: (C,) class weights that go into the shares; hard rows are weighted by the caller.
        margin: (C,) class margins Δ: every margin of a row with label y is reduced by Δ_y.
        smoothing: label smoothing.
    """

    index: Tensor | None = None
    probability: Tensor | None = None
    weight: Tensor | None = None
    margin: Tensor | None = None
    smoothing: float = 0.0

    @property
    def tensors(self) -> tuple[Tensor | None, ...]:
        """Everything but the smoothing, in the order of the fields, as autograd wants to be handed tensors."""
        return self.index, self.probability, self.weight, self.margin

    @classmethod
    def of(cls, tensors: Sequence[Tensor | None], smoothing: float) -> "Labels":
        """The labels that have these `tensors`."""
        index, probability, weight, margin = tensors
        return cls(index, probability, weight, margin, smoothing)

    @property
    def is_hard(self) -> bool:
        return self.probability is None and self.smoothing == 0

    def rows(self, block: slice) -> "Labels":
        """The labels of some rows."""
        return replace(
            self,
            index=None if self.index is None else self.index[block],
            probability=None if self.probability is None else self.probability[block],
        )

    def own_margin(self, scores: Tensor) -> Tensor | None:
        """(N, 1): Δ of each row's label, for hard labels, in the dtype of `scores`."""
        if self.margin is None or self.index is None:
            return None
        return self.margin.to(scores.dtype)[self.index].unsqueeze(-1)

    def share(self, scores: Tensor) -> Tensor:
        """(N, C): how much each class counts in each row, for soft labels."""
        num_classes = scores.shape[-1]
        if self.probability is not None:
            share = self.probability.to(scores.dtype)
            if self.smoothing:
                share = share * (1 - self.smoothing) + self.smoothing / num_classes
        else:
            assert self.index is not None
            share = torch.full_like(scores, self.smoothing / num_classes)
            own = torch.full_like(scores[..., :1], 1 - self.smoothing)
            share = share.scatter_add(-1, self.index.unsqueeze(-1), own)
        return share if self.weight is None else share * self.weight.to(scores.dtype)

    @staticmethod
    def counts(share: Tensor, present: Tensor) -> Tensor:
        """Booleans in the shape of `share`: the labels whose loss enters the sum.

        One without weight stays out, since its loss may be infinite and 0 · inf is NaN. Where the weights are being
        differentiated the loss is their gradient, so that only classes that are not there can stay out.
        """
        return (share != 0) | present if is_differentiated(share) else share != 0
