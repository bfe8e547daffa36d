"""Generalised cross-entropy."""

import math

import torch
from torch import Tensor

from linearcore.losses.baselines._baseline import LabelledRows, Range, baseline


@baseline(
    "GCE",
    is_symmetric=False,
    is_convex=False,
    is_bounded=True,
    q=Range(0, 1, "for example 0.7; 0 is cross-entropy, 1 half the mean absolute error"),
    truncation=Range(0, 1, "0 truncates nothing", excludes_high=True),
)
def generalized_cross_entropy(rows: LabelledRows, *, q: float = 0.7, truncation: float = 0.0) -> Tensor:
    """Generalised cross-entropy: between cross-entropy (q → 0) and half the mean absolute error (q = 1).

    Try this robust loss first: it has one parameter to tune. Symmetric at q = 1 only.

        ℓ(s, y) = (1 − p_y^q) / q,        with k = truncation:  (1 − max(p_y, k)^q) / q

    Args:
        q: in [0, 1]; 0 is cross-entropy itself.
        truncation: k in [0, 1): rows with p_y < k have a constant loss and zero gradient. 0: no truncation.

    Example:
        >>> scores, target = torch.tensor([[2.0, 0.0, 1.0]]), torch.tensor([0])
        >>> [round(float(generalized_cross_entropy(scores, target, q=q)), 4) for q in (0.0, 0.5, 1.0)]
        [0.4076, 0.3688, 0.3348]

    Reference: Zhang and Sabuncu, *Generalized Cross Entropy Loss for Training Deep Neural Networks with Noisy Labels*,
    NeurIPS 2018: L_q, and L_trunc without the step that selects rows to prune.
    """
    log_p = rows.gather_labels(rows.log_probabilities)
    log_p = log_p.clamp(min=math.log(truncation)) if truncation else log_p
    # expm1 is accurate as q → 0, and its gradient is 0 at p = 0, where the gradient of p^q is infinite.
    return -torch.expm1(q * log_p) / q if q else -log_p
