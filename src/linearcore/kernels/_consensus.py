"""Minimum-risk choice: the sequence with the least expected cost, from the best sequences and from samples."""

import math

import torch
from torch import Tensor

from linearcore.kernels._blocks import DEVICE_BLOCK, slices
from linearcore.structures import Cost

#: Pairs of sequences times positions in a block on a CPU.
_CPU_BLOCK = 2**21


def consensus(
    best: Tensor, log_probs: Tensor, mask: Tensor, cost: Cost, *, drawn: Tensor | None = None, others: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Returns the tags (L, B) with the least expected cost among `best` and `others`, and this cost (B,).

        Σ_{y in best} p(y) ℓ(y', y) + (1 − Σ_{y in best} p(y)) · mean of ℓ(y', y) over the drawn y that are not in `best`

    The sum over the best sequences is exact, and the samples stand for the rest. Without samples outside of `best`, p is
    restricted to `best`. Of several sequences with the same expected cost the first is chosen.

    Args:
        best: (K, L, B) tags of the most probable sequences, best first; negative tags if there are fewer.
        log_probs: (K, B) log p, −inf if there are fewer; p need not be normalised if `drawn` is None.
        mask: (L, B) booleans.
        cost: ℓ.
        drawn: (S, L, B) samples from p.
        others: (N, L, B) further sequences to choose from.

    Time: that of the cost for (K + N)·(K + S) pairs of each sequence, in blocks of sequences.
    """
    candidates = best if others is None else torch.cat([best, others])
    references, weights = best, log_probs.double().softmax(0)
    if drawn is not None:
        references, weights = torch.cat([best, drawn]), _weights(best, log_probs, drawn, mask)
    risks = _expected_costs(candidates, references, weights, mask, cost)
    is_allowed = ((candidates >= 0) | ~mask).all(1)
    # Several sequences may have the same tags but other rounding errors.
    risk = risks.masked_fill(~is_allowed, math.inf)
    least = risk.amin(0)
    index = (risk <= least + 1e-9).to(torch.uint8).argmax(0)
    return candidates.gather(0, index.expand(1, *mask.shape)).squeeze(0), least


def _weights(best: Tensor, log_probs: Tensor, drawn: Tensor, mask: Tensor) -> Tensor:
    """Returns the weights (K + S, B) of the best sequences and of the samples; a sample in `best` has weight 0."""
    probs = log_probs.double().exp()
    is_new = ~((drawn.unsqueeze(1) == best) | ~mask).all(2).any(1)
    rest = (1 - probs.sum(0)).clamp(min=0.0)
    weights = torch.cat([probs, is_new * rest / is_new.sum(0).clamp(min=1)])
    return weights / weights.sum(0)


def _expected_costs(candidates: Tensor, references: Tensor, weights: Tensor, mask: Tensor, cost: Cost) -> Tensor:
    """Returns Σ_m w_m ℓ(y'_k, y_m) (K, B), float64, in blocks of sequences."""
    left, right = (tags.clamp(min=0).permute(0, 2, 1) for tags in (candidates, references))
    rows = mask.t()
    block = _CPU_BLOCK if mask.device.type == "cpu" else DEVICE_BLOCK
    risks = torch.empty(len(left), len(rows), dtype=torch.float64, device=mask.device)
    for part in slices(len(rows), block // max(1, len(left) * len(right) * rows.shape[1])):
        costs = cost.between(left[:, None, part], right[:, part], rows[part])
        risks[:, part] = torch.einsum("kmb,mb->kb", costs.double(), weights[:, part])
    return risks
