"""Decoding for a metric: the tags with the least expected cost under the distribution of the model."""

import math
from typing import TypedDict

import torch
from torch import Tensor

from linearcore._checks import complaint, positive
from linearcore.kernels import consensus, kbest, log_partition, posterior, sample_chain, viterbi
from linearcore.structures import Chain, Cost, Sites

#: Default numbers of best sequences and of samples.
CANDIDATES, SAMPLES = 16, 64


class RiskOptions(TypedDict):
    """Options of `minimum_risk`."""

    candidates: int
    num_samples: int
    temperature: float


def check_risk_options(candidates: int, num_samples: int, temperature: float) -> RiskOptions:
    """Returns the options; raises ValueError if one is out of range."""
    for name, number, least in (("candidates", candidates, 1), ("num_samples", num_samples, 0)):
        if not isinstance(number, int) or isinstance(number, bool) or number < least:
            advice = f"pass a number of sequences, for example {CANDIDATES}"
            raise ValueError(complaint(name, f"be an integer of at least {least}", repr(number), advice))
    temperature = positive("temperature", temperature, "for example 1.0")
    return {"candidates": candidates, "num_samples": num_samples, "temperature": temperature}


def minimum_risk(
    emissions: Tensor,
    chain: Chain,
    sites: Sites,
    cost: Cost,
    *,
    allowed: Chain | None,
    candidates: int,
    num_samples: int,
    temperature: float,
    generator: torch.Generator | None,
) -> tuple[Tensor, Tensor]:
    """Returns the tags (L, B) with the least expected cost, −100 where masked, and this cost (B,). No gradient.

    If no sequence is allowed, tags are −100 and the cost is 1. If scores are NaN or +inf, the cost is NaN.
    Arguments as in `ChainHead.minimum_risk`, with `allowed`, the constraints as booleans.
    """
    emissions, chain = emissions.detach() / temperature, Chain(*(part.detach() / temperature for part in chain))
    log_z = log_partition(emissions, chain, sites.mask, is_full=sites.is_full)
    normalizer = log_z.masked_fill(log_z == -math.inf, 0.0)  # −inf − (−inf) would be NaN.
    if cost.is_constant:  # Every other sequence costs 1: the most probable one is best.
        tags, scores = viterbi(emissions, chain, sites)
        return _finish(tags, 1 - (scores - normalizer).exp(), log_z)
    marginals = posterior(emissions, chain, sites.mask)
    most_correct, error = _most_correct_tags(marginals, sites, allowed)
    if cost.is_error_fraction:
        return _finish(most_correct, error, log_z)
    if candidates > 1:
        best, scores = kbest(emissions, chain, sites, candidates)
    else:  # Much faster with many tags.
        best, scores = (part.unsqueeze(0) for part in viterbi(emissions, chain, sites))
    drawn = None
    if num_samples:
        if generator is None:  # The same samples in every call.
            generator = torch.Generator(emissions.device).manual_seed(0)
        drawn, _ = sample_chain(emissions, chain, sites, num_samples, generator, is_shared=True)
    others = most_correct.unsqueeze(0)
    tags, risk = consensus(best, scores - normalizer, sites.mask, cost, others=others, drawn=drawn, marginals=marginals)
    return _finish(tags, risk.to(emissions.dtype), log_z)


def _finish(tags: Tensor, risk: Tensor, log_z: Tensor) -> tuple[Tensor, Tensor]:
    """Returns tags, −100 if no sequence is allowed, and risks in [0, 1]: 1 if none is, NaN if scores are NaN or +inf."""
    is_impossible = log_z == -math.inf
    risk = risk.clamp(0.0, 1.0).masked_fill(is_impossible, 1.0).masked_fill(~(log_z < math.inf), math.nan)
    return tags.masked_fill(is_impossible, -100), risk


def _most_correct_tags(marginals: Tensor, sites: Sites, allowed: Chain | None) -> tuple[Tensor, Tensor]:
    """Returns the allowed tags with the largest expected number of correct tags, and the expected fraction of wrong ones."""
    if allowed is None:
        tags = marginals.argmax(-1).masked_fill(~sites.mask, -100)
    else:  # The largest sum of marginals along an allowed sequence.
        zeros = Chain(*(torch.zeros_like(part, dtype=marginals.dtype) for part in allowed))
        tags, _ = viterbi(marginals, zeros.within(allowed), sites)
    correct = marginals.gather(-1, tags.clamp(min=0).unsqueeze(-1)).squeeze(-1).masked_fill(~sites.mask, 0.0).sum(0)
    count = sites.mask.sum(0)
    return tags, (count - correct) / count.clamp(min=1)
