"""Local scores with or without the log-odds of the true tags, and the gradient of the log-odds; one launch each."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels.fused._device import on_tensor_device, with_unit_stride

#: Tags that a program processes at a time.
BLOCK = 1024


@on_tensor_device
def local_scores(emissions: Tensor, chain: tuple[Tensor, ...], neighbours: tuple[Tensor, ...]) -> Tensor:
    """Returns local scores (L, B, |Y|), float32; see `kernels.local_scores`.

    Args:
        emissions: (L, B, |Y|).
        chain: start, transitions, end.
        neighbours: from `kernels.neighbour_tags`: previous and next tags (L, B), rows of (L·B) of first and last tags (B,).
    """
    return _launch(emissions, chain, neighbours, None)[0]


@on_tensor_device
def local_log_odds(
    emissions: Tensor, chain: tuple[Tensor, ...], neighbours: tuple[Tensor, ...], tags: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the local scores, and (L·B, 1) each: score of the true tag, largest other score, Σ exp(other − largest)."""
    scores, stats = _launch(emissions, chain, neighbours, tags)
    label_score, peak, total = stats.unsqueeze(-1).unbind()
    return scores, label_score, peak, total


@on_tensor_device
def local_gradient(
    scores: Tensor,
    tags: Tensor,
    neighbours: tuple[Tensor, ...],
    peak: Tensor,
    share: Tensor,
    slope: Tensor,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the gradients of emissions (in `dtype`), start, transitions and end.

    The gradient of a local score is share · exp(s − peak), and `slope` at the true tag. Both must be 0 in masked rows.
    """
    tags, scores = tags.contiguous(), scores.contiguous()
    neighbours = tuple(part.contiguous() for part in neighbours)
    peak, share, slope = (numbers.contiguous() for numbers in (peak, share, slope))
    length, batch, num_tags = scores.shape
    grad_emissions = torch.empty(length, batch, num_tags, dtype=dtype, device=scores.device)
    edges = scores.new_zeros(num_tags + 2, num_tags)
    if scores.numel():
        block = min(BLOCK, triton.next_power_of_2(num_tags))
        grid = (length * batch, triton.cdiv(num_tags, block))
        _backward[grid](scores, tags, *neighbours, peak, share, slope, grad_emissions, edges, batch, num_tags, BLOCK=block)
    return grad_emissions, edges[num_tags], edges[:num_tags], edges[num_tags + 1]


def _launch(
    emissions: Tensor, chain: tuple[Tensor, ...], neighbours: tuple[Tensor, ...], tags: Tensor | None
) -> tuple[Tensor, Tensor]:
    emissions = with_unit_stride(emissions)
    chain, neighbours = (tuple(part.contiguous() for part in parts) for parts in (chain, neighbours))
    tags = None if tags is None else tags.contiguous()
    length, batch, num_tags = emissions.shape
    scores = torch.empty(length, batch, num_tags, dtype=torch.float32, device=emissions.device)
    stats = torch.empty(3, 0 if tags is None else length * batch, dtype=torch.float32, device=emissions.device)
    if scores.numel():
        block = min(BLOCK, triton.next_power_of_2(num_tags))
        _forward[(length * batch,)](
            emissions, emissions.stride(0), emissions.stride(1), *chain, *neighbours, scores,
            scores if tags is None else tags, stats, length * batch, batch, num_tags, HAS_TAGS=tags is not None, BLOCK=block,
        )  # fmt: skip
    return scores, stats


@triton.jit
def _forward(
    emissions, time_stride, chain_stride, start, transitions, end, before, after, first, last, scores, tags, stats,
    rows, batch, num_tags, HAS_TAGS: tl.constexpr, BLOCK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    chain = row % batch
    base = emissions + (row // batch) * time_stride + chain * chain_stride
    is_first = tl.load(first + chain) == row
    is_last = tl.load(last + chain) == row
    left = tl.load(before + row) * num_tags
    right = tl.load(after + row)
    label = -1
    if HAS_TAGS:
        label = tl.load(tags + row)
    # The lowest float instead of −inf, since −inf − (−inf) is NaN.
    largest = tl.full((BLOCK,), -3.4028234663852886e38, tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    label_score = tl.zeros((BLOCK,), tl.float32)
    for first_tag in range(0, num_tags, BLOCK):
        tag = first_tag + tl.arange(0, BLOCK)
        is_tag = tag < num_tags
        value = tl.load(base + tag, mask=is_tag, other=0.0).to(tl.float32)
        if is_first:
            value += tl.load(start + tag, mask=is_tag, other=0.0)
        else:
            value += tl.load(transitions + left + tag, mask=is_tag, other=0.0)
        if is_last:
            value += tl.load(end + tag, mask=is_tag, other=0.0)
        else:
            value += tl.load(transitions + tag.to(tl.int64) * num_tags + right, mask=is_tag, other=0.0)
        tl.store(scores + row * num_tags + tag, value, mask=is_tag)
        if HAS_TAGS:
            label_score = tl.where(tag == label, value, label_score)
            value = tl.where((tag == label) | (tag >= num_tags), -float("inf"), value)
            new_largest = tl.maximum(largest, value)
            sums = sums * tl.exp(largest - new_largest) + tl.exp(value - new_largest)
            largest = new_largest
    if HAS_TAGS:
        top = tl.max(largest, 0)
        # Only the lane of the label is non-zero, so the sum is its score, also if −inf. NaN for labels out of range.
        is_label = (label >= 0) & (label < num_tags)
        tl.store(stats + row, tl.where(is_label, tl.sum(label_score, 0), float("nan")))
        tl.store(stats + rows + row, top)
        tl.store(stats + 2 * rows + row, tl.sum(sums * tl.exp(largest - top), 0))


@triton.jit
def _backward(
    scores, tags, before, after, first, last, peak, share, slope, grad_emissions, edges, batch, num_tags,
    BLOCK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    chain = row % batch
    tag = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_tag = tag < num_tags
    value = tl.load(scores + row * num_tags + tag, mask=is_tag, other=0.0)
    result = tl.exp(value - tl.load(peak + row)) * tl.load(share + row)
    result = tl.where(tag == tl.load(tags + row), tl.load(slope + row), result)
    tl.store(grad_emissions + row * num_tags + tag, result.to(grad_emissions.dtype.element_ty), mask=is_tag)
    is_nonzero = is_tag & (result != 0)
    # Rows of `edges`: transitions, then start, then end.
    to_row = tl.load(before + row)
    if tl.load(first + chain) == row:
        to_row = tl.full((), num_tags, tl.int64)
    tl.atomic_add(edges + to_row * num_tags + tag, result, mask=is_nonzero)
    if tl.load(last + chain) == row:
        # Not `num_tags.to(…)`: Triton passes 1 as a Python int.
        tl.atomic_add(edges + (tl.full((), num_tags, tl.int64) + 1) * num_tags + tag, result, mask=is_nonzero)
    else:
        tl.atomic_add(edges + tag.to(tl.int64) * num_tags + tl.load(after + row), result, mask=is_nonzero)
