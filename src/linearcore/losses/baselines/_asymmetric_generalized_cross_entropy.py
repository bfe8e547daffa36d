"""Asymmetric generalised cross-entropy."""

import math

import torch
from torch import Tensor

from linearcore.losses.baselines._baseline import LabelledRows, Range, baseline


@baseline(
    "AGCE",
    is_symmetric=False,
    is_convex=False,
    is_bounded=True,
    a=Range(0, math.inf, "for example 0.6; 0 is generalised cross-entropy"),
    q=Range(0, math.inf, "for example 0.6", excludes_low=True),
)
def asymmetric_generalized_cross_entropy(rows: LabelledRows, *, a: float = 0.6, q: float = 0.6) -> Tensor:
    """Generalised cross-entropy with p_y shifted by a, which bounds its slope in p_y.

    Use it if the true class is still the most frequent label under the noise: an asymmetric loss fits the majority label.
    a = 0 is `generalized_cross_entropy`; q = 1 is half the mean absolute error for every a.

        ℓ(s, y) = ((a + 1)^q − (a + p_y)^q) / q,        p = softmax(s)

    Args:
        a: at least 0.
        q: above 0; it may be above 1. The defaults are the authors' for CIFAR-10.

    Reference: Zhou, Liu, Jiang, Gao and Ji, *Asymmetric Loss Functions for Learning with Noisy Labels*, ICML 2021.
    """
    log_p = rows.gather_labels(rows.log_probabilities)
    return -torch.expm1(q * (_log_ratio(log_p, a) if a else log_p)) * (math.pow(a + 1, q) / q)


def _log_ratio(log_p: Tensor, a: float) -> Tensor:
    """Returns log((a + p)/(a + 1)) for a > 0 in full precision: from 1 − p if p > ½, otherwise from log p."""
    half = -math.log(2)
    from_complement = torch.log1p(torch.expm1(log_p.clamp(min=half)) / (1 + a))
    from_log = torch.logaddexp(log_p, torch.full_like(log_p, math.log(a))) - math.log1p(a)
    return torch.where(log_p > half, from_complement, from_log)
