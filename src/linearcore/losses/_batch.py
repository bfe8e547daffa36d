"""What every multi-class loss does around its rows: torch's rules for targets, weights and reductions."""

from collections.abc import Callable
from typing import TypeAlias

from torch import Tensor

from linearcore._checks import complaint, floating, holds, nan_where, shape
from linearcore._reduce import check_reduction, reduce_losses
from linearcore._typing import Reduction, result_dtype
from linearcore.forms import Labels
from linearcore.losses._targets import Rows, to_rows, validate_rows

#: The losses (N,) of rows for labels, unreduced, in float32 for half-precision scores.
RowLosses: TypeAlias = Callable[[Rows, Labels], Tensor]


def batch_loss(
    row_losses: RowLosses,
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
    """Checks the arguments, brings them to rows, asks `row_losses`, and reduces as torch.nn.functional.cross_entropy does.

    Args:
        row_losses: ℓ(s, y) of hard rows; of soft ones Σ_y share_y ℓ(s, y), with shares that hold the class weights.
        scores, target, weight, sample_weight, class_margin, ignore_index, label_smoothing, reduction, validate: as in
            `multiclass_loss`.

    Returns:
        The loss in F.cross_entropy's shape and dtype.

    Raises:
        ValueError, TypeError: if shapes, dtypes or options do not fit.
    """
    floating("scores", scores, "pass the raw output of the network")
    check_reduction(reduction)
    check_label_smoothing(label_smoothing)
    rows = to_rows(scores, target, ignore_index)
    sample_weight = rows.per_row("sample_weight", sample_weight)
    for name, vector in (("weight", weight), ("class_margin", class_margin)):
        if vector is not None:
            shape(name, vector, (rows.scores.shape[1],), "give one number for every class")
    if validate:
        _validate(rows, weight, sample_weight)

    is_hard = rows.index is not None and label_smoothing == 0
    shares = None if is_hard or weight is None else weight
    labels = Labels(rows.index, rows.probability, shares, class_margin, float(label_smoothing))
    losses = nan_where(row_losses(rows, labels), rows.wrong)
    losses = _reduce(losses, rows, weight, sample_weight, is_hard=is_hard, reduction=reduction)
    return losses.to(result_dtype(scores))


def check_label_smoothing(label_smoothing: float) -> None:
    """Raises unless ε is a share."""
    if not 0 <= label_smoothing <= 1:
        raise ValueError(complaint("label_smoothing", "be in [0, 1]", label_smoothing, "for example 0.1"))


def _reduce(
    losses: Tensor, rows: Rows, weight: Tensor | None, sample_weight: Tensor | None, *, is_hard: bool, reduction: Reduction
) -> Tensor:
    """torch's rules: the weighted mean divides by the weights of the targets, for probability targets by their number."""
    if rows.index is None or weight is None:
        losses = reduce_losses(losses, sample_weight, rows.counted, reduction)
    else:
        of_target = weight.to(losses.dtype)[rows.index]
        row_weight = of_target if sample_weight is None else of_target * sample_weight
        if is_hard:
            losses = reduce_losses(losses, row_weight, rows.counted, reduction)
        else:  # The shares hold the class weights already, so only the mean has to know them.
            whole = reduce_losses(losses, sample_weight, rows.counted, "none" if reduction == "none" else "sum")
            losses = whole / reduce_losses(row_weight, None, rows.counted, "sum") if reduction == "mean" else whole
    return losses.reshape(rows.shape) if reduction == "none" else losses


def _validate(rows: Rows, weight: Tensor | None, sample_weight: Tensor | None) -> None:
    validate_rows(rows)
    for name, tensor in (("weight", weight), ("sample_weight", sample_weight)):
        if tensor is not None:
            holds(name, tensor >= 0, "not be negative", "a negative weight would reward errors")
