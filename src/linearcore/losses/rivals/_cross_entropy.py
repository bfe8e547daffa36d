"""Cross-entropy."""

from torch import Tensor

from linearcore._typing import Reduction
from linearcore.losses._batch import batch_loss
from linearcore.losses.rivals._over_labels import log_probability, over_labels


def cross_entropy(
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
    """−log p_y with p = softmax(s): F.cross_entropy with `sample_weight` and classes that are not there.

    The loss to beat where labels are right. Where they are wrong it fits them too: a row counts the more, the less likely
    its label. For speed take torch's own, or `multiclass_loss(surrogate=Logistic(), form="logodds")`.

        ℓ(s, y) = −log p_y = logsumexp s − s_y

    Args:
        scores, target, weight, sample_weight, ignore_index, label_smoothing, reduction, validate: as in `multiclass_loss`.

    Returns:
        A scalar, or the unreduced loss, as `multiclass_loss` gives it.

    Raises:
        ValueError, TypeError: if shapes, dtypes or options do not fit.

    Example:
        >>> import torch
        >>> cross_entropy(torch.zeros(3, 4), torch.tensor([0, 3, 1]))
        tensor(1.3863)

    Cost: O(C) a row; a handful of N×C tensors.
    """
    return batch_loss(
        lambda rows, labels: over_labels(lambda log_p: -log_p, log_probability(rows), labels),
        scores,
        target,
        weight=weight,
        sample_weight=sample_weight,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction=reduction,
        validate=validate,
    )
