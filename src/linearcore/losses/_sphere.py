"""Scores of one length: each sample's own, or that of the batch, or of each class where the network has seen to it."""

import math
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from linearcore._checks import one_of
from linearcore._typing import compute_dtype
from linearcore.losses._targets import Rows

#: Whose length is made 1: that of every sample, the root mean square of a batch's, or nobody's, since the network has given
#: every class the mean 0 and the variance 1.
Norm: TypeAlias = Literal["sample", "batch", "class"]
NORMS: tuple[Norm, ...] = ("sample", "batch", "class")

#: ε, below which a length is no longer divided by. Far below the lengths of scores that say anything, and large enough that
#: a network whose last layer starts at zero gets a gradient that fits into half precision.
FLOOR = 1e-3


def check_norm(norm: str) -> None:
    """Raises unless it is one of `NORMS`."""
    one_of("norm", norm, NORMS)


def in_class_units(rows: Rows) -> Tensor:
    """(N, C): √(C − 1)/C · s, in float32 for half precisions.

    Of C classes that are equally frequent and told apart without doubt, scores of mean 0 and variance 1 are √(C − 1) and
    −1/√(C − 1). In this unit their margins are 1.
    """
    classes = rows.scores.shape[1]
    return math.sqrt(max(0, classes - 1)) / max(1, classes) * _without(rows, rows.is_counted)


def on_unit_rows(scores: Tensor) -> Tensor:
    """(N, C): every row of scores (N, C) as `on_unit_sphere` puts it there, each with its own length."""
    return on_unit_sphere(Rows(scores, None, None, None, None, scores.shape[:1]), "sample")


def on_unit_sphere(rows: Rows, norm: Norm, sample_weight: Tensor | None = None) -> Tensor:
    """(N, C): c / max(L, ε) with c = s − s̄, and −inf for classes that are not there, in float32 for half precisions.

        L = ‖c‖ of the row                     norm="sample"
        L = √(Σ w ‖c‖² / Σ w)                  norm="batch", over rows that count and in which something is there

    It sees neither a shift of a row nor a factor of all that L is of. Both are taken out first, so that no square overflows
    and no difference drowns in a large mean; as the result does not depend on them they are constants for every derivative.

    Args:
        rows: the batch.
        norm: whose length L is.
        sample_weight: (N,) w, 1 if None. A row of weight 0 does not count.
    """
    counted = rows.is_counted
    if norm == "batch" and sample_weight is not None:
        counted = sample_weight != 0 if counted is None else counted & (sample_weight != 0)
    scores = _without(rows, counted)
    present = scores != -math.inf
    top = scores.detach().amax(-1, keepdim=True)
    top = top.masked_fill(top == -math.inf, 0.0)  # Nothing is there: zeros then, masked at the end.
    below = torch.where(present, scores, top) - top
    size = below.detach().abs().amax(-1, keepdim=True).clamp(min=FLOOR)
    if norm == "batch":
        size = torch.cat([size, size.new_full((1, 1), FLOOR)]).amax(0, keepdim=True)
    below = below / size
    number = present.to(scores.dtype).sum(-1, keepdim=True)
    centred = (below - below.sum(-1, keepdim=True) / number.clamp(min=1)).masked_fill(~present, 0.0)
    square = centred.square().sum(-1, keepdim=True)
    if norm == "batch":
        shares = (number > 0).to(scores.dtype)
        if counted is not None:
            shares = shares * counted.unsqueeze(-1)
        if sample_weight is not None:
            shares = shares * sample_weight.to(scores.dtype).unsqueeze(-1)
        total = shares.sum(0, keepdim=True)
        square = (shares * square).sum(0, keepdim=True) / torch.where(total == 0, 1.0, total)
    # Floored before the root, whose slope at zero is infinite.
    square = torch.maximum(square, (FLOOR / size).square())
    return (centred / square.sqrt()).masked_fill(~present, -math.inf)


def _without(rows: Rows, counted: Tensor | None) -> Tensor:
    """Scores to compute with. A row that does not count may hold anything, and 0 · NaN would come back as its gradient."""
    scores = rows.scores.to(compute_dtype(rows.scores))
    return scores if counted is None else scores.masked_fill(~counted.unsqueeze(-1), 0.0)
