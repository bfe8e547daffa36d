"""Reductions that follow torch's rules, with weights."""

import math

from torch import Tensor

from linearcore._checks import one_of
from linearcore._typing import Reduction


def check_reduction(reduction: str) -> None:
    """Raises unless `reduction` is one that torch knows."""
    one_of("reduction", reduction, ("mean", "sum", "none"))


def reduce_losses(losses: Tensor, weight: Tensor | None, counted: Tensor | None, reduction: Reduction) -> Tensor:
    """Reduces unweighted losses.

        none   weight · loss
        sum    Σ weight · loss
        mean   Σ weight · loss / Σ weight,   NaN where nothing counts, as torch has it

    Args:
        losses: any shape.
        weight: same shape, or None for ones.
        counted: same shape, booleans; False leaves an element out and makes it 0 in "none". None counts all.
        reduction: "none", "sum" or "mean".
    """
    if counted is not None:
        losses = losses.masked_fill(~counted, 0.0)
    if weight is not None:
        weight = weight.to(losses.dtype)
        weight = weight if counted is None else weight.masked_fill(~counted, 0.0)
        # Without weight even an infinite loss counts for nothing, where 0 · inf would be NaN.
        losses = losses.masked_fill((weight == 0) & (losses == math.inf), 0.0) * weight
    if reduction == "none":
        return losses
    total = losses.sum()
    if reduction == "sum":
        return total
    if weight is not None:
        return total / weight.sum()
    return total / (losses.numel() if counted is None else counted.sum())
