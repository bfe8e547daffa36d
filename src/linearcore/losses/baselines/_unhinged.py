"""The unhinged loss."""

import math

from torch import Tensor

from linearcore.losses.baselines._baseline import LabelledRows, baseline


@baseline("unhinged", is_symmetric=True, is_convex=True, is_bounded=False, has_minimum=False)
def unhinged(rows: LabelledRows, *, normalize: bool = True) -> Tensor:
    """The hinge loss without its kink, 1 − u, averaged over the margins u = s_y − s_v of the n − 1 competitors v.

    Linear in the scores, convex and symmetric (Σ_y ℓ(s, y) = n), but without a minimum: bound the scores, with
    `linearcore.NormedScores` or weight decay, or they diverge.

        ℓ(s, y) = mean_{v≠y} (1 − (s_y − s_v)) = 1 − n/(n − 1) · (s_y − mean s)        the sum: n − 1 times that

    The authors' loss is binary, 1 − y·h. This is its pairwise extension, equal to theirs for n = 2. While all margins are in
    the core of a linear-core surrogate, φ(u) = φ(0) − u, and `multiclass_loss(form="pairwise")` is this loss plus φ(0) − 1,
    with the same gradient. Outside the core the slope of φ decreases; the slope of this loss does not.

    Args:
        normalize: divide the sum over competitors by their number.

    Example:
        >>> import torch
        >>> unhinged(torch.tensor([[2.0, 0.0, -1.0]]), torch.tensor([0]))
        tensor(-1.5000)

    Reference: van Rooyen, Menon and Williamson, *Learning with Symmetric Label Noise: The Importance of Being Unhinged*,
    NeurIPS 2015, for two classes.
    """
    present = rows.scores != -math.inf
    number = present.to(rows.scores.dtype).sum(-1, keepdim=True)
    mean = rows.scores.masked_fill(~present, 0.0).sum(-1, keepdim=True) / number.clamp(min=1)
    competitors = number - 1
    total = competitors - number * (rows.own(rows.scores) - mean)
    return total / competitors.clamp(min=1) if normalize else total
