"""Normalised cross-entropy, and its sum with reverse cross-entropy."""

import math

import torch
from torch import Tensor

from linearcore._checks import between
from linearcore._typing import Reduction
from linearcore.kernels import Labels
from linearcore.losses._batch import batch_loss
from linearcore.losses._targets import Rows
from linearcore.losses.rivals._over_labels import log_probability, over_labels
from linearcore.losses.rivals._reverse import LOG_ZERO


def normalized_cross_entropy(
    scores: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    validate: bool = False,
) -> Tensor:
    """log p_y / Σ_v log p_v: the share that the label has in the cross-entropies of all labels.

    Symmetric, as every normalised loss is: Σ_y ℓ(s, y) = 1. On its own it underfits, the authors say; their remedy
    is `active_passive_cross_entropy`.

        ℓ(s, y) = log p_y / Σ_v log p_v,        in [0, 1]

    A class that is not there is not in the sum. A label that is not there costs 1, the most there is; a label without
    competitors 0.

    Args:
        scores, target, weight, sample_weight, ignore_index, label_smoothing, reduction, validate: as in `multiclass_loss`.

    Returns:
        A scalar, or the unreduced loss, as `multiclass_loss` gives it.

    Raises:
        ValueError, TypeError: if shapes, dtypes or options do not fit.

    Example:
        >>> normalized_cross_entropy(torch.zeros(3, 4), torch.tensor([0, 3, 1]))
        tensor(0.2500)

    Cost: O(C) a row; a handful of N×C tensors.

    Reference: Ma, Huang, Wang, Romano, Erfani and Bailey, *Normalized Loss Functions for Deep Learning with Noisy Labels*,
    ICML 2020.
    """
    return batch_loss(
        lambda rows, labels: _row_losses(rows, labels, 1.0, 0.0),
        scores,
        target,
        weight=weight,
        sample_weight=sample_weight,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction=reduction,
        validate=validate,
    )


def active_passive_cross_entropy(
    scores: Tensor,
    target: Tensor,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    log_zero: float = LOG_ZERO,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    validate: bool = False,
) -> Tensor:
    """NCE + RCE: α · normalised cross-entropy + β · reverse cross-entropy, an active and a passive loss.

    The active half pulls the label up, the passive one pushes the others down. Symmetric, since both halves are:
    Σ_y ℓ(s, y) = α − β A (n − 1). The authors raise α against β for many classes.

        ℓ(s, y) = α log p_y / Σ_v log p_v − β A (1 − p_y)

    Args:
        alpha, beta: at least 0. The defaults are the authors' for CIFAR-10.
        log_zero: A, at most 0.
        scores, target, weight, sample_weight, ignore_index, label_smoothing, reduction, validate: as in `multiclass_loss`.

    Returns:
        A scalar, or the unreduced loss, as `multiclass_loss` gives it.

    Raises:
        ValueError, TypeError: if shapes, dtypes or options do not fit.

    Example:
        >>> active_passive_cross_entropy(torch.zeros(3, 4), torch.tensor([0, 3, 1]), log_zero=-4.0)
        tensor(3.2500)

    Cost: O(C) a row; a handful of N×C tensors.

    Reference: Ma et al., as `normalized_cross_entropy`.
    """
    alpha, beta = (between(name, x, 0, math.inf, "for example 1.0") for name, x in (("alpha", alpha), ("beta", beta)))
    scale = beta * between("log_zero", log_zero, -math.inf, 0, "it stands for log 0, for example -4.0")
    return batch_loss(
        lambda rows, labels: _row_losses(rows, labels, alpha, scale),
        scores,
        target,
        weight=weight,
        sample_weight=sample_weight,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction=reduction,
        validate=validate,
    )


def _row_losses(rows: Rows, labels: Labels, active: float, passive: float) -> Tensor:
    """(N,): active · NCE + passive · (p_y − 1)."""
    log_p = log_probability(rows)
    total = log_p.masked_fill(log_p == -math.inf, 0.0).sum(-1, keepdim=True)
    # At least n log n in size, but 0 without competitors, where the loss is 0 whatever it is divided by.
    total = total.masked_fill(total == 0, -1.0)

    def loss(own: Tensor) -> Tensor:
        missing = own == -math.inf
        share = (own.masked_fill(missing, 0.0) / total).masked_fill(missing, 1.0)
        return active * share + passive * torch.expm1(own) if passive else active * share

    return over_labels(loss, log_p, labels)
