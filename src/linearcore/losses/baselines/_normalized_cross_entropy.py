"""Normalised cross-entropy."""

import math

from torch import Tensor

from linearcore.losses.baselines._baseline import LabelledRows, baseline


@baseline("NCE", is_symmetric=True, is_convex=False, is_bounded=True)
def normalized_cross_entropy(rows: LabelledRows) -> Tensor:
    """The cross-entropy of the label divided by the sum of the cross-entropies of all labels.

    Symmetric: Σ_y ℓ(s, y) = 1, as for every normalised loss. The authors report that it underfits and propose
    `active_passive_cross_entropy`.

        ℓ(s, y) = log p_y / Σ_v log p_v,        in [0, 1],  p = softmax(s)

    The sum is over unmasked classes. The loss is 0 if the label has no competitors.

    Reference: Ma, Huang, Wang, Romano, Erfani and Bailey, *Normalized Loss Functions for Deep Learning with Noisy Labels*,
    ICML 2020.
    """
    log_p = rows.log_probabilities
    return cross_entropy_ratio(rows.gather_labels(log_p), log_p)


def cross_entropy_ratio(label_log_p: Tensor, log_p: Tensor) -> Tensor:
    """Returns log p_y / Σ_v log p_v for the log-probabilities of labels and of all classes."""
    total = log_p.masked_fill(log_p == -math.inf, 0.0).sum(-1, keepdim=True)
    # |total| ≥ n log n with n ≥ 2 classes. Without competitors it is 0; then avoid 0/0, the loss is 0.
    total = total.masked_fill(total == 0, -1.0)
    is_masked = label_log_p == -math.inf
    return (label_log_p.masked_fill(is_masked, 0.0) / total).masked_fill(is_masked, 1.0)
