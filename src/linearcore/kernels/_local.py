"""Local scores of a chain: what every tag would score at a site, its neighbours being the true ones."""

from typing import Any

import torch
from torch import Tensor

from linearcore.kernels._fused import fused_for
from linearcore.structures import Chain, Sites


def local_scores(emissions: Tensor, chain: Chain, tags: Tensor, sites: Sites, backend: str) -> Tensor:
    """(L, B, |Y|): s_j(v) = h(y with y_j → v), up to what does not depend on v.

        s_j(v) = emissions[j, v] + transitions[y_{j−1}, v] + transitions[v, y_{j+1}]

    with start[v] for the missing neighbour of the first tag and end[v] for that of the last one. Differences of s_j are
    differences of h, so that a form over the rows of s is the form over all single-site changes of the truth.

    Args:
        emissions: (L, B, |Y|), float32 or float64.
        chain: the chain's own scores.
        tags: (L, B) in [0, |Y|), any tag where masked.
        sites: where they sit. What comes out where masked means nothing.
        backend: "reference", "eager" (in place, with a backward pass of its own) or "fused".

    Time O(L·B·|Y|) forward, and O(|Y|²) more in the backward pass for the dense gradient of the transitions. Memory: the
    result and one more of its size while it is being made.
    """
    if backend == "reference":
        before, after = sites.before(tags), sites.after(tags)
        left = torch.where(sites.is_first.unsqueeze(-1), chain.start, chain.transitions[before])
        right = torch.where(sites.is_last.unsqueeze(-1), chain.end, chain.transitions.t()[after])
        return emissions + left + right
    scores: Tensor = _LocalScores.apply(emissions, *chain, *links(tags, sites), backend == "fused")  # type: ignore[no-untyped-call]
    return scores


def links(tags: Tensor, sites: Sites) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(L, B) the tags before and after, and (B,) the rows of (L·B) at which chains begin and end."""
    return sites.before(tags), sites.after(tags), *_edges(sites)


def low_rank_scores(
    emissions: Tensor,
    start: Tensor,
    factors: tuple[Tensor, Tensor],
    end: Tensor,
    tags: Tensor,
    sites: Sites,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """`local_scores` for transitions = F Tᵀ with factors F, T (|Y|, r); the product itself is never formed.

    Args:
        dtype: to take the products of the factors in; None is that of `emissions`. What is added to these, start and end
            included, is rounded to it, and so is the gradient that comes back; sums over sites are not.

    Time O(L·B·|Y|·r); memory a few L×B×|Y|.
    """
    source, target = factors
    is_first, is_last = sites.is_first.unsqueeze(-1), sites.is_last.unsqueeze(-1)
    left = source[sites.before(tags)].masked_fill(is_first, 0.0)
    right = target[sites.after(tags)].masked_fill(is_last, 0.0)
    # The edges are two more columns of the factors, so that all is one product.
    both = torch.cat([left, right, is_first.to(left.dtype), is_last.to(left.dtype)], -1)
    weights = torch.cat([target, source, start.unsqueeze(-1), end.unsqueeze(-1)], -1)
    rows, both = emissions.reshape(-1, emissions.shape[-1]), both.flatten(0, 1)
    if dtype is None or dtype == emissions.dtype:
        return torch.addmm(rows, both, weights.t()).view(emissions.shape)
    # Rounded here and not before the look-up: its gradient adds up all sites of a tag, and must not do so in half precision.
    return (rows + both.to(dtype) @ weights.to(dtype).t()).view(emissions.shape)


def _edges(sites: Sites) -> tuple[Tensor, Tensor]:
    """(B,), (B,): rows of the flattened (L·B) at which chains begin and end; rows that are masked where a chain is empty."""
    batch = torch.arange(sites.mask.shape[1], device=sites.mask.device)
    if sites.mask.shape[0] == 0:
        return batch[:0], batch[:0]
    length, width = sites.mask.shape
    if sites.is_full:
        return batch, batch + (length - 1) * width
    return tuple(edge.to(torch.uint8).argmax(0) * width + batch for edge in (sites.is_first, sites.is_last))  # type: ignore[return-value]


class _LocalScores(torch.autograd.Function):
    """`local_scores` with one large temporary. It is linear, so that its backward pass is made of differentiable steps."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, start: Tensor, transitions: Tensor, end: Tensor,
        before: Tensor, after: Tensor, first: Tensor, last: Tensor, is_fused: bool,
    ) -> Tensor:  # fmt: skip
        ctx.save_for_backward(before, after, first, last)
        fused = fused_for(emissions, transitions) if is_fused else None
        if fused is not None:
            return fused.local_scores(emissions, (start, transitions, end), (before, after, first, last))  # type: ignore[no-any-return]
        rows = emissions.reshape(-1, emissions.shape[-1])
        scores = transitions.index_select(0, before.reshape(-1)).add_(rows)
        # The gather put some row there that does not belong: at the edges there is no neighbour.
        scores.index_copy_(0, first, rows.index_select(0, first).add_(start))
        inner = scores.index_select(0, last).add_(end)
        # Straight from the transposed view: copying it first would cost |Y|², and only L·B of its rows are wanted.
        scores.add_(transitions.t().index_select(0, after.reshape(-1)))
        return scores.index_copy_(0, last, inner).view(emissions.shape)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        before, after, first, last = ctx.saved_tensors
        rows = upstream.reshape(-1, upstream.shape[-1])
        starts, ends = rows.index_select(0, first), rows.index_select(0, last)
        transitions = None
        if ctx.needs_input_grad[2]:
            before, after = before.reshape(-1), after.reshape(-1)
            transitions = rows.new_zeros(rows.shape[-1], rows.shape[-1]).index_add_(0, before, rows)
            # At the edges the gather was overwritten; what it would have got is taken back.
            transitions.index_add_(0, before.index_select(0, first), starts, alpha=-1)
            # Columns from a contiguous copy: adding into a transposed matrix row by row takes twice as long.
            transitions.index_add_(1, after, rows.t().contiguous())
            transitions.index_add_(1, after.index_select(0, last), ends.t(), alpha=-1)
        return upstream, starts.sum(0), transitions, ends.sum(0), None, None, None, None, None
