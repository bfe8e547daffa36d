"""Normalised cross-entropy."""

import math

from torch import Tensor

from linearcore.losses.baselines._baseline import LabelledRows, baseline


@baseline("NCE", is_symmetric=True, is_convex=False, is_bounded=True)
def normalized_cross_entropy(rows: LabelledRows) -> Tensor:
    """The cross-entropy of the label divided by the sum of the cross-entropies of all labels.

    Symmetric, as every normalised loss is: Σ_y ℓ(s, y) = 1. The authors report that it underfits on its own, and propose
    `active_passive_cross_entropy`.

        ℓ(s, y) = log p_y / Σ_v log p_v,        in [0, 1],  p = softmax(s)

    Masked classes are left out of the sum. A masked label has the loss 1, the largest; a label without competitors has 0.

    Reference: Ma, Huang, Wang, Romano, Erfani and Bailey, *Normalized Loss Functions for Deep Learning with Noisy Labels*,
    ICML 2020.
    """
    log_p = rows.log_probabilities
    return normalized_share(rows.own(log_p), log_p)


def normalized_share(own: Tensor, log_p: Tensor) -> Tensor:
    """log p_y / Σ_v log p_v of the labels whose log-probabilities are `own`."""
    total = log_p.masked_fill(log_p == -math.inf, 0.0).sum(-1, keepdim=True)
    # The absolute value is at least n log n; without competitors it is 0, and so is the loss, whatever divides it.
    total = total.masked_fill(total == 0, -1.0)
    masked = own == -math.inf
    return (own.masked_fill(masked, 0.0) / total).masked_fill(masked, 1.0)
