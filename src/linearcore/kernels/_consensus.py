"""Minimum-risk choice: the sequence with the least expected cost, from the best sequences and from samples."""

import math

import torch
from torch import Tensor

from linearcore.kernels._blocks import DEVICE_BLOCK, slices
from linearcore.structures import Cost, Hamming

#: Pairs of sequences times positions in a block on a CPU.
_CPU_BLOCK = 2**21
#: Differences in expected cost that are rounding errors; the first of such sequences is chosen.
_ROUNDING = 1e-6


def consensus(
    best: Tensor,
    log_probs: Tensor,
    mask: Tensor,
    cost: Cost,
    *,
    others: Tensor | None = None,
    drawn: Tensor | None = None,
    marginals: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns the tags (L, B) with the least expected cost among `best` and `others`, and an estimate of this cost (B,).

        Σ_{y in best} p(y) ℓ(y', y) + (1 − Σ_{y in best} p(y)) · mean of ℓ(y', y) over the drawn y that are not in `best`

    The sum over the best sequences is exact, and the samples stand for the rest. Without samples outside of `best`, p is
    restricted to `best`. With marginals, the Hamming cost is a control variate, since they give its expectation exactly.
    Without it, 64 samples can be so noisy that the choice is worse than the best sequence.

    Args:
        best: (K, L, B) tags of the most probable sequences, best first; negative tags if there are fewer.
        log_probs: (K, B) log p, −inf if there are fewer; p need not be normalised if `drawn` is None.
        mask: (L, B) booleans.
        cost: ℓ.
        others: (N, L, B) further sequences to choose from.
        drawn: (S, L, B) samples from p.
        marginals: (L, B, |Y|) probabilities of the tags under p; only with `drawn`.

    Time: that of the cost for (K + N)·(K + S) pairs of each sequence, in blocks of sequences.
    """
    candidates = best if others is None else torch.cat([best, others])
    references, weights = best, log_probs.double().softmax(0)
    errors = None
    if drawn is not None:
        references, weights = torch.cat([best, drawn]), _weights(best, log_probs, drawn, mask)
        errors = None if marginals is None else _expected_errors(candidates, marginals, mask)
    risks = _expected_costs(candidates, references, weights, mask, cost, errors)
    is_allowed = ((candidates >= 0) | ~mask).all(1)
    risks = risks.masked_fill(~is_allowed, math.inf)
    least = risks.amin(0)
    index = (risks <= least + _ROUNDING).to(torch.uint8).argmax(0)
    return candidates.gather(0, index.expand(1, *mask.shape)).squeeze(0), least.clamp(0.0, 1.0)


def _weights(best: Tensor, log_probs: Tensor, drawn: Tensor, mask: Tensor) -> Tensor:
    """Returns the weights (K + S, B) of the best sequences and of the samples; a sample in `best` has weight 0."""
    probs = log_probs.double().exp()
    is_new = ~((drawn.unsqueeze(1) == best) | ~mask).all(2).any(1)
    rest = (1 - probs.sum(0)).clamp(min=0.0)
    weights = torch.cat([probs, is_new * rest / is_new.sum(0).clamp(min=1)])
    return weights / weights.sum(0)


def _expected_errors(candidates: Tensor, marginals: Tensor, mask: Tensor) -> Tensor:
    """Returns the expected fraction (K, B) of wrong tags of each candidate, exactly."""
    probs = torch.stack([marginals.gather(-1, tags.clamp(min=0).unsqueeze(-1)).squeeze(-1) for tags in candidates])
    return (1 - probs).double().masked_fill(~mask, 0.0).sum(1) / mask.sum(0).clamp(min=1)


def _expected_costs(
    candidates: Tensor, references: Tensor, weights: Tensor, mask: Tensor, cost: Cost, errors: Tensor | None
) -> Tensor:
    """Returns Σ_m w_m ℓ(y'_k, y_m) (K, B), float64, in blocks of sequences; with `errors` corrected by a control variate."""
    left, right = (tags.clamp(min=0).permute(0, 2, 1) for tags in (candidates, references))
    rows = mask.t()
    block = _CPU_BLOCK if mask.device.type == "cpu" else DEVICE_BLOCK
    risks = torch.empty(len(left), len(rows), dtype=torch.float64, device=mask.device)
    for part in slices(len(rows), block // max(1, len(left) * len(right) * rows.shape[1])):
        pairs, weight = (left[:, None, part], right[:, part], rows[part]), weights[:, part]
        costs = cost.between(*pairs).double()
        risks[:, part] = (costs * weight).sum(1)
        if errors is not None:
            risks[:, part] -= _correction(costs, Hamming().between(*pairs).double(), weight, errors[:, part])
    return risks


def _correction(costs: Tensor, hamming: Tensor, weight: Tensor, errors: Tensor) -> Tensor:
    """Returns β · (estimated − exact expected Hamming cost) (K, B).

    β (B,) is the coefficient of a regression of costs (K, M, B) on Hamming costs (K, M, B), both as differences from the
    first candidate, since only differences matter for the choice.
    """
    slopes = [values - values[:1] for values in (costs, hamming)]
    cost, error = (values - (values * weight).sum(1, keepdim=True) for values in slopes)
    variance = (weight * error.square()).sum((0, 1))
    beta = torch.where(variance > 1e-12, (weight * cost * error).sum((0, 1)) / variance.clamp(min=1e-12), 0.0)
    return beta * ((hamming * weight).sum(1) - errors)
