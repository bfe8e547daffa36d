"""The two multi-class hinge losses of support vector machines."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from linearcore._typing import Reduction
from linearcore.kernels import Labels
from linearcore.losses._batch import batch_loss
from linearcore.losses._multiclass import multiclass_loss
from linearcore.losses._targets import Rows
from linearcore.losses.rivals._over_labels import over_labels, row_scores
from linearcore.surrogates import Hinge


def weston_watkins(
    scores: Tensor,
    target: Tensor,
    *,
    normalize: bool = False,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    validate: bool = False,
) -> Tensor:
    """Σ_{v≠y} (1 − (s_y − s_v))₊, a hinge for every competitor: `multiclass_loss(surrogate=Hinge(), form="pairwise")`.

    F.multi_margin_loss is this divided by the number of classes n, here by that of the competitors, n − 1, if at all.
    Convex, with kinks; for three classes and more it is not argmax-consistent.

        ℓ(s, y) = Σ_{v≠y} max(0, 1 − s_y + s_v)

    Args:
        normalize: divide the sum over competitors by their number.
        scores, target, weight, sample_weight, ignore_index, label_smoothing, reduction, validate: as in `multiclass_loss`.

    Returns:
        A scalar, or the unreduced loss, as `multiclass_loss` gives it.

    Raises:
        ValueError, TypeError: if shapes, dtypes or options do not fit.

    Example:
        >>> weston_watkins(torch.zeros(3, 4), torch.tensor([0, 3, 1]))
        tensor(3.)

    Cost: O(C) a row, O(C²) with probability targets or label smoothing, both in blocks.

    Reference: Weston and Watkins, *Multi-class Support Vector Machines*, 1998.
    """
    return multiclass_loss(
        scores,
        target,
        surrogate=Hinge(),
        form="pairwise",
        normalize=normalize,
        weight=weight,
        sample_weight=sample_weight,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction=reduction,
        validate=validate,
    )


def crammer_singer(
    scores: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    validate: bool = False,
) -> Tensor:
    """(1 − (s_y − max_{v≠y} s_v))₊, one hinge for the strongest competitor.

    Convex, with kinks; argmax-consistent only where some class has a probability above one half.

        ℓ(s, y) = max(0, 1 − s_y + max_{v≠y} s_v)

    Args:
        scores, target, weight, sample_weight, ignore_index, label_smoothing, reduction, validate: as in `multiclass_loss`.

    Returns:
        A scalar, or the unreduced loss, as `multiclass_loss` gives it.

    Raises:
        ValueError, TypeError: if shapes, dtypes or options do not fit.

    Example:
        >>> crammer_singer(torch.zeros(3, 4), torch.tensor([0, 3, 1]))
        tensor(1.)

    Cost: O(C) a row, with probability targets too; a few N×C tensors.

    Reference: Crammer and Singer, *On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines*,
    JMLR 2001.
    """
    return batch_loss(
        _strongest_competitor,
        scores,
        target,
        weight=weight,
        sample_weight=sample_weight,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction=reduction,
        validate=validate,
    )


def _strongest_competitor(rows: Rows, labels: Labels) -> Tensor:
    scores = row_scores(rows)
    is_best = torch.arange(scores.shape[-1], device=scores.device) == scores.argmax(-1, keepdim=True)
    # The best class competes with the second best, all others with the best.
    second = scores.masked_fill(is_best, -math.inf).amax(-1, keepdim=True)
    strongest = torch.where(is_best, second, scores.amax(-1, keepdim=True))
    return over_labels(lambda margin: F.relu(1 - margin), scores - strongest, labels)
