"""Loss of the true sequence against candidates of the model, weighted by a cost: training for a metric."""

import math

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.kernels import kbest, sample_chain
from linearcore.structures import Chain, Cost, Sites, sequence_scores
from linearcore.surrogates import Surrogate

#: Default numbers of best sequences and of samples.
BEST, SAMPLES = 8, 8


def check_candidates(candidates: int, samples: int) -> None:
    """Raises ValueError unless both are numbers of sequences, not both 0."""
    for name, number in (("candidates", candidates), ("samples", samples)):
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            advice = f"pass a number of sequences, for example {BEST}"
            raise ValueError(complaint(name, "be an integer of at least 0", repr(number), advice))
    if candidates + samples == 0:
        raise ValueError(complaint("candidates", "be positive if `samples` is 0", candidates, f"for example {BEST}"))


def candidate_losses(
    emissions: Tensor,
    chain: Chain,
    tags: Tensor,
    sites: Sites,
    cost: Cost,
    surrogate: Surrogate,
    *,
    candidates: int,
    samples: int,
    generator: torch.Generator | None,
) -> Tensor:
    """Returns φ(h(y) − log Σ_{y'} ℓ(y', y) exp h(y')) (B,), the sum over distinct candidates; 0 if all of them cost 0.

    Arguments as in `LinearCoreChain.candidate_loss`; emissions (L, B, |Y|), tags (L, B).
    """
    sequences, is_first = _distinct_candidates(emissions, chain, sites, candidates, samples, generator)
    costs = cost.between(sequences.transpose(1, 2), tags.t(), sites.mask.t(), dtype=emissions.dtype)
    scores = sequence_scores(emissions, chain, torch.cat([tags.unsqueeze(0), sequences]), sites)
    counts = is_first & (costs > 0) & (scores[1:] > -math.inf)
    has_candidates = counts.any(0)
    # Finite in sequences without a candidate that counts, whose gradient would be NaN.
    terms = torch.where(counts, scores[1:] + torch.where(counts, costs, 1.0).log(), -math.inf)
    terms = torch.where(has_candidates, terms, 0.0)
    return torch.where(has_candidates, surrogate.value(scores[0] - terms.logsumexp(0)), 0.0)


def _distinct_candidates(
    emissions: Tensor, chain: Chain, sites: Sites, candidates: int, samples: int, generator: torch.Generator | None
) -> tuple[Tensor, Tensor]:
    """Returns sequences (C, L, B), 0 where masked, and booleans (C, B): no sequence before it is the same."""
    parts = []
    if candidates:
        parts.append(kbest(emissions, chain, sites, candidates)[0])
    if samples:
        parts.append(sample_chain(emissions, chain, sites, samples, generator)[0])
    found = torch.cat(parts)
    is_same = torch.stack([(found == each).all(1) for each in found])  # (C, C, B)
    is_repeated = is_same.permute(2, 0, 1).tril(-1).any(-1).t()
    is_complete = ((found >= 0) | ~sites.mask).all(1)
    return found.clamp(min=0), is_complete & ~is_repeated
