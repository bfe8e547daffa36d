"""The best tag sequence of a chain, exactly or by a beam."""

import math
from collections.abc import Sequence
from types import ModuleType

import torch
from torch import Tensor

from linearcore._torch import is_transformed
from linearcore.kernels._fused import fused_for
from linearcore.kernels._max_product import MaxProduct
from linearcore.structures import Chain, Sites

#: What tags are where there is none; the heads read it as a masked position, and so do torch's losses.
NO_TAG = -100


def viterbi(emissions: Tensor, chain: Chain, sites: Sites) -> tuple[Tensor, Tensor]:
    """The tags (L, B) of the highest score, −100 where masked, and that score (B,).

    A chain without a path has score −inf and no tags. One with a NaN score has score NaN and no tags.

    Args:
        emissions: (L, B, |Y|), float32 or float64.
        chain: the chain's own scores; −inf forbids.
        sites: where the tags sit.

    Time O(L·B·|Y|²), less where bounds tell (see `MaxProduct`); memory L×B×|Y|. The scores of all positions are kept and
    the way back asks each only for the one predecessor that it needs, O(|Y|).
    """
    emissions, chain = without_gradient(emissions, chain)
    best = MaxProduct(chain.transitions)
    fused = _fused_for(emissions, chain)
    if fused:
        alpha = fused.best_scores(emissions, chain.start, chain.transitions, sites.mask, sites.previous)
    else:
        alpha = _best_scores(emissions, chain, sites, best)
    last = alpha[-1] if len(alpha) else emissions.new_zeros(emissions.shape[1:])
    scores, tag = (last + chain.end).max(-1)
    scores = scores.masked_fill(~sites.mask.any(0), 0.0)
    if fused:
        tags = fused.trace_back(alpha, best.all_columns, tag, sites.mask, sites.previous)
    else:
        tags = _trace_back(alpha, best, tag, sites)
    return tags.masked_fill(~(sites.mask & _has_path(scores)), NO_TAG), scores


def _fused_for(emissions: Tensor, chain: Chain) -> ModuleType | None:
    # Transforms see no Triton kernel, and one that has nothing to do cannot be launched.
    is_plain = is_transformed() or emissions.numel() == 0
    is_plain = is_plain or any(part.dtype != torch.float32 for part in (emissions, *chain))
    return None if is_plain else fused_for(emissions, *chain)


def _best_scores(emissions: Tensor, chain: Chain, sites: Sites, best: MaxProduct) -> Sequence[Tensor]:
    """L × (B, |Y|): the score of the best way to each tag. Where there is none it is that of the position before."""
    alpha = emissions.new_zeros(emissions.shape[1:])
    rows = []
    for j in range(emissions.shape[0]):
        arrive = chain.start.expand_as(alpha)
        if j > 0:
            arrive = torch.where((sites.previous[j] >= 0).unsqueeze(-1), best(alpha), arrive)
        alpha = torch.where(sites.mask[j].unsqueeze(-1), arrive + emissions[j], alpha)
        rows.append(alpha)
    return rows


def _trace_back(rows: Sequence[Tensor], best: MaxProduct, tag: Tensor, sites: Sites) -> Tensor:
    """(L, B): the tags of the best way that ends in `tag` (B,)."""
    tags = [tag] * len(rows)
    for j in reversed(range(1, len(rows))):
        tags[j] = tag
        came_from = (rows[j - 1] + best.columns(tag)).argmax(-1)
        tag = torch.where(sites.mask[j] & (sites.previous[j] >= 0), came_from, tag)
    if rows:
        tags[0] = tag
    return _stacked(tags, sites)


def beam(emissions: Tensor, chain: Chain, sites: Sites, width: int) -> tuple[Tensor, Tensor]:
    """Like `viterbi`, but from each position only the `width` best partial sequences go on.

    The score is that of the tags found, so at most the exact one, and equal to it with width = |Y|. Time O(L·B·|Y|·width).
    """
    emissions, chain = without_gradient(emissions, chain)
    width = min(width, emissions.shape[-1])
    value = emissions.new_zeros(emissions.shape[1], width)
    state = torch.zeros_like(value, dtype=torch.long)
    steps = []
    for j in range(emissions.shape[0]):
        arrive = chain.start.expand(emissions.shape[1:])
        if j > 0:
            onward = (chain.transitions[state] + value.unsqueeze(-1)).amax(1)
            arrive = torch.where((sites.previous[j] >= 0).unsqueeze(-1), onward, arrive)
        new_value, new_state = (arrive + emissions[j]).topk(width)
        here = sites.mask[j].unsqueeze(-1)
        value, state = torch.where(here, new_value, value), torch.where(here, new_state, state)
        steps.append((value, state))
    scores, place = (value + chain.end[state]).max(-1)
    tag = state.gather(-1, place.unsqueeze(-1)).squeeze(-1)
    tags = [tag] * len(steps)
    for j in reversed(range(1, len(steps))):
        tags[j] = tag
        value, state = steps[j - 1]
        place = (value + chain.transitions[state, tag.unsqueeze(-1)]).argmax(-1, keepdim=True)
        came_from = state.gather(-1, place).squeeze(-1)
        tag = torch.where(sites.mask[j] & (sites.previous[j] >= 0), came_from, tag)
    if steps:
        tags[0] = tag
    scores = scores.masked_fill(~sites.mask.any(0), 0.0)
    return _stacked(tags, sites).masked_fill(~(sites.mask & _has_path(scores)), NO_TAG), scores


def without_gradient(emissions: Tensor, chain: Chain) -> tuple[Tensor, Chain]:
    """Detached: what is found are tags. torch.no_grad would not stop forward-mode differentiation."""
    return emissions.detach(), Chain(*(part.detach() for part in chain))


def _has_path(scores: Tensor) -> Tensor:
    """Whether the best score stands for a sequence: −inf is no path, and NaN says nothing about any tag."""
    return scores > -math.inf


def _stacked(tags: list[Tensor], sites: Sites) -> Tensor:
    return torch.stack(tags) if tags else sites.previous
