"""Weston and Watkins' hinge loss."""

from torch import Tensor

from linearcore.losses._multiclass import multiclass_loss
from linearcore.losses.baselines._baseline import LabelledRows, baseline
from linearcore.surrogates import Hinge


@baseline("Weston–Watkins", is_symmetric=False, is_convex=True, is_bounded=False)
def weston_watkins(rows: LabelledRows, *, normalize: bool = False) -> Tensor:
    """The sum of hinge losses over competitors: `multiclass_loss(surrogate=Hinge(), form="pairwise", normalize=False)`.

    `F.multi_margin_loss` divides this sum by the number of classes n; `normalize` divides it by the number of competitors,
    n − 1. Convex, with kinks. Not argmax-consistent for three or more classes.

        ℓ(s, y) = Σ_{v≠y} max(0, 1 − s_y + s_v)

    Args:
        normalize: mean (True) or sum (False) over competitors.

    Cost: O(C) per row; O(C²) with probability targets or label smoothing. Computed in blocks.

    Reference: Weston and Watkins, *Multi-class Support Vector Machines*, 1998.
    """
    return multiclass_loss(
        rows.scores, rows.target, surrogate=Hinge(), form="pairwise", normalize=normalize, reduction="none"
    )
