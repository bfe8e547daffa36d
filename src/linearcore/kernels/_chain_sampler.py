"""Independent samples from the distribution of a linear chain, with their probabilities."""

import torch
from torch import Tensor

from linearcore.kernels._blocks import block_size, slices
from linearcore.kernels._partition import log_forward
from linearcore.kernels._viterbi import without_gradient
from linearcore.structures import Chain, Sites


def sample_chains(
    emissions: Tensor, chain: Chain, sites: Sites, num_samples: int, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Returns K independent samples (K, L, B) from P(y | x) = exp(h(x, y) − log Z), 0 where masked, and log P (K, B).

    Forward filtering, backward sampling: the last tag is sampled from its marginal, and each other tag given the one after
    it, with probability proportional to exp(α_j(v) + transitions[v, y_{j+1}]). Everything is computed in float64, so log P
    is float64, and exact up to rounding. Without any allowed sequence log P is NaN. No gradient.

    Args:
        emissions: (L, B, |Y|), float32 or float64.
        chain: start, transition and end scores; −inf marks forbidden entries.
        sites: positions of the tags and their neighbours.
        num_samples: K.
        generator: random number generator on the device of `emissions`; None for torch's default.

    Time O(L·B·|Y|·(|Y| + K)), memory L×B×|Y| and one block of samples. It synchronises with the GPU as `log_partition` does.
    """
    emissions, chain = without_gradient(emissions.double(), Chain(*(part.double() for part in chain)))
    length, batch, _ = emissions.shape
    alphas = log_forward(emissions, chain, sites.mask, is_full=sites.is_full)
    columns = chain.transitions.t().contiguous()
    size = (length, num_samples, batch)
    uniform = torch.rand(size, dtype=torch.float64, generator=generator, device=emissions.device)
    tags = torch.zeros(size, dtype=torch.long, device=emissions.device)
    log_prob = emissions.new_zeros(num_samples, batch)
    is_last = sites.is_last
    for block in slices(num_samples, block_size(emissions) // max(1, emissions[:1].numel())):
        following = tags.new_zeros(len(range(*block.indices(num_samples))), batch)
        for j in reversed(range(length)):
            after = torch.where(is_last[j].unsqueeze(-1), chain.end, columns[following])
            sampled, step = _categorical(alphas[j] + after, uniform[j, block])
            following = torch.where(sites.mask[j], sampled, following)
            tags[j, block] = sampled.masked_fill(~sites.mask[j], 0)
            log_prob[block] += step.masked_fill(~sites.mask[j], 0.0)
    return tags.transpose(0, 1), log_prob


def _categorical(logits: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Samples an index (…) of the last axis of `logits` by inverting the distribution function at `uniform` (…).

    Returns the index and its log-probability. An index with logit −inf is never returned, whatever the rounding.
    """
    peak = logits.amax(-1, keepdim=True)
    cumulative = (logits - peak).exp_().cumsum(-1)
    total = cumulative[..., -1:].contiguous()
    index = torch.searchsorted(cumulative, uniform.unsqueeze(-1) * total, right=True)
    # uniform · total may be rounded up to the total: the last index with a positive probability is the limit.
    index = torch.minimum(index, torch.searchsorted(cumulative, total)).clamp(max=logits.shape[-1] - 1)
    log_prob = logits.gather(-1, index) - peak - total.log()
    return index.squeeze(-1), log_prob.squeeze(-1)
