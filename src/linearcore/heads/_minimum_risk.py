"""Decoding for a metric: the tags with the least expected cost under the distribution of the model."""

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
    samples: int
    temperature: float


def check_risk_options(candidates: int, samples: int, temperature: float) -> RiskOptions:
    """Returns the options; raises ValueError if one is out of range."""
    for name, number, least in (("candidates", candidates, 1), ("samples", samples, 0)):
        if not isinstance(number, int) or isinstance(number, bool) or number < least:
            advice = f"pass a number of sequences, for example {CANDIDATES}"
            raise ValueError(complaint(name, f"be an integer of at least {least}", repr(number), advice))
    advice = "for example 1.0"
    return {"candidates": candidates, "samples": samples, "temperature": positive("temperature", temperature, advice)}


def minimum_risk(
    emissions: Tensor,
    chain: Chain,
    sites: Sites,
    cost: Cost,
    *,
    allowed: Chain | None,
    candidates: int,
    samples: int,
    temperature: float,
    generator: torch.Generator | None,
) -> tuple[Tensor, Tensor]:
    """Returns the tags (L, B) with the least expected cost, −100 where masked, and this cost (B,). No gradient.

    Arguments as in `ChainHead.minimum_risk`, with `allowed`, the constraints as booleans.
    """
    emissions, chain = emissions.detach() / temperature, Chain(*(part.detach() / temperature for part in chain))
    log_z = log_partition(emissions, chain, sites.mask, is_full=sites.is_full)
    if cost.is_constant:  # Every other sequence costs 1: the most probable one is best.
        tags, scores = viterbi(emissions, chain, sites)
        return tags, 1 - (scores - log_z).exp()
    most_correct, error = _most_correct_tags(emissions, chain, sites, allowed)
    if cost.is_error_fraction:
        return most_correct, error
    best, scores = kbest(emissions, chain, sites, candidates)
    drawn = None
    if samples:
        if generator is None:  # The same samples in every call.
            generator = torch.Generator(emissions.device).manual_seed(0)
        drawn, _ = sample_chain(emissions, chain, sites, samples, generator, is_shared=True)
    tags, risk = consensus(best, scores - log_z, sites.mask, cost, drawn=drawn, others=most_correct.unsqueeze(0))
    return tags, risk.to(emissions.dtype)


def _most_correct_tags(emissions: Tensor, chain: Chain, sites: Sites, allowed: Chain | None) -> tuple[Tensor, Tensor]:
    """Returns the allowed tags with the largest expected number of correct tags, and the expected fraction of wrong ones."""
    marginals = posterior(emissions, chain, sites.mask)
    if allowed is None:
        tags = marginals.argmax(-1).masked_fill(~sites.mask, -100)
    else:  # The largest sum of marginals along an allowed sequence.
        zeros = Chain(*(torch.zeros_like(part) for part in chain))
        tags, _ = viterbi(marginals, zeros.within(allowed), sites)
    correct = marginals.gather(-1, tags.clamp(min=0).unsqueeze(-1)).squeeze(-1).masked_fill(~sites.mask, 0.0).sum(0)
    count = sites.mask.sum(0)
    return tags, ((count - correct) / count.clamp(min=1)).clamp(min=0.0)
