"""Local scores of sampled candidates, from hidden states: nothing here is as wide as the number of tags."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.kernels import entries
from linearcore.structures import Sites

#: Numbers for the true tags, (N, 1), and for the candidates, (N, K).
Pair = tuple[Tensor, Tensor]


class Neighbours(NamedTuple):
    """What is around every site of a batch, as rows N = L·B.

    Attributes:
        before, after: (N,) the neighbours' tags, any where there is none.
        is_first, is_last: (N, 1) booleans.
    """

    before: Tensor
    after: Tensor
    is_first: Tensor
    is_last: Tensor

    @classmethod
    def of(cls, tags: Tensor, sites: Sites) -> "Neighbours":
        """Those of true tags (L, B)."""
        edges = (edge.reshape(-1, 1) for edge in (sites.is_first, sites.is_last))
        return cls(sites.before(tags).reshape(-1), sites.after(tags).reshape(-1), *edges)


class Edges(NamedTuple):
    """The parameters of a chain as they are stored.

    Attributes:
        start, end: (|Y|,).
        transitions: (|Y|, |Y|), or None where they are factors.
        factors: two (|Y|, r), or None.
        allowed: booleans for start, transitions and end, or None.
    """

    start: Tensor
    end: Tensor
    transitions: Tensor | None
    factors: tuple[Tensor, Tensor] | None
    allowed: tuple[Tensor, Tensor, Tensor] | None


def edge_scores(
    edges: Edges, around: Neighbours, own: Tensor, others: Tensor, dtype: torch.dtype, *, sparse: bool
) -> tuple[Tensor, Tensor]:
    """What the neighbours add to the scores: (N, 1) of the tags `own` (N,), and (N, K) of `others` (N, K) or (1, K).

        transitions[before, v] + transitions[v, after],   start[v] and end[v] at the edges

    With `sparse`, gradients are sparse: O(N·K) entries of a matrix, O(N + K) rows of factors where candidates are shared.
    """
    tags = torch.cat([own, others.reshape(-1)])
    if edges.transitions is not None:
        before, after = _matrix_scores(edges.transitions, around, own, others, sparse=sparse, dtype=dtype)
    else:
        assert edges.factors is not None
        before, after = _factor_scores(*edges.factors, around, tags, others.shape, sparse=sparse, dtype=dtype)
    start, end = (_split(entries(part, tags, sparse=sparse).to(dtype), others.shape) for part in (edges.start, edges.end))
    first, last = around.is_first, around.is_last
    scores = [torch.where(first, start[i], before[i]) + torch.where(last, end[i], after[i]) for i in range(2)]
    if edges.allowed is not None:
        for i, candidates in enumerate((own.unsqueeze(-1), others)):
            scores[i] = scores[i].masked_fill(~_is_allowed(edges.allowed, around, candidates), -math.inf)
    return scores[0], scores[1]


def _matrix_scores(
    matrix: Tensor, around: Neighbours, own: Tensor, others: Tensor, *, sparse: bool, dtype: torch.dtype
) -> tuple[Pair, Pair]:
    """(N, 1) and (N, K) from the tag before, and to the tag after."""
    candidates = torch.cat([own.unsqueeze(-1), others.expand(own.shape[0], -1)], -1)
    before, after = (tags.unsqueeze(-1).expand_as(candidates) for tags in (around.before, around.after))
    # Both sides in one look-up, so that the gradient is one sparse tensor.
    left, right = entries(matrix, torch.stack([before, candidates]), torch.stack([candidates, after]), sparse=sparse).to(
        dtype
    )
    return (left[:, :1], left[:, 1:]), (right[:, :1], right[:, 1:])


def _factor_scores(
    source: Tensor, target: Tensor, around: Neighbours, tags: Tensor, size: torch.Size, *, sparse: bool, dtype: torch.dtype
) -> tuple[Pair, Pair]:
    """The same for transitions = F Tᵀ; `tags` are the true ones and then the candidates, whose shape is `size`."""
    num_rows = around.before.shape[0]
    # One look-up for each factor, neighbours and tags together, so that each gradient is one sparse tensor.
    sources = entries(source, torch.cat([around.before, tags]), sparse=sparse).to(dtype)
    targets = entries(target, torch.cat([around.after, tags]), sparse=sparse).to(dtype)
    before = _products(sources[:num_rows], targets[num_rows:], size)
    return before, _products(targets[:num_rows], sources[num_rows:], size)


def _products(neighbours: Tensor, rows: Tensor, size: torch.Size) -> Pair:
    """(N, 1) and (N, K): inner products of the neighbours' rows (N, r) with those of the tags."""
    own, others = rows[: neighbours.shape[0]], rows[neighbours.shape[0] :]
    of_own = (neighbours * own).sum(-1, keepdim=True)
    if size[0] == 1:
        return of_own, neighbours @ others.t()
    return of_own, torch.einsum("nr,nkr->nk", neighbours, others.view(*size, neighbours.shape[1]))


def _split(values: Tensor, size: torch.Size) -> Pair:
    """(N, 1) and (N, K) or (1, K)."""
    num_rows = values.shape[0] - size.numel()
    return values[:num_rows].unsqueeze(-1), values[num_rows:].view(size)


def _is_allowed(allowed: tuple[Tensor, Tensor, Tensor], around: Neighbours, candidates: Tensor) -> Tensor:
    may_start, may_follow, may_end = allowed
    before, after = around.before.unsqueeze(-1), around.after.unsqueeze(-1)
    enters = torch.where(around.is_first, may_start[candidates], may_follow[before, candidates])
    return enters & torch.where(around.is_last, may_end[candidates], may_follow[candidates, after])


def num_candidates(edges: Edges, around: Neighbours) -> int | Tensor:
    """How many tags the constraints allow at each site (N,), or all."""
    if edges.allowed is None:
        return len(edges.start)
    may_start, may_follow, may_end = edges.allowed
    allowed = torch.where(around.is_first, may_start, may_follow[around.before])
    return (allowed & torch.where(around.is_last, may_end, may_follow.t()[around.after])).sum(-1)


def projection_of(projection: object, num_tags: int, width: int) -> tuple[Tensor, Tensor | None]:
    """(weight, bias) of an nn.Linear, of a pair, or of a weight alone; raises unless they fit."""
    weight: object
    bias: object
    if isinstance(projection, Tensor):
        weight, bias = projection, None
    elif isinstance(projection, tuple) and len(projection) == 2:
        weight, bias = projection
    else:
        weight, bias = getattr(projection, "weight", None), getattr(projection, "bias", None)
    advice = "pass the nn.Linear that would make the emissions, or its (weight, bias)"
    if not isinstance(weight, Tensor) or not (bias is None or isinstance(bias, Tensor)):
        raise TypeError(complaint("projection", "be an nn.Linear or its weight and bias", type(projection).__name__, advice))
    if weight.shape != (num_tags, width):
        got = tuple(weight.shape)
        raise ValueError(complaint("projection", f"map {width} numbers to {num_tags} tags", f"a weight of {got}", advice))
    if bias is not None and bias.shape != (num_tags,):
        got = tuple(bias.shape)
        raise ValueError(complaint("projection", f"have one bias for each of {num_tags} tags", f"a bias of {got}", advice))
    return weight, bias
