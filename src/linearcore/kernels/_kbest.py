"""The k best tag sequences of a chain."""

import math

import torch
from torch import Tensor

from linearcore._torch import is_traced
from linearcore.kernels._blocks import block_size, slices
from linearcore.kernels._viterbi import NO_TAG, without_gradient
from linearcore.structures import Chain, Sites


def kbest(emissions: Tensor, chain: Chain, sites: Sites, k: int) -> tuple[Tensor, Tensor]:
    """The tags (k, L, B) of the k highest scores, best first, −100 where masked, and the scores (k, B).

    Where there are fewer than k sequences the rest has score −inf and no tags.

    Args:
        emissions: (L, B, |Y|), float32 or float64.
        chain: the chain's own scores; −inf forbids.
        sites: where the tags sit.
        k: how many.

    Time O(L·B·|Y|·(|Y| + k²)), memory L×B×|Y|×k. As in `viterbi`, nothing is stored for the way back but scores.
    """
    emissions, chain = without_gradient(emissions, chain)
    length, batch, num_tags = emissions.shape
    columns = chain.transitions.t().contiguous()
    # α[:, r, v]: the r-th best score of sequences that end in v. Before anything has begun there is one, and it is empty.
    alpha = emissions.new_full((batch, k, num_tags), -math.inf)
    alpha[:, 0] = 0.0
    beginning = alpha + chain.start
    rows = []
    for j in range(length):
        arrive = beginning
        if j > 0:
            arrive = torch.where((sites.previous[j] >= 0)[:, None, None], _onward(alpha, columns), arrive)
        alpha = torch.where(sites.mask[j][:, None, None], arrive + emissions[j].unsqueeze(1), alpha)
        rows.append(alpha)
    # A chain without tags ends as it began, in nothing: one sequence, of score 0.
    is_empty = ~sites.mask.any(0)
    scores, place = (alpha + chain.end).flatten(1).topk(k)
    scores = torch.where(
        is_empty.unsqueeze(-1), torch.where(torch.arange(k, device=scores.device) == 0, 0.0, -math.inf), scores
    )
    tags = _way_back(rows, columns, sites, place // num_tags, place % num_tags)
    found = sites.mask.unsqueeze(-1) & (scores > -math.inf)  # Neither −inf nor NaN.
    return tags.masked_fill(~found, NO_TAG).permute(2, 0, 1), scores.t()


def _onward(alpha: Tensor, columns: Tensor) -> Tensor:
    """(B, k, |Y|): the k best scores of arriving at every tag, some tags and chains at a time."""
    batch, k, num_tags = alpha.shape
    if is_traced():
        return _arrivals(alpha, columns.expand(batch, num_tags, num_tags))[0].transpose(1, 2)
    result = torch.empty_like(alpha)
    size = num_tags + k * k
    group = max(1, block_size(alpha) // max(1, num_tags * size))
    for tags in slices(num_tags, block_size(alpha) // max(1, group * size)):
        for chains in slices(batch, group):
            part = alpha[chains]
            values = _arrivals(part, columns[tags].expand(part.shape[0], -1, -1))[0]
            result[chains, :, tags] = values.transpose(1, 2)
    return result


def _arrivals(alpha: Tensor, columns: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The k best ways to arrive, for columns (B, N, |Y|) of the transitions: (B, N, k) scores, and ranks and tags before.

    The k best come from the k tags whose best sequence arrives best, so that only k² pairs of tag and rank are compared.
    """
    k, num_tags = alpha.shape[1:]
    width = min(k, num_tags)
    tags = (alpha[:, :1] + columns).topk(width).indices
    places = tags.unsqueeze(2).expand(-1, -1, k, -1)
    before = alpha.unsqueeze(1).expand(-1, tags.shape[1], -1, -1).gather(-1, places)
    values, place = (before + columns.gather(-1, tags).unsqueeze(2)).flatten(2).topk(k)
    return values, place // width, tags.gather(-1, place % width)


def _way_back(rows: list[Tensor], columns: Tensor, sites: Sites, rank: Tensor, tag: Tensor) -> Tensor:
    """(L, B, k) tags, from the ranks and tags (B, k) of the last position."""
    tags = [tag] * len(rows)
    for j in reversed(range(1, len(rows))):
        tags[j] = tag
        _, ranks, before = _arrivals(rows[j - 1], columns[tag])
        linked = (sites.mask[j] & (sites.previous[j] >= 0)).unsqueeze(-1)
        came_from = before.gather(-1, rank.unsqueeze(-1)).squeeze(-1)
        came_as = ranks.gather(-1, rank.unsqueeze(-1)).squeeze(-1)
        tag, rank = torch.where(linked, came_from, tag), torch.where(linked, came_as, rank)
    if rows:
        tags[0] = tag
    return torch.stack(tags) if rows else sites.previous.unsqueeze(-1).expand(-1, -1, tag.shape[-1])
