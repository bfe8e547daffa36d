"""How hard a loss pushes each sample, in two readings.

The paper plots |ℓ'(h(x))| between 0 and 1 and does not say of what. Here it is |∂ℓ/∂s_y|, y the given label, which lies
there for both of its losses: 1 − p_y for cross-entropy, and the mean of |φ'(s_y − s_v)| over the competitors v for the
pairwise linear core. This is what a network gets. Since the paper speaks of one margin u, it is also told for the label
against its strongest competitor alone, as if there were two classes: 1 − σ(u), and |φ'(u)|.
"""

from typing import Any

import torch
from torch import Tensor

from linearcore_paper.vision import Loss

BINS = 50
#: From here on the paper speaks of high magnitudes.
HIGH = 0.6


def magnitudes(loss: Loss, scores: Tensor, labels: Tensor) -> Tensor:
    """|∂ℓ/∂s_y| of every row, (N,) float64 in [0, 1].

    Args:
        loss: gives (N,) losses, each of its own row alone.
        scores: (N, C).
        labels: (N,) the labels that were given.

    Raises:
        ValueError: if one is above 1, up to rounding: the loss has another scale.

    Example:
        >>> magnitudes(torch.nn.CrossEntropyLoss(reduction="none"), torch.zeros(1, 4), torch.tensor([2]))
        tensor([0.7500], dtype=torch.float64)
    """
    wanted = scores.detach().double().requires_grad_()
    loss(wanted, labels).sum().backward()
    assert wanted.grad is not None
    found = wanted.grad.gather(1, labels.unsqueeze(1)).squeeze(1).abs()
    if bool((found > 1 + 1e-9).any()):
        raise ValueError(f"magnitudes must lie in [0, 1], got {float(found.max()):g}; divide the loss by its slope")
    return found.clamp(max=1.0)


def magnitudes_alone(loss: Loss, scores: Tensor, labels: Tensor) -> Tensor:
    """As `magnitudes`, of the given label and its strongest competitor alone, as if there were no other class.

    Example:
        >>> magnitudes_alone(torch.nn.CrossEntropyLoss(reduction="none"), torch.zeros(1, 4), torch.tensor([2]))
        tensor([0.5000], dtype=torch.float64)
    """
    own = labels.unsqueeze(1)
    strongest = scores.scatter(1, own, -torch.inf).amax(1, keepdim=True)
    return magnitudes(loss, torch.cat([scores.gather(1, own), strongest], 1), torch.zeros_like(labels))


def histogram(values: Tensor) -> list[int]:
    """How many lie in each of `BINS` equal parts of [0, 1]; 1 belongs to the last."""
    places = (values * BINS).long().clamp(max=BINS - 1)
    return [int(count) for count in torch.bincount(places, minlength=BINS)]


def described(values: Tensor, is_wrong: Tensor) -> dict[str, Any]:
    """The pushes of right and of wrong labels: counts, mean, deviation, and the shares that the paper speaks of."""
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


def share_at_one(counts: list[int]) -> float:
    """The share of the last bin."""
    return counts[-1] / max(1, sum(counts))
