"""What the rows of a batch are labelled with, as the kernels take it."""

from typing import NamedTuple

import torch
from torch import Tensor


class Labels(NamedTuple):
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
    def is_hard(self) -> bool:
        return self.probability is None and self.smoothing == 0

    @property
    def needs_gradient(self) -> bool:
        """Whether anything besides the scores is being differentiated."""
        tensors = (self.probability, self.weight, self.margin)
        return any(tensor is not None and tensor.requires_grad for tensor in tensors)

    def rows(self, block: slice) -> "Labels":
        """The labels of some rows."""
        return self._replace(
            index=None if self.index is None else self.index[block],
            probability=None if self.probability is None else self.probability[block],
        )

    def own_margin(self) -> Tensor | None:
        """(N, 1): Δ of each row's label, for hard labels."""
        if self.margin is None or self.index is None:
            return None
        return self.margin[self.index].unsqueeze(-1)

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
