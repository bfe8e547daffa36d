"""Loss of the true sequence against the k best sequences of the model, weighted by a cost: training for a metric."""

import math

import torch
from torch import Tensor

from linearcore.kernels import kbest
from linearcore.structures import Chain, Cost, Sites, sequence_scores
from linearcore.surrogates import Surrogate

#: Default number of candidates.
CANDIDATES = 8


def candidate_losses(
    emissions: Tensor, chain: Chain, tags: Tensor, sites: Sites, cost: Cost, surrogate: Surrogate, candidates: int
) -> Tensor:
    """Returns φ(h(y) − log Σ_{y'} ℓ(y', y) exp h(y')) (B,), the sum over the k best y'; 0 if all of them cost 0.

    Args:
        emissions: (L, B, |Y|).
        chain: start, transition and end scores.
        tags: (L, B), the true tags, 0 where masked.
        sites: positions of the tags and their neighbours.
        cost: ℓ.
        surrogate: φ.
        candidates: k.
    """
    best, best_scores = kbest(emissions, chain, sites, candidates)
    best = best.clamp(min=0)  # Masked positions, and sequences that do not exist, are −100.
    costs = cost.between(best.transpose(1, 2), tags.t(), sites.mask.t(), dtype=emissions.dtype)
    scores = sequence_scores(emissions, chain, torch.cat([tags.unsqueeze(0), best]), sites)
    counts = (costs > 0) & (best_scores > -math.inf)
    has_candidates = counts.any(0)
    log_costs = torch.where(counts, costs, 1.0).log()
    terms = torch.where(counts, scores[1:] + log_costs, -math.inf)
    # Finite where no candidate counts, so that φ and its gradient are finite for every surrogate.
    total = torch.where(has_candidates, terms, 0.0).logsumexp(0)
    return torch.where(has_candidates, surrogate.value(scores[0] - total), 0.0)
