"""Viterbi decoding and beam search."""

import math
from collections.abc import Sequence
from types import ModuleType

import torch
from torch import Tensor

from linearcore._torch import is_transformed
from linearcore.kernels._fused import fused_kernels_for
from linearcore.kernels._max_product import MaxProduct
from linearcore.kernels.compiled import compiled_search
from linearcore.structures import Chain, Sites

#: Tag of masked positions, as in the heads and in torch's losses.
NO_TAG = -100


def viterbi(emissions: Tensor, chain: Chain, sites: Sites) -> tuple[Tensor, Tensor]:
    """Returns the tags (L, B) of the best sequence, −100 where masked, and its score (B,).

    If no sequence is allowed the score is −inf, and with NaN scores it is NaN; all tags are then −100.

    Args:
        emissions: (L, B, |Y|), float32 or float64.
        chain: start, transition and end scores; −inf marks forbidden entries.
        sites: positions of the tags and their neighbours.

    Time O(L·B·|Y|²), less with pruning (see `MaxProduct`); memory L×B×|Y|. Only the scores of all positions are stored.
    Tracing back recomputes one argmax per position, O(|Y|).
    """
    emissions, chain = without_gradient(emissions, chain)
    compiled = compiled_search(emissions, chain, None if sites.is_full else sites.mask)
    if compiled is not None:
        return compiled
    fused = _fused_kernels_for(emissions, chain)
    if fused and emissions.shape[-1] <= fused.MAX_TAGS:
        return fused.best_sequences(emissions, tuple(chain), sites.mask, sites.previous, NO_TAG)  # type: ignore[no-any-return]
    max_product = MaxProduct(chain.transitions)
    if fused:
        alpha = fused.best_scores(emissions, chain.start, chain.transitions, sites.mask, sites.previous)
    else:
        alpha = _best_scores(emissions, chain, sites, max_product)
    last = alpha[-1] if len(alpha) else emissions.new_zeros(emissions.shape[1:])
    scores, tag = (last + chain.end).max(-1)
    scores = scores.masked_fill(~sites.mask.any(0), 0.0)
    if fused:
        tags = fused.trace_back(alpha, max_product.all_columns, tag, sites.mask, sites.previous)
    else:
        tags = _trace_back(alpha, max_product, tag, sites)
    return tags.masked_fill(~(sites.mask & _has_path(scores)), NO_TAG), scores


def _fused_kernels_for(emissions: Tensor, chain: Chain) -> ModuleType | None:
    # torch.func does not support Triton kernels, and an empty grid cannot be launched.
    is_unsupported = is_transformed() or emissions.numel() == 0
    is_unsupported = is_unsupported or any(part.dtype != torch.float32 for part in (emissions, *chain))
    return None if is_unsupported else fused_kernels_for(emissions, *chain)


def _best_scores(emissions: Tensor, chain: Chain, sites: Sites, max_product: MaxProduct) -> Sequence[Tensor]:
    """Returns L × (B, |Y|): the best score of a sequence that ends in each tag; masked positions repeat the previous one."""
    if sites.is_full:
        return _best_scores_without_mask(emissions, chain, max_product)
    alpha = emissions.new_zeros(emissions.shape[1:])
    rows = []
    for j in range(emissions.shape[0]):
        incoming = chain.start.expand_as(alpha)
        if j > 0:
            incoming = torch.where((sites.previous[j] >= 0).unsqueeze(-1), max_product(alpha), incoming)
        alpha = torch.where(sites.mask[j].unsqueeze(-1), incoming + emissions[j], alpha)
        rows.append(alpha)
    return rows


def _best_scores_without_mask(emissions: Tensor, chain: Chain, max_product: MaxProduct) -> list[Tensor]:
    """`_best_scores` if no position is masked; with few tags most of the time of a step is the overhead of its calls."""
    rows: list[Tensor] = []
    for emission in emissions.unbind():
        rows.append((max_product(rows[-1]) if rows else chain.start) + emission)
    return rows


def _trace_back(rows: Sequence[Tensor], max_product: MaxProduct, tag: Tensor, sites: Sites) -> Tensor:
    """Returns the tags (L, B) of the best sequence that ends in `tag` (B,)."""
    tags = [tag] * len(rows)
    for j in reversed(range(1, len(rows))):
        tags[j] = tag
        previous_tag = (rows[j - 1] + max_product.columns(tag)).argmax(-1)
        tag = previous_tag if sites.is_full else torch.where(sites.mask[j] & (sites.previous[j] >= 0), previous_tag, tag)
    if rows:
        tags[0] = tag
    return _stack(tags, sites)


def beam(emissions: Tensor, chain: Chain, sites: Sites, width: int) -> tuple[Tensor, Tensor]:
    """Beam search: like `viterbi`, but keeps only the `width` best partial sequences at each position.

    The score is that of the returned tags. It equals the exact maximum with width = |Y|. Time O(L·B·|Y|·width).
    """
    emissions, chain = without_gradient(emissions, chain)
    width = min(width, emissions.shape[-1])
    value = emissions.new_zeros(emissions.shape[1], width)
    state = torch.zeros_like(value, dtype=torch.long)
    steps = []
    for j in range(emissions.shape[0]):
        incoming = chain.start.expand(emissions.shape[1:])
        if j > 0:
            step = (chain.transitions[state] + value.unsqueeze(-1)).amax(1)
            incoming = step if sites.is_full else torch.where((sites.previous[j] >= 0).unsqueeze(-1), step, incoming)
        new_value, new_state = (incoming + emissions[j]).topk(width)
        if sites.is_full:
            value, state = new_value, new_state
        else:
            is_unmasked = sites.mask[j].unsqueeze(-1)
            value, state = torch.where(is_unmasked, new_value, value), torch.where(is_unmasked, new_state, state)
        steps.append((value, state))
    scores, index = (value + chain.end[state]).max(-1)
    tag = state.gather(-1, index.unsqueeze(-1)).squeeze(-1)
    tags = [tag] * len(steps)
    for j in reversed(range(1, len(steps))):
        tags[j] = tag
        value, state = steps[j - 1]
        index = (value + chain.transitions[state, tag.unsqueeze(-1)]).argmax(-1, keepdim=True)
        previous_tag = state.gather(-1, index).squeeze(-1)
        tag = torch.where(sites.mask[j] & (sites.previous[j] >= 0), previous_tag, tag)
    if steps:
        tags[0] = tag
    scores = scores.masked_fill(~sites.mask.any(0), 0.0)
    return _stack(tags, sites).masked_fill(~(sites.mask & _has_path(scores)), NO_TAG), scores


def without_gradient(emissions: Tensor, chain: Chain) -> tuple[Tensor, Chain]:
    """Detaches the scores. torch.no_grad would not stop forward-mode differentiation."""
    return emissions.detach(), Chain(*(part.detach() for part in chain))


def _has_path(scores: Tensor) -> Tensor:
    """Returns whether the best score belongs to a sequence: False for −inf and NaN."""
    return scores > -math.inf


def _stack(tags: list[Tensor], sites: Sites) -> Tensor:
    return torch.stack(tags) if tags else sites.previous
