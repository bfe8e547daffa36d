"""Losses of the positions of a chain over all changes of the tag: one launch forward, one backward.

The forward pass computes the gradients of the scores, too. A program has the scores of a position in registers, and finds
the neighbours of the position itself. Rows are positions in the user's layout.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels.fused._device import on_tensor_device, with_unit_stride
from linearcore.kernels.fused._launch import Launcher, block_size
from linearcore.kernels.fused._positions import Positions, find_neighbours, position
from linearcore.kernels.fused._surrogate import surrogate

#: Largest number of tags: the scores of a position have to fit in the registers of a program.
MAX_LOCAL_TAGS = 16384
#: Tags that a program processes at a time in the backward pass.
BLOCK = 1024


class LocalLoss(NamedTuple):
    """A form over the local scores, and its weight against the same form over the emissions alone.

    Attributes:
        form: 0 for log-odds, 1 for pairwise, 2 for centered.
        is_mean: mean over competitors instead of their sum.
        surrogate: φ, a `KernelIdentity`.
        unary: weight of the loss of the emissions alone.
    """

    form: int
    is_mean: bool
    surrogate: tuple[int, float, float, float, float, float, float, float]
    unary: float


class LocalState(NamedTuple):
    """What `scale_local_gradient` needs.

    Attributes:
        gradient: (R, |Y|) gradients of the local scores, float32.
        total: (R, |Y|) gradients of the emissions, float32; without unary loss the same tensor.
        neighbours: (2, R) tags of the neighbours: |Y| if there is none, −1 where masked.
    """

    gradient: Tensor
    total: Tensor
    neighbours: Tensor


@on_tensor_device
def local_losses(
    emissions: Tensor, edges: tuple[Tensor, ...], positions: Positions, loss: LocalLoss, *,
    has_gradient: bool, has_count: bool = False, is_strict: bool = False,
) -> tuple[Tensor, LocalState]:  # fmt: skip
    """Returns the losses (R,), 0 where masked, and the gradients for upstream gradient 1, if needed.

    With `has_count` it returns losses and ones, 0 where masked, (2, R). A tag out of range makes the losses of its sequence
    NaN; with `is_strict` so does a masked first position with another tag than the ignored one.

    Args:
        emissions: (L, B, |Y|), or (B, L, |Y|) with `positions.is_batch_first`; arbitrary where masked. R is L·B.
        edges: start, transitions and end, or one tensor (R, |Y|) that is added to the emissions.
        positions: tags and mask.
        loss: the loss.
        has_gradient: whether to compute the gradients; they are empty otherwise.
    """
    emissions, edges = with_unit_stride(emissions), tuple(part.contiguous() for part in edges)
    rows, num_tags = positions.length * positions.batch, emissions.shape[2]
    float32, device = torch.float32, emissions.device
    losses = torch.empty((2, rows) if has_count else rows, dtype=float32, device=device)
    gradient = torch.empty((rows if has_gradient else 0, num_tags), dtype=float32, device=device)
    total = torch.empty_like(gradient) if loss.unary else gradient
    neighbours = torch.empty((2, rows), dtype=torch.int32, device=device)
    block = block_size(num_tags)
    start, transitions, end = edges if len(edges) == 3 else edges * 3
    base, *numbers = loss.surrogate
    _launch_losses(
        (rows, 1, 1),
        (emissions, start, transitions, end, *positions.tensors, losses, gradient, total, neighbours),
        (*positions.strides_of(emissions), *positions.sizes, num_tags),
        (loss.unary, *numbers), given=6, FORM=loss.form, IS_MEAN=loss.is_mean, BASE=base,
        HAS_CHAIN=len(edges) == 3, HAS_UNARY=loss.unary > 0, HAS_GRADIENT=has_gradient,
        HAS_COUNT=has_count, IS_STRICT=is_strict, BLOCK=block,
        IS_BATCH_FIRST=positions.is_batch_first, HAS_MASK=positions.mask is not None,
        num_warps=min(8, max(1, block // 256)),
    )  # fmt: skip
    return losses, LocalState(gradient, total, neighbours)


@on_tensor_device
def scale_local_gradient(
    upstream: Tensor,
    count: Tensor | None,
    factor: float,
    state: LocalState,
    positions: Positions,
    dtype: torch.dtype,
    *,
    has_edges: bool,
) -> tuple[Tensor, Tensor]:
    """Multiplies the gradients of `local_losses` by upstream · factor / count, in place.

    Returns those of the emissions (R, |Y|), in `dtype`, and of transitions, start and end (|Y| + 2, |Y|), empty if not
    `has_edges`; these are sums of atomic additions.

    Args:
        upstream: gradient of the losses (L, B), of those of the sequences (B,) or of their sum ().
        count: a number () on the device, or None for 1.
    """
    gradient, total, neighbours = state
    rows, num_tags = gradient.shape
    edges = gradient.new_zeros((num_tags + 2, num_tags) if has_edges else (0,))
    result = total if dtype == torch.float32 else torch.empty_like(total, dtype=dtype)
    strides = (0, 0, *upstream.stride())[-2:]
    block = min(BLOCK, block_size(num_tags))
    _launch_scale(
        (rows, -(-num_tags // block), 1),
        (upstream, upstream if count is None else count, result, gradient, total, neighbours, edges),
        (*strides, positions.length, positions.batch, num_tags), (factor,), given=3,
        HAS_COUNT=count is not None, HAS_EDGES=has_edges, HAS_UNARY=total is not gradient,
        IS_IN_PLACE=result is total, IS_BATCH_FIRST=positions.is_batch_first, BLOCK=block, num_warps=max(1, block // 256),
    )  # fmt: skip
    return result, edges


@triton.jit
def _at_most(x, bound):
    """Returns min(x, bound), NaN for NaN."""
    return tl.where(x > bound, bound, x)


@triton.jit
def _log_odds(score, tag, is_tag, own, tau, width, sharpness, tail_scale, factor, p1, p2, BASE: tl.constexpr):  # noqa: N803
    """Returns the loss of a row and its gradient, for φ(s_y − logsumexp of the others)."""
    is_own = tag == own
    own_score = tl.sum(tl.where(is_own, score, 0.0), 0)
    score = tl.where(is_tag & (tag != own), score, float("-inf"))
    peak = tl.max(score, 0)
    peak = tl.where(peak == float("-inf"), 0.0, peak)
    terms = tl.exp(score - peak)
    total = tl.sum(terms, 0)
    margin = (own_score - peak) - tl.log(total)
    # φ(−inf) is infinite, but φ' may be finite there.
    loss, slope = surrogate(
        -_at_most(-margin, 1e30), 0.0, tau, width, sharpness, tail_scale, factor, p1, p2, BASE
    )  # fmt: skip
    # Without competitors the sum and the slope are 0.
    gradient = tl.where(is_own, -slope, terms * (slope / tl.where(total == 0.0, 1.0, total)))
    return tl.where(margin == float("-inf"), float("inf"), loss), gradient


@triton.jit
def _competitors(
    score, tag, is_tag, own, tau, width, sharpness, tail_scale, factor, p1, p2,
    IS_CENTERED: tl.constexpr, IS_MEAN: tl.constexpr, BASE: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Returns the loss of a row and its gradient, for Σ_{v≠y} φ(reference − s_v) with the own or the mean score."""
    is_own = tag == own
    own_score = tl.sum(tl.where(is_own, score, 0.0), 0)
    is_candidate = is_tag & (score != float("-inf"))
    is_other = is_candidate & (tag != own)
    number = tl.maximum(tl.sum(tl.where(is_candidate, 1.0, 0.0), 0), 1.0)
    reference = own_score
    if IS_CENTERED:
        reference = tl.sum(tl.where(is_candidate, score, 0.0), 0) / number
    values, slopes = surrogate(
        -_at_most(-reference, 1e30), _at_most(score, 1e30), tau, width, sharpness, tail_scale, factor, p1, p2, BASE
    )  # fmt: skip
    values = tl.where(score == float("inf"), score - reference, values)
    loss = tl.sum(tl.where(is_other, values, 0.0), 0)
    slopes = tl.where(is_other, slopes, 0.0)
    total_slope = tl.sum(slopes, 0)
    if IS_CENTERED:
        gradient = tl.where(is_candidate, slopes - total_slope / number, 0.0)
    else:
        gradient = tl.where(is_own, -total_slope, slopes)
        loss = tl.where((own_score == float("-inf")) & (loss > 0.0), float("inf"), loss)
    if IS_MEAN:
        count = tl.maximum(tl.sum(tl.where(is_other, 1.0, 0.0), 0), 1.0)
        loss, gradient = loss / count, gradient / count
    return loss, gradient


