"""Argument checks, target conversion and reduction shared by all multi-class losses."""

from collections.abc import Callable
from numbers import Real
from typing import TypeAlias

from torch import Tensor

from linearcore._checks import complaint, floating, holds, nan_where, on_device_of, shape
from linearcore._reduce import check_reduction, reduce_losses
from linearcore._typing import Reduction, result_dtype
from linearcore.forms import Labels
from linearcore.losses._infinite import check_finite, mark_infinite_labels
from linearcore.losses._targets import Rows, to_rows, validate_target

#: Function from rows and labels to unreduced losses (N,), in float32 for half-precision scores.
RowLossFunction: TypeAlias = Callable[[Rows, Labels], Tensor]


def batch_loss(
    row_losses: RowLossFunction,
    scores: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    class_margin: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    validate: bool = False,
) -> Tensor:
    """Checks the arguments, flattens them to rows, calls `row_losses`, and reduces as F.cross_entropy does.

    Args:
        row_losses: computes ℓ(s, y) for index targets, Σ_y w_y ℓ(s, y) for probability targets; see `Labels`.
        scores, target, weight, sample_weight, class_margin, ignore_index, label_smoothing, reduction, validate: as in
            `multiclass_loss`.

    Returns:
        The loss, with the shape and dtype of F.cross_entropy.

    Raises:
        ValueError, TypeError: if an argument has an invalid shape, dtype or value.
    """
    floating("scores", scores, "pass the raw output of the network")
    check_reduction(reduction)
    check_label_smoothing(label_smoothing)
    rows = to_rows(scores, target, ignore_index)
    sample_weight = rows.per_row("sample_weight", sample_weight)
    for name, vector in (("weight", weight), ("class_margin", class_margin)):
        if vector is not None:
            shape(name, vector, (rows.scores.shape[1],), "pass one value per class")
            on_device_of(scores, name, vector)

    is_hard = rows.index is not None and label_smoothing == 0
    soft_weight = None if is_hard else weight
    labels = Labels(rows.index, rows.probability, soft_weight, class_margin, float(label_smoothing))
    if validate:
        validate_target(target, rows)
        check_finite(scores, target, rows, labels)
        _check_weights(weight, sample_weight)
    losses = nan_where(row_losses(rows, labels), rows.is_out_of_range)
    losses = mark_infinite_labels(losses, rows, labels)
    losses = _reduce(losses, rows, weight, sample_weight, is_hard=is_hard, reduction=reduction)
    return losses.to(result_dtype(scores))


def check_label_smoothing(label_smoothing: float) -> None:
    """Raises if `label_smoothing` is not in [0, 1]."""
    if not (isinstance(label_smoothing, Real) and 0 <= label_smoothing <= 1):
        raise ValueError(complaint("label_smoothing", "be in [0, 1]", repr(label_smoothing), "pass 0.1, for example"))


def _reduce(
    losses: Tensor, rows: Rows, weight: Tensor | None, sample_weight: Tensor | None, *, is_hard: bool, reduction: Reduction
) -> Tensor:
    """Reduces as torch: the mean divides by the sum of the target weights; for probability targets by the number of rows."""
    if rows.index is None or weight is None:
        losses = reduce_losses(losses, sample_weight, rows.is_counted, reduction)
    else:
        target_weight = weight.to(losses.dtype)[rows.index]
        row_weight = target_weight if sample_weight is None else target_weight * sample_weight
        if is_hard:
            losses = reduce_losses(losses, row_weight, rows.is_counted, reduction)
        else:  # The losses already contain the class weights; only the denominator of the mean needs them.
            total = reduce_losses(losses, sample_weight, rows.is_counted, "none" if reduction == "none" else "sum")
            losses = total / reduce_losses(row_weight, None, rows.is_counted, "sum") if reduction == "mean" else total
    return losses.reshape(rows.shape) if reduction == "none" else losses


def _check_weights(weight: Tensor | None, sample_weight: Tensor | None) -> None:
    for name, tensor in (("weight", weight), ("sample_weight", sample_weight)):
        if tensor is not None:
            holds(name, tensor >= 0, "not be negative", "pass weights of 0 or more", values=tensor)
