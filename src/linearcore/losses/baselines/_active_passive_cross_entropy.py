"""Active-passive cross-entropy: normalised plus reverse cross-entropy."""

import math

import torch
from torch import Tensor

from linearcore.losses.baselines._baseline import LabelledRows, Range, baseline
from linearcore.losses.baselines._normalized_cross_entropy import cross_entropy_ratio
from linearcore.losses.baselines._reverse_cross_entropy import LOG_ZERO, LOG_ZERO_RANGE

_WEIGHT = Range(0, math.inf, "for example 1.0")


@baseline(
    "NCE+RCE", is_symmetric=True, is_convex=False, is_bounded=True, alpha=_WEIGHT, beta=_WEIGHT, log_zero=LOG_ZERO_RANGE
)
def active_passive_cross_entropy(
    rows: LabelledRows, *, alpha: float = 1.0, beta: float = 1.0, log_zero: float = LOG_ZERO
) -> Tensor:
    """α · normalised cross-entropy + β · reverse cross-entropy: the sum of an active and a passive loss.

    The active term increases the probability of the label; the passive term decreases those of the other classes.
    Both are symmetric: Σ_y ℓ(s, y) = α − β A (n − 1). The authors use a larger α relative to β for many classes.

        ℓ(s, y) = α log p_y / Σ_v log p_v − β A (1 − p_y),        p = softmax(s)

    Args:
        alpha, beta: at least 0. The defaults are the authors' for CIFAR-10.
        log_zero: A, at most 0.

    Reference: Ma et al., as `normalized_cross_entropy`.
    """
    log_p, passive = rows.log_probabilities, beta * log_zero
    label_log_p = rows.gather_labels(log_p)
    active = alpha * cross_entropy_ratio(label_log_p, log_p)
    return active + passive * torch.expm1(label_log_p) if passive else active
