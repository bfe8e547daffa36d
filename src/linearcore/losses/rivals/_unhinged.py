"""The unhinged loss."""

import math

from torch import Tensor

from linearcore._typing import Reduction
from linearcore.kernels import Labels
from linearcore.losses._batch import batch_loss
from linearcore.losses._targets import Rows
from linearcore.losses.rivals._over_labels import over_labels, row_scores


def unhinged(
    scores: Tensor,
    target: Tensor,
    *,
    normalize: bool = True,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    validate: bool = False,
) -> Tensor:
    """1 − u, the hinge without its kink, of every margin u = s_y − s_v, averaged over the n − 1 competitors v.

    Linear in the scores, convex, symmetric (Σ_y ℓ(s, y) = n), and without a minimum: scores have to be bounded, by a norm
    or by weight decay, or they run away.

        ℓ(s, y) = mean_{v≠y} (1 − (s_y − s_v)) = 1 − n/(n − 1) · (s_y − mean s)        the sum: n − 1 times that

    The authors' loss is binary, 1 − y·h. Of the ways to several classes this is the pairwise one, equal to theirs at n = 2.
    It is also what `multiclass_loss(form="pairwise")` computes while all margins lie in the core of a linear-core
    surrogate, up to a constant: φ(u) = φ(0) − u there, so that pairwise = unhinged + φ(0) − 1, gradients equal. Outside the
    core a linear-core surrogate stops asking; this loss never does.

    Args:
        normalize: divide the sum over competitors by their number.
        scores, target, weight, sample_weight, ignore_index, label_smoothing, reduction, validate: as in `multiclass_loss`.

    Returns:
        A scalar, or the unreduced loss, as `multiclass_loss` gives it.

    Raises:
        ValueError, TypeError: if shapes, dtypes or options do not fit.

    Example:
        >>> import torch
        >>> unhinged(torch.tensor([[2.0, 0.0, -1.0]]), torch.tensor([0]))
        tensor(-1.5000)

    Cost: O(C) a row, with probability targets too; a few N×C tensors.

    Reference: van Rooyen, Menon and Williamson, *Learning with Symmetric Label Noise: The Importance of Being Unhinged*,
    NeurIPS 2015, for two classes.
    """
    return batch_loss(
        lambda rows, labels: _row_losses(rows, labels, normalize),
        scores,
        target,
        weight=weight,
        sample_weight=sample_weight,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction=reduction,
        validate=validate,
    )


def _row_losses(rows: Rows, labels: Labels, normalize: bool) -> Tensor:
    scores = row_scores(rows)
    present = scores != -math.inf
    number = present.to(scores.dtype).sum(-1, keepdim=True)
    mean = scores.masked_fill(~present, 0.0).sum(-1, keepdim=True) / number.clamp(min=1)
    competitors = number - 1

    def loss(own: Tensor) -> Tensor:
        total = competitors - number * (own - mean)
        return total / competitors.clamp(min=1) if normalize else total

    return over_labels(loss, scores, labels)
