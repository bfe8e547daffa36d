"""Decoding of emissions with a head: best tags, tags for a metric, k-best sequences and confidences.

A head of None is token cross-entropy.
"""

import torch
from torch import Tensor

from linearcore.heads import ChainHead, RiskOptions
from linearcore.kernels import consensus, kbest
from linearcore.structures import Chain, Cost, Sites

#: Tag of masked positions, and of all positions of a sequence for which no allowed tags exist.
NO_TAG = -100


def best_tags(head: ChainHead | None, emissions: Tensor, mask: Tensor | None, beam: int) -> Tensor:
    """Returns the best tags (B, L), `NO_TAG` where masked.

    If constraints leave the beam without a valid sequence, the search is repeated exactly.

    Args:
        head: a head with `batch_first=True`, or None for the best tag of each position.
        emissions: (B, L, |Y|), float32 or float64.
        mask: (B, L) booleans, or None if no position is masked.
        beam: beam width; 0 is exact search.
    """
    if head is None:
        tags = emissions.argmax(-1)
        return tags if mask is None else tags.masked_fill(~mask, NO_TAG)
    if beam:
        tags, scores = head.beam(emissions, mask=mask, width=beam)
        if head.constraints is None or not bool((scores == -torch.inf).any()):
            return tags
    return head.viterbi(emissions, mask)[0]


def best_sequences(head: ChainHead | None, emissions: Tensor, mask: Tensor | None, k: int) -> tuple[Tensor, Tensor]:
    """Returns the tags (k, B, L) of the k best sequences, best first, and their scores (k, B). The search is exact.

    A score is h(x, y) of the head (see `ChainHead`); for token cross-entropy it is the log-probability of the sequence. If
    fewer than k sequences exist, the others have score −inf and tags `NO_TAG`. Arguments as in `best_tags`.

    Time O(L·B·|Y|·(|Y| + k²)) with a head, O(L·B·(|Y| + k³)) without.
    """
    if head is not None:
        return head.kbest(emissions, mask=mask, k=k)
    # One of the k best sequences has at each position one of the k best tags. Among these it is a chain without transitions.
    values, tags = emissions.log_softmax(-1).topk(min(k, emissions.shape[-1]))
    mask = torch.ones_like(tags[..., 0], dtype=torch.bool) if mask is None else mask
    zeros = values.new_zeros(values.shape[-1])
    chain = Chain(zeros, zeros.expand(len(zeros), -1), zeros)
    ranks, scores = kbest(values.transpose(0, 1), chain, Sites.of(mask.t()), k)
    ranks = ranks.transpose(1, 2)
    sequences = tags.expand(k, *tags.shape).gather(-1, ranks.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return sequences.masked_fill(ranks == NO_TAG, NO_TAG), scores


def least_risk_tags(
    head: ChainHead | None, emissions: Tensor, mask: Tensor | None, cost: Cost, options: RiskOptions
) -> Tensor:
    """Returns the tags (B, L) with the least expected cost, `NO_TAG` where masked; other arguments as in `best_tags`.

    The distribution is that of `ChainHead.minimum_risk`; for token cross-entropy tags are independent.
    """
    if head is not None:
        return head.minimum_risk(emissions, mask, cost=cost, **options)[0]
    if cost.is_constant or cost.is_error_fraction:  # Both have the best tag of each position.
        return best_tags(None, emissions, mask, 0)
    emissions = emissions / options["temperature"]
    best, log_probs = best_sequences(None, emissions, mask, options["candidates"])
    mask = torch.ones_like(best[0], dtype=torch.bool) if mask is None else mask
    drawn = marginals = None
    if options["num_samples"]:
        stream = torch.Generator(emissions.device).manual_seed(0)  # The same samples in every call.
        marginals = emissions.softmax(-1).transpose(0, 1)
        sums = emissions.double().softmax(-1).cumsum(-1)
        size = (mask.shape[1], options["num_samples"])
        uniforms = torch.rand(size, dtype=sums.dtype, device=sums.device, generator=stream) * sums[..., -1:]
        drawn = torch.searchsorted(sums, uniforms, right=True).clamp(max=sums.shape[-1] - 1)
        drawn = drawn.permute(2, 1, 0).masked_fill(~mask.t(), NO_TAG)
    return consensus(best.transpose(1, 2), log_probs, mask.t(), cost, drawn=drawn, marginals=marginals)[0].t()


def tag_confidences(head: ChainHead | None, emissions: Tensor, mask: Tensor | None, tags: Tensor) -> Tensor:
    """Returns the confidence in [0, 1] of each tag (B, L), 0 where masked; arguments as in `best_tags`."""
    if head is not None:
        return head.confidence(emissions, mask, tags)
    probabilities = emissions.softmax(-1).gather(-1, tags.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return probabilities if mask is None else probabilities.masked_fill(~mask, 0.0)
