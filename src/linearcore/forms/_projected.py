"""Scores = hidden · weightᵀ + bias, of which a loss computes a chunk at a time, and the gradients that it adds up."""

from typing import NamedTuple

import torch
from torch import Tensor

from linearcore._typing import compute_dtype
from linearcore.kernels import fused_kernels_for, has_unrounded_product


class Projection(NamedTuple):
    """A linear layer and its input.

    Attributes:
        hidden: (N, H), contiguous.
        weight: (C, H), contiguous.
        bias: (C,), contiguous, or None.
    """

    hidden: Tensor
    weight: Tensor
    bias: Tensor | None

    @classmethod
    def of(cls, hidden: Tensor, weight: Tensor, bias: Tensor | None) -> "Projection":
        """Returns the projection of tensors with any strides."""
        return cls(hidden.contiguous(), weight.contiguous(), None if bias is None else bias.contiguous())

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of losses and sums."""
        return compute_dtype(self.hidden)

    def scores(self, rows: slice, classes: slice, out: Tensor) -> Tensor:
        """Writes the scores of these rows and classes to `out`."""
        hidden, weight = self.hidden[rows], self.weight[classes].t()
        if self.bias is None:
            return torch.mm(hidden, weight, out=out)
        return torch.addmm(self.bias[classes], hidden, weight, out=out)

    def label_scores(self, index: Tensor) -> Tensor:
        """Returns the scores (N,) of the classes `index` (N,), in `dtype`."""
        hidden, weight, bias = self
        fused = fused_kernels_for(hidden, weight)
        if fused is not None:
            scores: Tensor = fused.label_scores(hidden, weight, bias, index)
            return scores
        scores = torch.linalg.vecdot(hidden.to(self.dtype), weight[index].to(self.dtype))
        return scores if bias is None else scores + bias[index].to(self.dtype)


class Gradients(NamedTuple):
    """Gradients of a projection; None for what needs none."""

    hidden: Tensor | None
    weight: Tensor | None
    bias: Tensor | None


def add_product(total: Tensor, left: Tensor, right: Tensor, *, is_first: bool) -> None:
    """Adds left @ right to `total`, or overwrites it if `is_first`.

    For half-precision factors `total` is float32. The product is rounded to half precision, unless `has_unrounded_product`.
    """
    if total.dtype == left.dtype:
        if is_first:
            torch.mm(left, right, out=total)
        else:
            torch.addmm(total, left, right, out=total)
    elif has_unrounded_product(left, right):
        if is_first:
            torch.mm(left, right, out_dtype=total.dtype, out=total)
        else:
            torch.addmm(total, left, right, out_dtype=total.dtype, out=total)
    elif is_first:
        total.copy_(left @ right)
    else:
        total += left @ right
