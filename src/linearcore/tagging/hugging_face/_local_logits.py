"""Logits whose argmax is the decoded sequence."""

import torch
from torch import Tensor

from linearcore.heads import ChainHead
from linearcore.kernels import local_scores, resolve_backend
from linearcore.structures import Sites


def best_labels(head: ChainHead, emissions: Tensor, sites: Tensor, width: int) -> Tensor:
    """(B, T): the best labels at the sites, −100 elsewhere; by a beam of that width, or exactly for width 0.

    Where hard constraints let a beam run into dead ends only, the search is repeated exactly.
    """
    if not width:
        return head.viterbi(emissions, sites)[0]
    labels, scores = head.beam(emissions, width, sites)
    if head.constraints is not None and bool((scores == -torch.inf).any()):
        return head.viterbi(emissions, sites)[0]
    return labels


def local_logits(head: ChainHead, emissions: Tensor, sites: Tensor, labels: Tensor) -> Tensor:
    """(B, T, |Y|): at a site j, what each label would score there, the others being as decoded.

        s_j(v) = h(x, ŷ with y_j → v), up to what does not depend on v

    If ŷ is the best sequence, no change of one label scores more: the argmax at j is ŷ_j. Where another label ties with it,
    by rounding too, or scores more because a beam missed it, ŷ_j is raised above it, so that argmax is ŷ always. Positions
    that are no sites have the logits of the site before, so that the sub-words of a word agree; in front of the first site
    they keep their emissions.

    Args:
        head: with `batch_first`.
        emissions: (B, T, |Y|), float32 or float64.
        sites: (B, T) booleans.
        labels: (B, T) decoded, anything where there is no site.

    Time O(B·T·|Y|), and |Y|² for transitions of low rank; differentiable.
    """
    times = Sites.of(sites.t())
    tags = labels.masked_fill(~sites, 0)
    chain = head.chain(emissions)
    backend = resolve_backend("auto", (emissions, *chain))
    scores = local_scores(emissions.transpose(0, 1), chain, tags.t(), times, backend).transpose(0, 1)
    own = tags.unsqueeze(-1)
    highest_competitor = scores.scatter(-1, own, -torch.inf).amax(-1, keepdim=True)
    raised = torch.maximum(scores.gather(-1, own), _just_above(highest_competitor))
    scores = scores.scatter(-1, own, raised)
    # The time of the last site up to here; −1 in front of the first.
    places = torch.arange(sites.shape[1], device=sites.device).expand_as(sites)
    source = places.masked_fill(~sites, -1).cummax(1).values.unsqueeze(-1)
    copied = scores.gather(1, source.clamp(min=0).expand_as(scores))
    return torch.where(source < 0, emissions, copied)


def _just_above(scores: Tensor) -> Tensor:
    """The next larger number, so that rounding decides nothing; −inf stays, for there a lone label has no competitor."""
    higher = torch.nextafter(scores.detach(), torch.full_like(scores, torch.inf))
    return torch.where(scores == -torch.inf, scores, scores + (higher - scores.detach()))
