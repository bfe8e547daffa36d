"""Exact samples from the distribution of a linear chain."""

import math

import torch
from torch import Tensor

from linearcore.kernels._blocks import block_size, slices
from linearcore.kernels._viterbi import NO_TAG, without_gradient
from linearcore.structures import Chain, Sites

#: Sums of exponentials below this are repeated in the log domain.
_SMALLEST_SUM = 1e-200


def sample_chain(
    emissions: Tensor,
    chain: Chain,
    sites: Sites,
    num_samples: int,
    generator: torch.Generator | None = None,
    *,
    is_shared: bool = False,
) -> tuple[Tensor, Tensor]:
    """Draws tags (S, L, B) with P(y | x) ∝ exp h(x, y), and returns them with log P (S, B). Masked tags are −100.

    Forward filtering, backward sampling: the last tag is drawn from its marginal, each tag before it given the next one.
    Sequences without any allowed tags get tags −100 and log P = −inf. Computed in float64; no gradient.

    Args:
        emissions: (L, B, |Y|), float32 or float64.
        chain: start, transition and end scores; −inf marks forbidden entries.
        sites: positions of the tags and their neighbours.
        num_samples: S.
        generator: random number generator on the device of `emissions`.
        is_shared: all sequences use the same random numbers. Each then has the same samples in every batch, but samples of
            different sequences depend on each other.

    Time O(L·B·|Y|·(|Y| + S)), memory L×B×|Y| and S×B×|Y|.
    """
    emissions, chain = without_gradient(emissions.double(), Chain(*(part.double() for part in chain)))
    length, batch = sites.mask.shape
    if not length:
        return sites.previous.expand(num_samples, -1, -1), emissions.new_zeros(num_samples, batch)
    rows = _forward(emissions, chain, sites)
    columns = chain.transitions.t().contiguous()
    size = (length, num_samples, 1 if is_shared else batch)
    uniforms = torch.rand(size, dtype=emissions.dtype, device=emissions.device, generator=generator).expand(-1, -1, batch)
    # A position uses its own random number, whatever padding follows.
    last_place = sites.is_last.to(torch.uint8).argmax(0)
    tag, log_prob = _draw((rows[-1] + chain.end).expand(num_samples, -1, -1), _at(uniforms, last_place))
    log_prob = log_prob.masked_fill(~sites.mask.any(0), 0.0)
    tags = [tag] * length
    for j in reversed(range(1, length)):
        tags[j] = tag
        has_previous = sites.mask[j] & (sites.previous[j] >= 0)
        previous, log_conditional = _draw(rows[j - 1] + columns[tag], _at(uniforms, sites.previous[j].clamp(min=0)))
        tag = torch.where(has_previous, previous, tag)
        log_prob = torch.where(has_previous, log_prob + log_conditional, log_prob)
    tags[0] = tag
    log_prob = log_prob.masked_fill(log_prob.isnan(), -math.inf)
    is_drawn = sites.mask & (log_prob > -math.inf).unsqueeze(1)
    return torch.stack(tags, 1).masked_fill(~is_drawn, NO_TAG), log_prob


def _at(uniforms: Tensor, place: Tensor) -> Tensor:
    """Returns the random numbers (S, B) of the positions `place` (B,)."""
    return uniforms.gather(0, place.expand(1, uniforms.shape[1], -1)).squeeze(0)


def _forward(emissions: Tensor, chain: Chain, sites: Sites) -> list[Tensor]:
    """Returns L × (B, |Y|): α_j(v), the logsumexp of the scores of all sequences that end in v at position j."""
    column_max = chain.transitions.amax(0)
    column_max = column_max.masked_fill(column_max == -math.inf, 0.0)
    exp_transitions = (chain.transitions - column_max).exp()
    alpha, rows = emissions.new_zeros(emissions.shape[1:]), []
    for j in range(emissions.shape[0]):
        incoming = chain.start.expand_as(alpha)
        if j > 0:
            peak = alpha.amax(-1, keepdim=True)
            peak = peak.masked_fill(peak == -math.inf, 0.0)
            sums = (alpha - peak).exp() @ exp_transitions
            step = sums.log() + peak + column_max
            if bool((sums < _SMALLEST_SUM).any()):  # Underflow, or a tag without an allowed predecessor.
                step = _log_step(alpha, chain.transitions)
            incoming = torch.where((sites.previous[j] >= 0).unsqueeze(-1), step, incoming)
        alpha = torch.where(sites.mask[j].unsqueeze(-1), incoming + emissions[j], alpha)
        rows.append(alpha)
    return rows


def _log_step(alpha: Tensor, transitions: Tensor) -> Tensor:
    """Returns logsumexp_i [α(i) + transitions[i, v]] (B, |Y|), in blocks of sequences and tags."""
    result = torch.empty_like(alpha)
    num_tags = len(transitions)
    group = max(1, block_size(alpha) // max(1, num_tags**2))
    for sequences in slices(len(alpha), group):
        for tags in slices(num_tags, block_size(alpha) // max(1, group * num_tags)):
            result[sequences, tags] = (alpha[sequences].unsqueeze(-1) + transitions[:, tags]).logsumexp(1)
    return result


def _draw(scores: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Returns tags (S, B) with probabilities ∝ exp of scores (S, B, |Y|), by inversion, and their log-probabilities."""
    log_probs = scores.log_softmax(-1)
    sums = log_probs.exp().cumsum(-1)
    total = sums[..., -1]
    # Rounding must not reach the total, after which only tags with probability 0 follow.
    threshold = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))
    tags = (sums > threshold.unsqueeze(-1)).to(torch.uint8).argmax(-1)
    return tags, log_probs.gather(-1, tags.unsqueeze(-1)).squeeze(-1)
