"""Weighted reductions that follow torch's rules."""

import math

from torch import Tensor

from linearcore._checks import one_of
from linearcore._typing import Reduction


def check_reduction(reduction: str) -> None:
    """Raises if `reduction` is not "mean", "sum" or "none"."""
    one_of("reduction", reduction, ("mean", "sum", "none"))


def reduce_losses(losses: Tensor, weight: Tensor | None, is_counted: Tensor | None, reduction: Reduction) -> Tensor:
    """Reduces unweighted losses.

        none   weight · loss
        sum    Σ weight · loss
        mean   Σ weight · loss / Σ weight,   NaN if all elements are ignored, as in torch

    Args:
        losses: any shape.
        weight: same shape, or None for ones.
        is_counted: same shape, booleans; elements with False are ignored, and 0 with "none". None counts all.
        reduction: "none", "sum" or "mean".
    """
    if is_counted is not None:
        losses = losses.masked_fill(~is_counted, 0.0)
    if weight is not None:
        weight = weight.to(losses.dtype)
        weight = weight if is_counted is None else weight.masked_fill(~is_counted, 0.0)
        # Avoids 0 · inf = NaN for elements with weight 0 and infinite loss.
        losses = losses.masked_fill((weight == 0) & (losses == math.inf), 0.0) * weight
    if reduction == "none":
        return losses
    total = losses.sum()
    if reduction == "sum":
        return total
    if weight is not None:
        return total / weight.sum()
    return total / (losses.numel() if is_counted is None else is_counted.sum())
