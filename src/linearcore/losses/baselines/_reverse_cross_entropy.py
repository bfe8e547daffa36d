"""Reverse cross-entropy."""

import math

import torch
from torch import Tensor

from linearcore.losses.baselines._baseline import LabelledRows, Range, baseline

#: A, which stands for log 0: public implementations clamp the label at 10⁻⁴.
LOG_ZERO = math.log(1e-4)
LOG_ZERO_RANGE = Range(-math.inf, 0, "it stands for log 0, for example -4.0")


@baseline("RCE", is_symmetric=True, is_convex=False, is_bounded=True, log_zero=LOG_ZERO_RANGE)
def reverse_cross_entropy(rows: LabelledRows, *, log_zero: float = LOG_ZERO) -> Tensor:
    """Cross-entropy with label and prediction exchanged, where A < 0 stands for log 0.

    This is −A/2 times the mean absolute error, and as symmetric. It is the passive part of `symmetric_cross_entropy` and
    `active_passive_cross_entropy`.

        ℓ(s, y) = −Σ_v p_v log q_v = −A (1 − p_y),        p = softmax(s),  q_v = 1[v = y],  log 0 = A

    Probability targets take the expectation over y. The reverse cross-entropy of the target itself, −Σ_v p_v log q_v, would
    be equal for certain labels only, and not symmetric.

    Args:
        log_zero: A, at most 0.

    Reference: Wang, Ma, Chen, Luo, Yi and Bailey, *Symmetric Cross Entropy for Robust Learning with Noisy Labels*,
    ICCV 2019.
    """
    return log_zero * torch.expm1(rows.own(rows.log_probabilities))
