"""Generalised cross-entropy."""

import math

import torch
from torch import Tensor

from linearcore._checks import between, complaint
from linearcore._typing import Reduction
from linearcore.losses._batch import batch_loss
from linearcore.losses.rivals._over_labels import log_probability, over_labels


def generalized_cross_entropy(
    scores: Tensor,
    target: Tensor,
    *,
    q: float = 0.7,
    truncation: float = 0.0,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    validate: bool = False,
) -> Tensor:
    """(1 − p_y^q) / q: between cross-entropy (q → 0) and half the mean absolute error (q = 1).

    One number to tune, from cross-entropy, which fits every label, to MAE, which uniform noise cannot mislead. Symmetric at
    q = 1 only.

        ℓ(s, y) = (1 − p_y^q) / q,        with k = truncation:  (1 − max(p_y, k)^q) / q

    Args:
        q: in [0, 1]; 0 is cross-entropy itself.
        truncation: k in [0, 1): rows whose label has p_y < k cost the same and have no gradient, as outliers. 0: none.
        scores, target, weight, sample_weight, ignore_index, label_smoothing, reduction, validate: as in `multiclass_loss`.

    Returns:
        A scalar, or the unreduced loss, as `multiclass_loss` gives it.

    Raises:
        ValueError, TypeError: if shapes, dtypes or options do not fit.

    Example:
        >>> generalized_cross_entropy(torch.zeros(3, 4), torch.tensor([0, 3, 1]), q=0.5)
        tensor(1.)

    Cost: O(C) a row; a handful of N×C tensors.

    Reference: Zhang and Sabuncu, *Generalized Cross Entropy Loss for Training Deep Neural Networks with Noisy Labels*,
    NeurIPS 2018: L_q, and L_trunc, there with a step that re-estimates which rows to prune.
    """
    q = between("q", q, 0, 1, "for example 0.7; 0 is cross-entropy, 1 half the mean absolute error")
    if not 0 <= truncation < 1:
        raise ValueError(complaint("truncation", "be in [0, 1)", truncation, "0 truncates nothing"))
    least = math.log(truncation) if truncation else None

    def loss(log_p: Tensor) -> Tensor:
        log_p = log_p if least is None else log_p.clamp(min=least)
        # From log p and with expm1, the limit q → 0 loses no digits, and p = 0 has the slope 0 that p^q has not.
        return -torch.expm1(q * log_p) / q if q else -log_p

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
