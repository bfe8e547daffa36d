"""Reverse cross-entropy."""

import math

import torch
from torch import Tensor

from linearcore.losses.baselines._baseline import LabelledRows, Range, baseline

#: A, the value used for log 0: public implementations clamp the one-hot label at 10⁻⁴.
LOG_ZERO = math.log(1e-4)
LOG_ZERO_RANGE = Range(-math.inf, 0, "it replaces log 0, for example -4.0")


@baseline("RCE", is_symmetric=True, is_convex=False, is_bounded=True, log_zero=LOG_ZERO_RANGE)
def reverse_cross_entropy(rows: LabelledRows, *, log_zero: float = LOG_ZERO) -> Tensor:
    """Cross-entropy with label and prediction exchanged; A < 0 replaces log 0.

    Equals −A/2 times the mean absolute error, so it is symmetric. It is the passive term of `symmetric_cross_entropy` and
    `active_passive_cross_entropy`.

        ℓ(s, y) = −Σ_v p_v log q_v = −A (1 − p_y),        p = softmax(s),  q_v = 1[v = y],  log 0 = A

    Probability targets give the expectation over y. The reverse cross-entropy −Σ_v p_v log q_v of the target q differs
    unless q is one-hot, and is not symmetric.

    Args:
        log_zero: A, at most 0.

    Reference: Wang, Ma, Chen, Luo, Yi and Bailey, *Symmetric Cross Entropy for Robust Learning with Noisy Labels*,
    ICCV 2019.
    """
    return log_zero * torch.expm1(rows.gather_labels(rows.log_probabilities))
