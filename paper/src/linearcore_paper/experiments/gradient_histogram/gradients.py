"""Gradient magnitudes of a loss for each sample, with two definitions.

The paper plots |ℓ'(h(x))| between 0 and 1 without defining it. We use |∂ℓ/∂s_y| at the noisy label y, which is in [0, 1] for
both losses: 1 − p_y for cross-entropy, and the mean of |φ'(s_y − s_v)| over the competing classes v for the pairwise linear
core. This is the gradient in training. Since the paper refers to one margin u, we also compute it for the label and its
strongest competing class only, as with two classes: 1 − σ(u), and |φ'(u)|.
"""

from typing import Any

import torch
from torch import Tensor

from linearcore_paper.vision import Loss

BINS = 50
#: Lower limit of magnitudes that the paper calls high.
HIGH = 0.6


def magnitudes(loss: Loss, scores: Tensor, labels: Tensor) -> Tensor:
    """Returns |∂ℓ/∂s_y| of every row, (N,) float64 in [0, 1].

    Args:
        loss: returns losses (N,), each of which depends on one row only.
        scores: (N, C).
        labels: (N,) noisy labels.

    Raises:
        ValueError: if a magnitude is above 1 beyond rounding, which means that the loss has another scale.

    Example:
        >>> magnitudes(torch.nn.CrossEntropyLoss(reduction="none"), torch.zeros(1, 4), torch.tensor([2]))
        tensor([0.7500], dtype=torch.float64)
    """
    inputs = scores.detach().double().requires_grad_()
    loss(inputs, labels).sum().backward()
    assert inputs.grad is not None
    values = inputs.grad.gather(1, labels.unsqueeze(1)).squeeze(1).abs()
    if bool((values > 1 + 1e-9).any()):
        raise ValueError(f"magnitudes must lie in [0, 1], got {float(values.max()):g}; divide the loss by its slope")
    return values.clamp(max=1.0)


def magnitudes_of_two(loss: Loss, scores: Tensor, labels: Tensor) -> Tensor:
    """Returns `magnitudes` for the noisy label and its strongest competing class only, without the other classes.

    Example:
        >>> magnitudes_of_two(torch.nn.CrossEntropyLoss(reduction="none"), torch.zeros(1, 4), torch.tensor([2]))
        tensor([0.5000], dtype=torch.float64)
    """
    index = labels.unsqueeze(1)
    strongest = scores.scatter(1, index, -torch.inf).amax(1, keepdim=True)
    return magnitudes(loss, torch.cat([scores.gather(1, index), strongest], 1), torch.zeros_like(labels))


def histogram(values: Tensor) -> list[int]:
    """Counts the values in `BINS` equal bins of [0, 1]; 1 belongs to the last bin."""
    bins = (values * BINS).long().clamp(max=BINS - 1)
    return [int(count) for count in torch.bincount(bins, minlength=BINS)]


def summarize(values: Tensor, is_wrong: Tensor) -> dict[str, Any]:
    """Summarizes magnitudes of right and wrong labels: counts, mean, deviation, and fractions of labels and of the sum."""
    groups = {"right": values[~is_wrong], "wrong": values[is_wrong]}
    total = float(values.sum())
    return {
        name: {
            "counts": histogram(group),
            "mean": round(float(group.mean()), 4),
            "deviation": round(float(group.std()), 4),
            "share_high": round(float((group >= HIGH).double().mean()), 4),
            "share_of_push": round(float(group.sum()) / total, 4) if total else 0.0,
        }
        for name, group in groups.items()
    }


def last_bin_fraction(counts: list[int]) -> float:
    """Returns the fraction of values in the last bin."""
    return counts[-1] / max(1, sum(counts))
