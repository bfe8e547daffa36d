"""Symmetric cross-entropy."""

import math

import torch
from torch import Tensor

from linearcore.losses.baselines._baseline import LabelledRows, Range, baseline
from linearcore.losses.baselines._reverse_cross_entropy import LOG_ZERO, LOG_ZERO_RANGE

_WEIGHT = Range(0, math.inf, "for example 1.0")


@baseline("SCE", is_symmetric=False, is_convex=False, is_bounded=False, alpha=_WEIGHT, beta=_WEIGHT, log_zero=LOG_ZERO_RANGE)
def symmetric_cross_entropy(
    rows: LabelledRows, *, alpha: float = 0.1, beta: float = 1.0, log_zero: float = LOG_ZERO
) -> Tensor:
    """α · cross-entropy + β · reverse cross-entropy.

    Its name means that label and prediction change places in the two parts. Σ_y ℓ(s, y) is constant for α = 0 only.

        ℓ(s, y) = −α log p_y − β A (1 − p_y),        p = softmax(s)

    Args:
        alpha, beta: at least 0. The defaults are the authors' for CIFAR-10.
        log_zero: A, at most 0.

    Reference: as `reverse_cross_entropy`, also for probability targets.
    """
    log_p = rows.own(rows.log_probabilities)
    reverse = beta * log_zero * torch.expm1(log_p)
    return reverse - alpha * log_p if alpha else reverse  # 0 · log 0 would be NaN.
