"""k-best Viterbi decoding."""

import math

import torch
from torch import Tensor

from linearcore._torch import is_traced
from linearcore.kernels._blocks import block_size, slices
from linearcore.kernels._viterbi import NO_TAG, without_gradient
from linearcore.kernels.compiled import compiled_search
from linearcore.structures import Chain, Sites


def kbest(emissions: Tensor, chain: Chain, sites: Sites, k: int) -> tuple[Tensor, Tensor]:
    """Returns the tags (k, L, B) of the k best sequences, best first, −100 where masked, and their scores (k, B).

    If fewer than k sequences exist, the others have score −inf and tags −100.

    Args:
        emissions: (L, B, |Y|), float32 or float64.
        chain: start, transition and end scores; −inf marks forbidden entries.
        sites: positions of the tags and their neighbours.
        k: number of sequences.

    Time O(L·B·|Y|·(|Y| + k²)), memory L×B×|Y|×k. As in `viterbi`, only scores are stored; there are no back-pointers.
    """
    emissions, chain = without_gradient(emissions, chain)
    compiled = compiled_search(emissions, chain, None if sites.is_full else sites.mask, k)
    if compiled is not None:
        return compiled
    length, batch, num_tags = emissions.shape
    columns = chain.transitions.t().contiguous()
    # α[:, r, v]: the r-th best score of sequences that end in v. At the start only the empty sequence exists.
    alpha = emissions.new_full((batch, k, num_tags), -math.inf)
    alpha[:, 0] = 0.0
    first_scores = alpha + chain.start
    rows = []
    for j in range(length):
        incoming = first_scores
        if j > 0:
            incoming = torch.where((sites.previous[j] >= 0)[:, None, None], _next_scores(alpha, columns), incoming)
        alpha = torch.where(sites.mask[j][:, None, None], incoming + emissions[j].unsqueeze(1), alpha)
        rows.append(alpha)
    # The empty sequence has score 0.
    is_empty = ~sites.mask.any(0)
    scores, position = (alpha + chain.end).flatten(1).topk(k)
    scores = torch.where(
        is_empty.unsqueeze(-1), torch.where(torch.arange(k, device=scores.device) == 0, 0.0, -math.inf), scores
    )
    tags = _trace_back(rows, columns, sites, position // num_tags, position % num_tags)
    is_valid = sites.mask.unsqueeze(-1) & (scores > -math.inf)  # Neither −inf nor NaN.
    return tags.masked_fill(~is_valid, NO_TAG).permute(2, 0, 1), scores.t()


def _next_scores(alpha: Tensor, columns: Tensor) -> Tensor:
    """Returns the k best scores (B, k, |Y|) of a transition into each tag, in blocks of tags and sequences."""
    batch, k, num_tags = alpha.shape
    if is_traced():
        return _best_predecessors(alpha, columns.expand(batch, num_tags, num_tags))[0].transpose(1, 2)
    result = torch.empty_like(alpha)
    size = num_tags + k * k
    group = max(1, block_size(alpha) // max(1, num_tags * size))
    for tags in slices(num_tags, block_size(alpha) // max(1, group * size)):
        for sequences in slices(batch, group):
            part = alpha[sequences]
            values = _best_predecessors(part, columns[tags].expand(part.shape[0], -1, -1))[0]
            result[sequences, :, tags] = values.transpose(1, 2)
    return result


def _best_predecessors(alpha: Tensor, columns: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns scores (B, N, k), ranks and tags of the k best predecessors, for columns (B, N, |Y|) of the transitions.

    The k best are among the k tags with the best rank-0 score, so only k² pairs of tag and rank are compared.
    """
    k, num_tags = alpha.shape[1:]
    width = min(k, num_tags)
    tags = (alpha[:, :1] + columns).topk(width).indices
    positions = tags.unsqueeze(2).expand(-1, -1, k, -1)
    before = alpha.unsqueeze(1).expand(-1, tags.shape[1], -1, -1).gather(-1, positions)
    values, position = (before + columns.gather(-1, tags).unsqueeze(2)).flatten(2).topk(k)
    return values, position // width, tags.gather(-1, position % width)


def _trace_back(rows: list[Tensor], columns: Tensor, sites: Sites, rank: Tensor, tag: Tensor) -> Tensor:
    """Returns tags (L, B, k), from the ranks and tags (B, k) of the last position."""
    tags = [tag] * len(rows)
    for j in reversed(range(1, len(rows))):
        tags[j] = tag
        _, ranks, before = _best_predecessors(rows[j - 1], columns[tag])
        has_previous = (sites.mask[j] & (sites.previous[j] >= 0)).unsqueeze(-1)
        previous_tag = before.gather(-1, rank.unsqueeze(-1)).squeeze(-1)
        previous_rank = ranks.gather(-1, rank.unsqueeze(-1)).squeeze(-1)
        tag, rank = torch.where(has_previous, previous_tag, tag), torch.where(has_previous, previous_rank, rank)
    if rows:
        tags[0] = tag
    return torch.stack(tags) if rows else sites.previous.unsqueeze(-1).expand(-1, -1, tag.shape[-1])
