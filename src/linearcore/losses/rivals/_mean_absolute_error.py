"""Mean absolute error."""

import torch
from torch import Tensor

from linearcore._typing import Reduction
from linearcore.losses._batch import batch_loss
from linearcore.losses.rivals._over_labels import log_probability, over_labels


def mean_absolute_error(
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
    """Σ_v |1[v = y] − p_v|, the L1 distance from softmax to the label: symmetric and bounded.

    Σ_y ℓ(s, y) = 2(n − 1) whatever the scores, so that uniform label noise below 1 − 1/n leaves its minimiser alone. The
    price is a gradient that vanishes for rows that are very wrong: with many classes prefer
    `generalized_cross_entropy` or `active_passive_cross_entropy`.

        ℓ(s, y) = 2 (1 − p_y)

    Probability targets take the expectation over y, which is not the L1 distance from p to the target.

    Args:
        scores, target, weight, sample_weight, ignore_index, label_smoothing, reduction, validate: as in `multiclass_loss`.

    Returns:
        A scalar, or the unreduced loss, as `multiclass_loss` gives it.

    Raises:
        ValueError, TypeError: if shapes, dtypes or options do not fit.

    Example:
        >>> mean_absolute_error(torch.zeros(3, 4), torch.tensor([0, 3, 1]))
        tensor(1.5000)

    Cost: O(C) a row; a handful of N×C tensors.

    Reference: Ghosh, Kumar and Sastry, *Robust Loss Functions under Label Noise for Deep Neural Networks*, AAAI 2017.
    """
    return batch_loss(
        # expm1 and not 1 − exp, which would round a small loss away.
        lambda rows, labels: over_labels(lambda log_p: -2 * torch.expm1(log_p), log_probability(rows), labels),
        scores,
        target,
        weight=weight,
        sample_weight=sample_weight,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction=reduction,
        validate=validate,
    )
