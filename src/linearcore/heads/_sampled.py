"""Local scores of sampled candidates from hidden states, without any tensor of size |Y|."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.kernels import entries
from linearcore.structures import Sites

#: Two tensors, for example values (N, 1) of the true tags and (N, K) of the candidates.
Pair = tuple[Tensor, Tensor]


class Neighbours(NamedTuple):
    """Neighbouring tags of every position of a batch, as rows N = L·B.

    Attributes:
        before, after: (N,) tags of the neighbours; arbitrary if there is no neighbour.
        is_first, is_last: (N, 1) booleans.
    """

    before: Tensor
    after: Tensor
    is_first: Tensor
    is_last: Tensor

    @classmethod
    def of(cls, tags: Tensor, sites: Sites) -> "Neighbours":
        """Returns the neighbours of true tags (L, B)."""
        is_edge = (flag.reshape(-1, 1) for flag in (sites.is_first, sites.is_last))
        return cls(sites.before(tags).reshape(-1), sites.after(tags).reshape(-1), *is_edge)


class Edges(NamedTuple):
    """Parameters of a chain, with the transitions as one matrix or as factors.

    Attributes:
        start, end: (|Y|,).
        transitions: (|Y|, |Y|), or None if `factors` is set.
        factors: two (|Y|, r), or None.
        allowed: booleans for start, transitions and end, or None.
    """

    start: Tensor
    end: Tensor
    transitions: Tensor | None
    factors: tuple[Tensor, Tensor] | None
    allowed: tuple[Tensor, Tensor, Tensor] | None


def edge_scores(
    edges: Edges, neighbours: Neighbours, labels: Tensor, others: Tensor, dtype: torch.dtype, *, sparse: bool
) -> tuple[Tensor, Tensor]:
    """Returns transition scores: (N, 1) of the true tags `labels` (N,), and (N, K) of `others` (N, K) or (1, K).

        transitions[before, v] + transitions[v, after],   with start[v] and end[v] at the ends of a sequence

    With `sparse`, gradients are sparse: O(N·K) entries of a matrix, O(N + K) rows of factors if candidates are shared.
    """
    tags = torch.cat([labels, others.reshape(-1)])
    if edges.transitions is not None:
        before, after = _matrix_scores(edges.transitions, neighbours, labels, others, sparse=sparse, dtype=dtype)
    else:
        assert edges.factors is not None
        before, after = _factor_scores(edges.factors, neighbours, tags, others.shape, sparse=sparse, dtype=dtype)
    start, end = (_split(entries(part, tags, sparse=sparse).to(dtype), others.shape) for part in (edges.start, edges.end))
    first, last = neighbours.is_first, neighbours.is_last
    scores = [torch.where(first, start[i], before[i]) + torch.where(last, end[i], after[i]) for i in range(2)]
    if edges.allowed is not None:
        for i, candidates in enumerate((labels.unsqueeze(-1), others)):
            scores[i] = scores[i].masked_fill(~_is_allowed(edges.allowed, neighbours, candidates), -math.inf)
    return scores[0], scores[1]


def _matrix_scores(
    matrix: Tensor, neighbours: Neighbours, labels: Tensor, others: Tensor, *, sparse: bool, dtype: torch.dtype
) -> tuple[Pair, Pair]:
    """Returns scores (N, 1) and (N, K) of the transition from the previous tag, and of the one to the next tag."""
    candidates = torch.cat([labels.unsqueeze(-1), others.expand(labels.shape[0], -1)], -1)
    before, after = (tags.unsqueeze(-1).expand_as(candidates) for tags in (neighbours.before, neighbours.after))
    # Both directions in one look-up, so the gradient is one sparse tensor.
    left, right = entries(matrix, torch.stack([before, candidates]), torch.stack([candidates, after]), sparse=sparse).to(
        dtype
    )
    return (left[:, :1], left[:, 1:]), (right[:, :1], right[:, 1:])


def _factor_scores(
    factors: Pair, neighbours: Neighbours, tags: Tensor, size: torch.Size, *, sparse: bool, dtype: torch.dtype
) -> tuple[Pair, Pair]:
    """Like `_matrix_scores` for transitions = F Tᵀ; `tags` are the true tags, then the candidates with shape `size`."""
    num_rows = neighbours.before.shape[0]
    # One look-up per factor, so each gradient is one sparse tensor.
    sources = entries(factors[0], torch.cat([neighbours.before, tags]), sparse=sparse).to(dtype)
    targets = entries(factors[1], torch.cat([neighbours.after, tags]), sparse=sparse).to(dtype)
    before = _products(sources[:num_rows], targets[num_rows:], size)
    return before, _products(targets[:num_rows], sources[num_rows:], size)


def _products(neighbours: Tensor, rows: Tensor, size: torch.Size) -> Pair:
    """Returns inner products (N, 1) and (N, K) of factor rows `neighbours` (N, r) with the `rows` of the tags."""
    true_rows, others = rows[: neighbours.shape[0]], rows[neighbours.shape[0] :]
    label_products = (neighbours * true_rows).sum(-1, keepdim=True)
    if size[0] == 1:
        return label_products, neighbours @ others.t()
    return label_products, torch.einsum("nr,nkr->nk", neighbours, others.view(*size, neighbours.shape[1]))


def _split(values: Tensor, size: torch.Size) -> Pair:
    """Splits `values` into (N, 1) of the true tags and (N, K) or (1, K) of the candidates."""
    num_rows = values.shape[0] - size.numel()
    return values[:num_rows].unsqueeze(-1), values[num_rows:].view(size)


def _is_allowed(allowed: tuple[Tensor, Tensor, Tensor], neighbours: Neighbours, candidates: Tensor) -> Tensor:
    may_start, may_follow, may_end = allowed
    before, after = neighbours.before.unsqueeze(-1), neighbours.after.unsqueeze(-1)
    is_allowed = torch.where(neighbours.is_first, may_start[candidates], may_follow[before, candidates])
    return is_allowed & torch.where(neighbours.is_last, may_end[candidates], may_follow[candidates, after])


def num_candidates(edges: Edges, neighbours: Neighbours) -> int | Tensor:
    """Returns the number of allowed tags at each position (N,), or |Y| without constraints."""
    if edges.allowed is None:
        return len(edges.start)
    may_start, may_follow, may_end = edges.allowed
    allowed = torch.where(neighbours.is_first, may_start, may_follow[neighbours.before])
    return (allowed & torch.where(neighbours.is_last, may_end, may_follow.t()[neighbours.after])).sum(-1)


def unpack_projection(projection: object, num_tags: int, width: int) -> tuple[Tensor, Tensor | None]:
    """Returns (weight, bias) of an nn.Linear, a pair or a single weight; raises if the shapes do not fit."""
    weight: object
    bias: object
    if isinstance(projection, Tensor):
        weight, bias = projection, None
    elif isinstance(projection, tuple) and len(projection) == 2:
        weight, bias = projection
    else:
        weight, bias = getattr(projection, "weight", None), getattr(projection, "bias", None)
    advice = "pass the nn.Linear that computes the emissions, or its (weight, bias)"
    if not isinstance(weight, Tensor) or not (bias is None or isinstance(bias, Tensor)):
        raise TypeError(complaint("projection", "be an nn.Linear or its weight and bias", type(projection).__name__, advice))
    if weight.shape != (num_tags, width):
        got = tuple(weight.shape)
        raise ValueError(complaint("projection", f"map {width} features to {num_tags} tags", f"a weight of {got}", advice))
    if bias is not None and bias.shape != (num_tags,):
        got = tuple(bias.shape)
        raise ValueError(complaint("projection", f"have one bias for each of {num_tags} tags", f"a bias of {got}", advice))
    return weight, bias
