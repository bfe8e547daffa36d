"""Asymmetric generalised cross-entropy."""

import math

import torch
from torch import Tensor

from linearcore._checks import between, positive
from linearcore._typing import Reduction
from linearcore.losses._batch import batch_loss
from linearcore.losses.rivals._over_labels import log_probability, over_labels


def asymmetric_generalized_cross_entropy(
    scores: Tensor,
    target: Tensor,
    *,
    a: float = 0.6,
    q: float = 0.6,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    validate: bool = False,
) -> Tensor:
    """((a + 1)^q − (a + p_y)^q) / q: generalised cross-entropy moved by a, which bounds its slope in p_y.

    Made for labels of which the true class is still the most frequent: an asymmetric loss follows the majority and lets go
    of the rest. a = 0 is `generalized_cross_entropy`, q = 1 half the mean absolute error for any a.

        ℓ(s, y) = ((a + 1)^q − (a + p_y)^q) / q

    Args:
        a: at least 0.
        q: above 0, and not only up to 1. The defaults are the authors' for CIFAR-10.
        scores, target, weight, sample_weight, ignore_index, label_smoothing, reduction, validate: as in `multiclass_loss`.

    Returns:
        A scalar, or the unreduced loss, as `multiclass_loss` gives it.

    Raises:
        ValueError, TypeError: if shapes, dtypes or options do not fit.

    Example:
        >>> asymmetric_generalized_cross_entropy(torch.zeros(3, 4), torch.tensor([0, 3, 1]), a=0.0, q=0.5)
        tensor(1.)

    Cost: O(C) a row; a handful of N×C tensors.

    Reference: Zhou, Liu, Jiang, Gao and Ji, *Asymmetric Loss Functions for Learning with Noisy Labels*, ICML 2021.
    """
    a = between("a", a, 0, math.inf, "for example 0.6; 0 is generalised cross-entropy")
    q = positive("q", q, "for example 0.6")
    height = math.pow(a + 1, q) / q

    def loss(log_p: Tensor) -> Tensor:
        return -torch.expm1(q * (_log_ratio(log_p, a) if a else log_p)) * height

    return batch_loss(
        lambda rows, labels: over_labels(loss, log_probability(rows), labels),
        scores,
        target,
        weight=weight,
        sample_weight=sample_weight,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction=reduction,
        validate=validate,
    )


def _log_ratio(log_p: Tensor, a: float) -> Tensor:
    """log (a + p)/(a + 1) for a > 0: from 1 − p where p is near 1, from log p where it is near 0, all digits in both."""
    half = -math.log(2)
    likely = torch.log1p(torch.expm1(log_p.clamp(min=half)) / (1 + a))
    unlikely = torch.logaddexp(log_p, torch.full_like(log_p, math.log(a))) - math.log1p(a)
    return torch.where(log_p > half, likely, unlikely)
