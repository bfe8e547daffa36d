"""Reverse and symmetric cross-entropy."""

import math

import torch
from torch import Tensor

from linearcore._checks import between
from linearcore._typing import Reduction
from linearcore.losses._batch import batch_loss
from linearcore.losses.rivals._over_labels import log_probability, over_labels

#: A, what stands for log 0: the clamp of the label at 10⁻⁴ that public implementations have.
LOG_ZERO = math.log(1e-4)


def reverse_cross_entropy(
    scores: Tensor,
    target: Tensor,
    *,
    log_zero: float = LOG_ZERO,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    validate: bool = False,
) -> Tensor:
    """−A (1 − p_y), cross-entropy with label and prediction exchanged, A < 0 standing for log 0.

    The mean absolute error times −A/2, symmetric as that is. It is the passive half of
    `symmetric_cross_entropy` and `active_passive_cross_entropy`.

        ℓ(s, y) = −Σ_v p_v log q_v = −A (1 − p_y),        q_v = 1[v = y],  log 0 = A

    Probability targets take the expectation of this over y, as every loss here does. Reversed cross-entropy of the target
    itself, −Σ_v p_v log q_v, would agree with it for sure labels only, and would not be symmetric.

    Args:
        log_zero: A, at most 0.
        scores, target, weight, sample_weight, ignore_index, label_smoothing, reduction, validate: as in `multiclass_loss`.

    Returns:
        A scalar, or the unreduced loss, as `multiclass_loss` gives it.

    Raises:
        ValueError, TypeError: if shapes, dtypes or options do not fit.

    Example:
        >>> reverse_cross_entropy(torch.zeros(3, 4), torch.tensor([0, 3, 1]), log_zero=-4.0)
        tensor(3.)

    Cost: O(C) a row; a handful of N×C tensors.

    Reference: Wang, Ma, Chen, Luo, Yi and Bailey, *Symmetric Cross Entropy for Robust Learning with Noisy Labels*,
    ICCV 2019.
    """
    scale = between("log_zero", log_zero, -math.inf, 0, "it stands for log 0, for example -4.0")
    return batch_loss(
        lambda rows, labels: over_labels(lambda log_p: scale * torch.expm1(log_p), log_probability(rows), labels),
        scores,
        target,
        weight=weight,
        sample_weight=sample_weight,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction=reduction,
        validate=validate,
    )


def symmetric_cross_entropy(
    scores: Tensor,
    target: Tensor,
    *,
    alpha: float = 0.1,
    beta: float = 1.0,
    log_zero: float = LOG_ZERO,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    validate: bool = False,
) -> Tensor:
    """α · cross-entropy + β · reverse cross-entropy.

    Symmetric in label and prediction, which its name means; Σ_y ℓ(s, y) is not constant unless α = 0.

        ℓ(s, y) = −α log p_y − β A (1 − p_y)

    Args:
        alpha, beta: at least 0. The defaults are the authors' for CIFAR-10.
        log_zero: A, at most 0.
        scores, target, weight, sample_weight, ignore_index, label_smoothing, reduction, validate: as in `multiclass_loss`.

    Returns:
        A scalar, or the unreduced loss, as `multiclass_loss` gives it.

    Raises:
        ValueError, TypeError: if shapes, dtypes or options do not fit.

    Example:
        >>> symmetric_cross_entropy(torch.zeros(3, 4), torch.tensor([0, 3, 1]), alpha=1.0, beta=1.0, log_zero=-4.0)
        tensor(4.3863)

    Cost: O(C) a row; a handful of N×C tensors.

    Reference: as `reverse_cross_entropy`. Probability targets too are treated as there.
    """
    alpha, beta = (between(name, x, 0, math.inf, "for example 1.0") for name, x in (("alpha", alpha), ("beta", beta)))
    scale = beta * between("log_zero", log_zero, -math.inf, 0, "it stands for log 0, for example -4.0")

    def loss(log_p: Tensor) -> Tensor:
        reverse = scale * torch.expm1(log_p)
        return reverse - alpha * log_p if alpha else reverse  # 0 · log 0 would be NaN.

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
