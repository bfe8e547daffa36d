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

    The name refers to exchanging label and prediction. The loss is symmetric (Σ_y ℓ(s, y) constant) for α = 0 only.

        ℓ(s, y) = −α log p_y − β A (1 − p_y),        p = softmax(s)

    Args:
        alpha, beta: at least 0. The defaults are the authors' for CIFAR-10.
        log_zero: A, at most 0.

    Reference: Wang et al., as `reverse_cross_entropy`, which also explains probability targets.
    """
    log_p = rows.gather_labels(rows.log_probabilities)
    reverse = beta * log_zero * torch.expm1(log_p)
    return reverse - alpha * log_p if alpha else reverse  # Avoids 0 · log 0 = NaN.
