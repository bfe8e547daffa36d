"""Weston and Watkins' hinge loss."""

from torch import Tensor

from linearcore.losses._multiclass import multiclass_loss
from linearcore.losses.baselines._baseline import LabelledRows, baseline
from linearcore.surrogates import Hinge


@baseline("Weston–Watkins", is_symmetric=False, is_convex=True, is_bounded=False)
def weston_watkins(rows: LabelledRows, *, normalize: bool = False) -> Tensor:
    """The sum of a hinge for every competitor: `multiclass_loss(surrogate=Hinge(), form="pairwise", normalize=False)`.

    `F.multi_margin_loss` is this divided by the number of classes n; `normalize` divides by the number of competitors,
    n − 1. Convex, with kinks. For three or more classes it is not argmax-consistent.

        ℓ(s, y) = Σ_{v≠y} max(0, 1 − s_y + s_v)

    Args:
        normalize: divide the sum over competitors by their number.

    Cost: O(C) a row, O(C²) with probability targets or label smoothing, both in blocks.

    Reference: Weston and Watkins, *Multi-class Support Vector Machines*, 1998.
    """
    return multiclass_loss(
        rows.scores, rows.target, surrogate=Hinge(), form="pairwise", normalize=normalize, reduction="none"
    )
