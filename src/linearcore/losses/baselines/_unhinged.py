"""The unhinged loss."""

import math

from torch import Tensor

from linearcore.losses.baselines._baseline import LabelledRows, baseline


@baseline("unhinged", is_symmetric=True, is_convex=True, is_bounded=False, has_minimum=False)
def unhinged(rows: LabelledRows, *, normalize: bool = True) -> Tensor:
    """The unhinged loss 1 − u, averaged over the margins u = s_y − s_v to the n − 1 competing classes v.

    Linear in the scores, convex and symmetric (Σ_y ℓ(s, y) = n), but unbounded below: scores diverge unless
    `linearcore.NormedScores` or weight decay bounds them.

        ℓ(s, y) = mean_{v≠y} (1 − (s_y − s_v)) = 1 − n/(n − 1) · (s_y − mean s)        n − 1 times this for the sum

    The authors define the binary loss 1 − y·h; this pairwise extension equals it for n = 2. If all margins are in the core
    of a linear-core surrogate, φ(u) = φ(0) − u, and `multiclass_loss(form="pairwise")` is this loss plus φ(0) − 1, with the
    same gradient. Beyond the core the slope of φ decreases, but the slope of this loss stays constant.

    Args:
        normalize: mean (True) or sum (False) over competitors.

    Example:
        >>> import torch
        >>> unhinged(torch.tensor([[2.0, 0.0, -1.0]]), torch.tensor([0]))
        tensor(-1.5000)

    Reference: van Rooyen, Menon and Williamson, *Learning with Symmetric Label Noise: The Importance of Being Unhinged*,
    NeurIPS 2015, for two classes.
    """
    is_unmasked = rows.scores != -math.inf
    num_classes = is_unmasked.to(rows.scores.dtype).sum(-1, keepdim=True)
    mean = rows.scores.masked_fill(~is_unmasked, 0.0).sum(-1, keepdim=True) / num_classes.clamp(min=1)
    num_competitors = num_classes - 1
    total = num_competitors - num_classes * (rows.gather_labels(rows.scores) - mean)
    return total / num_competitors.clamp(min=1) if normalize else total
