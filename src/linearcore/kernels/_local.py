"""Local scores: the score of each tag at a position, given the true tags of its neighbours."""

from typing import Any

import torch
from torch import Tensor

from linearcore.structures import Chain, Sites


def local_scores(emissions: Tensor, chain: Chain, tags: Tensor, sites: Sites, backend: str) -> Tensor:
    """Returns s_j(v) = h(y with y_j → v) (L, B, |Y|), up to a constant that does not depend on v.

        s_j(v) = emissions[j, v] + transitions[y_{j−1}, v] + transitions[v, y_{j+1}]

    with start[v] instead of the first transition at the first tag, and end[v] instead of the second at the last tag.
    Differences of s_j are differences of h, so a form over the rows of s is a form over all single-tag changes of y.

    Args:
        emissions: (L, B, |Y|), float32 or float64.
        chain: start, transition and end scores.
        tags: (L, B) in [0, |Y|), arbitrary where masked.
        sites: positions of the tags and their neighbours. The result is arbitrary at masked positions.
        backend: "reference", or any other: in place, with a custom backward pass.

    Time O(L·B·|Y|) forward, and O(|Y|²) more in the backward pass for the dense gradient of the transitions. Memory: the
    result and one temporary of the same size.
    """
    if backend == "reference":
        before, after = sites.before(tags), sites.after(tags)
        left = torch.where(sites.is_first.unsqueeze(-1), chain.start, chain.transitions[before])
        right = torch.where(sites.is_last.unsqueeze(-1), chain.end, chain.transitions.t()[after])
        return emissions + left + right
    scores: Tensor = _LocalScores.apply(emissions, *chain, sites.before(tags), sites.after(tags), *_edges(sites))  # type: ignore[no-untyped-call]
    return scores


def low_rank_scores(
    emissions: Tensor,
    start: Tensor,
    factors: tuple[Tensor, Tensor],
    end: Tensor,
    tags: Tensor,
    sites: Sites,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """`local_scores` for transitions = F Tᵀ with factors F, T (|Y|, r), without computing the product F Tᵀ.

    Args:
        dtype: dtype of the matrix product; None for that of `emissions`. The product with start and end, and its gradient,
            are rounded to it; sums over positions are not.

    Time O(L·B·|Y|·r); memory a few L×B×|Y|.
    """
    source, target = factors
    is_first, is_last = sites.is_first.unsqueeze(-1), sites.is_last.unsqueeze(-1)
    left = source[sites.before(tags)].masked_fill(is_first, 0.0)
    right = target[sites.after(tags)].masked_fill(is_last, 0.0)
    # Start and end scores are two more columns of the factors, so one product is enough.
    row_factors = torch.cat([left, right, is_first.to(left.dtype), is_last.to(left.dtype)], -1)
    tag_factors = torch.cat([target, source, start.unsqueeze(-1), end.unsqueeze(-1)], -1)
    rows, row_factors = emissions.reshape(-1, emissions.shape[-1]), row_factors.flatten(0, 1)
    if dtype is None or dtype == emissions.dtype:
        return torch.addmm(rows, row_factors, tag_factors.t()).view(emissions.shape)
    # Rounded after the look-up: its gradient sums over all positions of a tag, which needs full precision.
    return (rows + row_factors.to(dtype) @ tag_factors.to(dtype).t()).view(emissions.shape)


def _edges(sites: Sites) -> tuple[Tensor, Tensor]:
    """Returns the rows (B,) and (B,) of (L·B) of first and last tags; masked rows for empty sequences."""
    batch = torch.arange(sites.mask.shape[1], device=sites.mask.device)
    if sites.mask.shape[0] == 0:
        return batch[:0], batch[:0]
    length, width = sites.mask.shape
    if sites.is_full:
        return batch, batch + (length - 1) * width
    return tuple(edge.to(torch.uint8).argmax(0) * width + batch for edge in (sites.is_first, sites.is_last))  # type: ignore[return-value]


class _LocalScores(torch.autograd.Function):
    """`local_scores` with one large temporary. The backward pass uses differentiable operations."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, start: Tensor, transitions: Tensor, end: Tensor,
        before: Tensor, after: Tensor, first: Tensor, last: Tensor,
    ) -> Tensor:  # fmt: skip
        ctx.save_for_backward(before, after, first, last)
        rows = emissions.reshape(-1, emissions.shape[-1])
        scores = transitions.index_select(0, before.reshape(-1)).add_(rows)
        # First positions have no previous tag: overwrite the rows that were looked up.
        scores.index_copy_(0, first, rows.index_select(0, first).add_(start))
        last_rows = scores.index_select(0, last).add_(end)
        # From the transposed view, since a contiguous copy takes |Y|² and only L·B rows are needed.
        scores.add_(transitions.t().index_select(0, after.reshape(-1)))
        return scores.index_copy_(0, last, last_rows).view(emissions.shape)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        before, after, first, last = ctx.saved_tensors
        rows = grad_output.reshape(-1, grad_output.shape[-1])
        starts, ends = rows.index_select(0, first), rows.index_select(0, last)
        transitions = None
        if ctx.needs_input_grad[2]:
            before, after = before.reshape(-1), after.reshape(-1)
            transitions = rows.new_zeros(rows.shape[-1], rows.shape[-1]).index_add_(0, before, rows)
            # First and last rows were overwritten, so subtract their contribution.
            transitions.index_add_(0, before.index_select(0, first), starts, alpha=-1)
            # From a contiguous copy: adding rows to a transposed matrix takes twice as long.
            transitions.index_add_(1, after, rows.t().contiguous())
            transitions.index_add_(1, after.index_select(0, last), ends.t(), alpha=-1)
        return grad_output, starts.sum(0), transitions, ends.sum(0), None, None, None, None
