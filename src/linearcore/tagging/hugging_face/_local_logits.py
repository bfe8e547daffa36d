"""Logits whose argmax is the decoded sequence."""

import torch
from torch import Tensor

from linearcore.heads import ChainHead
from linearcore.kernels import local_scores, resolve_backend
from linearcore.structures import Sites


def local_logits(head: ChainHead, emissions: Tensor, sites: Tensor, labels: Tensor) -> Tensor:
    """Returns logits (B, T, |Y|): at site j, the score of each label if all other labels are as decoded.

        s_j(v) = h(x, ŷ with y_j → v), up to a constant that does not depend on v

    If ŷ is the best sequence, no change of one label scores higher, so the argmax at j is ŷ_j. If another label has the same
    score, also by rounding, or a higher one because the beam missed it, ŷ_j is raised above it, so the argmax is always ŷ.
    Positions that are not sites get the logits of the previous site, so all sub-words of a word agree; positions before the
    first site keep their emissions.

    Args:
        head: a head with `batch_first=True`.
        emissions: (B, T, |Y|), float32 or float64.
        sites: (B, T) booleans, True where there is a label.
        labels: (B, T) decoded labels; ignored where `sites` is False.

    Time O(B·T·|Y|), and |Y|² for low-rank transitions; differentiable.
    """
    times = Sites.of(sites.t())
    tags = labels.masked_fill(~sites, 0)
    chain = head.chain(emissions)
    backend = resolve_backend("auto", (emissions, *chain))
    scores = local_scores(emissions.transpose(0, 1), chain, tags.t(), times, backend).transpose(0, 1)
    label_index = tags.unsqueeze(-1)
    highest_competitor = scores.scatter(-1, label_index, -torch.inf).amax(-1, keepdim=True)
    raised = torch.maximum(scores.gather(-1, label_index), _just_above(highest_competitor))
    scores = scores.scatter(-1, label_index, raised)
    # Index of the last site up to each position; −1 before the first site.
    positions = torch.arange(sites.shape[1], device=sites.device).expand_as(sites)
    source = positions.masked_fill(~sites, -1).cummax(1).values.unsqueeze(-1)
    copied = scores.gather(1, source.clamp(min=0).expand_as(scores))
    return torch.where(source < 0, emissions, copied)


def _just_above(scores: Tensor) -> Tensor:
    """Returns the next larger number; −inf stays −inf, because a single label has no competing label."""
    higher = torch.nextafter(scores.detach(), torch.full_like(scores, torch.inf))
    return torch.where(scores == -torch.inf, scores, scores + (higher - scores.detach()))
