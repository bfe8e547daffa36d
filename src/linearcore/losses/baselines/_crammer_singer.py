"""Crammer and Singer's hinge loss."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from linearcore.losses.baselines._baseline import LabelledRows, baseline


@baseline("Crammer–Singer", is_symmetric=False, is_convex=True, is_bounded=False)
def crammer_singer(rows: LabelledRows) -> Tensor:
    """The hinge loss of the margin to the strongest competing class.

    Convex, with kinks. Argmax-consistent only if some class has a probability above ½.

        ℓ(s, y) = max(0, 1 − s_y + max_{v≠y} s_v)

    Reference: Crammer and Singer, *On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines*,
    JMLR 2001.
    """
    scores = rows.scores
    is_top = torch.arange(scores.shape[-1], device=scores.device) == scores.argmax(-1, keepdim=True)
    # The competitor of the top class is the second best; of all other classes, the top class.
    second = scores.masked_fill(is_top, -math.inf).amax(-1, keepdim=True)
    strongest = torch.where(is_top, second, scores.amax(-1, keepdim=True))
    return F.relu(1 - rows.gather_labels(scores - strongest))