@triton.jit
def _row(
    score, tag, is_tag, own, tau, width, sharpness, tail_scale, factor, p1, p2,
    FORM: tl.constexpr, IS_MEAN: tl.constexpr, BASE: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Returns the loss of a row of scores and its gradient."""
    if FORM == 0:
        loss, gradient = _log_odds(score, tag, is_tag, own, tau, width, sharpness, tail_scale, factor, p1, p2, BASE)
    else:
        loss, gradient = _competitors(
            score, tag, is_tag, own, tau, width, sharpness, tail_scale, factor, p1, p2, FORM == 2, IS_MEAN, BASE
        )
    return loss, gradient


@triton.jit(do_not_specialize=["length", "batch"])
def _losses(
    emissions, start, transitions, end, tags, mask, losses, gradient, total, neighbours, time_stride, chain_stride,
    tag_time_stride, tag_chain_stride, mask_time_stride, mask_chain_stride, length, batch, num_tags, unary, tau, width,
    sharpness, tail_scale, factor, p1, p2,
    FORM: tl.constexpr, IS_MEAN: tl.constexpr, BASE: tl.constexpr, HAS_CHAIN: tl.constexpr, HAS_UNARY: tl.constexpr,  # noqa: N803
    HAS_GRADIENT: tl.constexpr, HAS_COUNT: tl.constexpr, IS_STRICT: tl.constexpr, BLOCK: tl.constexpr,  # noqa: N803
    IS_BATCH_FIRST: tl.constexpr, HAS_MASK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    num_rows = tl.num_programs(0).to(tl.int64)
    t, chain = position(row, length, batch, IS_BATCH_FIRST)
    tag = tl.arange(0, BLOCK)
    is_tag = tag < num_tags
    own, old, new, is_invalid, is_bad_start = find_neighbours(
        tags + chain * tag_chain_stride, tag_time_stride, mask + chain * mask_chain_stride, mask_time_stride, t, length,
        num_tags, HAS_MASK,
    )  # fmt: skip
    loss = tl.zeros((), tl.float32)
    row_gradient = tl.zeros((BLOCK,), tl.float32)
    row_total = tl.zeros((BLOCK,), tl.float32)
    if own >= 0:
        base = emissions + t * time_stride + chain * chain_stride
        scores = tl.load(base + tag, mask=is_tag, other=0.0).to(tl.float32)
        if HAS_CHAIN:
            if old == num_tags:
                left = tl.load(start + tag, mask=is_tag, other=0.0)
            else:
                left = tl.load(transitions + old.to(tl.int64) * num_tags + tag, mask=is_tag, other=0.0)
            if new == num_tags:
                right = tl.load(end + tag, mask=is_tag, other=0.0)
            else:
                right = tl.load(transitions + tag.to(tl.int64) * num_tags + new, mask=is_tag, other=0.0)
            local = (scores + left) + right
        else:
            local = scores + tl.load(start + row * num_tags + tag, mask=is_tag, other=0.0).to(tl.float32)
        loss, row_gradient = _row(
            local, tag, is_tag, own, tau, width, sharpness, tail_scale, factor, p1, p2, FORM, IS_MEAN, BASE
        )  # fmt: skip
        if HAS_UNARY:
            unary_loss, unary_gradient = _row(
                scores, tag, is_tag, own, tau, width, sharpness, tail_scale, factor, p1, p2, FORM, IS_MEAN, BASE
            )
            loss = (1.0 - unary) * loss + unary * unary_loss
            row_gradient *= 1.0 - unary
            row_total = row_gradient + unary * unary_gradient
        if is_invalid != 0:
            loss *= float("nan")
            row_gradient *= float("nan")
            row_total *= float("nan")
    if IS_STRICT:
        loss = tl.where((t == 0) & (is_bad_start != 0), float("nan"), loss)
    tl.store(losses + row, loss)
    if HAS_COUNT:
        tl.store(losses + num_rows + row, tl.where(own >= 0, 1.0, 0.0))
    if HAS_GRADIENT:
        tl.store(neighbours + row, tl.where(own >= 0, old, -1))
        tl.store(neighbours + num_rows + row, tl.where(own >= 0, new, -1))
        tl.store(gradient + row * num_tags + tag, row_gradient, mask=is_tag)
        if HAS_UNARY:
            tl.store(total + row * num_tags + tag, row_total, mask=is_tag)


@triton.jit(do_not_specialize=["length", "batch"])
def _scale(
    upstream, count, result, gradient, total, neighbours, edges, upstream_time_stride, upstream_chain_stride, length, batch,
    num_tags, factor, HAS_COUNT: tl.constexpr, HAS_EDGES: tl.constexpr, HAS_UNARY: tl.constexpr,  # noqa: N803
    IS_IN_PLACE: tl.constexpr, IS_BATCH_FIRST: tl.constexpr, BLOCK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    t, chain = position(row, length, batch, IS_BATCH_FIRST)
    tag = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_tag = tag < num_tags
    weight = tl.load(upstream + t * upstream_time_stride + chain * upstream_chain_stride) * factor
    if HAS_COUNT:
        weight /= tl.load(count)
    old = tl.load(neighbours + row)
    new = tl.load(neighbours + tl.num_programs(0).to(tl.int64) + row)
    # Where the upstream gradient is 0 the result is 0, even if the gradient is infinite or NaN.
    is_counted = (weight != 0.0) & (old >= 0)
    slope = tl.load(gradient + row * num_tags + tag, mask=is_tag, other=0.0)
    slope = tl.where(is_counted, slope * weight, 0.0)
    sum_of_slopes = slope
    if HAS_UNARY:
        sum_of_slopes = tl.load(total + row * num_tags + tag, mask=is_tag, other=0.0)
        sum_of_slopes = tl.where(is_counted, sum_of_slopes * weight, 0.0)
    if HAS_UNARY or not IS_IN_PLACE:
        tl.store(gradient + row * num_tags + tag, slope, mask=is_tag)
    tl.store(result + row * num_tags + tag, sum_of_slopes.to(result.dtype.element_ty), mask=is_tag)
    if HAS_EDGES:  # noqa: SIM102  # A constant, and a condition at run time.
        if is_counted:
            is_nonzero = is_tag & (slope != 0.0)
            # Rows of `edges`: transitions, then start, then end.
            tl.atomic_add(edges + old.to(tl.int64) * num_tags + tag, slope, mask=is_nonzero, sem="relaxed")
            if new < num_tags:
                tl.atomic_add(edges + tag.to(tl.int64) * num_tags + new, slope, mask=is_nonzero, sem="relaxed")
            else:
                last = edges + (tl.full((), num_tags, tl.int64) + 1) * num_tags
                tl.atomic_add(last + tag, slope, mask=is_nonzero, sem="relaxed")


_launch_losses, _launch_scale = Launcher(_losses), Launcher(_scale)
