"""Viterbi decoding, with two launches per position forwards and one launch for tracing back.

A step has |Y|² sums per sequence, which are never stored: each program keeps the maxima of a tile of sequences and tags in
registers while it iterates over a part of the previous tags.
"""

import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels.fused._device import on_tensor_device, with_unit_stride

#: Sequences and tags per tile: fastest of 24 settings for batch size 8 and 4000 tags on an H200, within 4 % for 60.
ROWS, COLUMNS, WARPS = 8, 256, 8
#: Maximum number of parts of the previous tags, and the number of programs that keeps a GPU busy.
MAX_PARTS, PROGRAMS = 32, 1024
#: Tags that a program processes at a time in a step, and in tracing back.
BLOCK, WIDE = 1024, 4096


@on_tensor_device
def best_scores(emissions: Tensor, start: Tensor, transitions: Tensor, mask: Tensor, previous: Tensor) -> Tensor:
    """Returns the best score (L, B, |Y|) of a sequence that ends in each tag; see `kernels.viterbi`.

    Args:
        emissions: (L, B, |Y|) float32.
        start: (|Y|,).
        transitions: (|Y|, |Y|).
        mask, previous: (L, B), as in `Sites`.
    """
    emissions, start, transitions = with_unit_stride(emissions), start.contiguous(), transitions.contiguous()
    length, batch, num_tags = emissions.shape
    scores = emissions.new_empty(length, batch, num_tags)
    mask, previous = mask.contiguous(), previous.contiguous()
    # Sequences are the first axis, whose grid size has the highest limit.
    tiles = triton.cdiv(batch, ROWS), triton.cdiv(num_tags, COLUMNS)
    num_parts = min(MAX_PARTS, triton.next_power_of_2(triton.cdiv(PROGRAMS, max(1, tiles[0] * tiles[1]))))
    parts = emissions.new_empty(num_parts, batch, num_tags)
    for j in range(length):
        if j > 0:
            _maxima[(*tiles, num_parts)](
                scores, (j - 1) * batch * num_tags, transitions, parts, batch, num_tags, triton.cdiv(num_tags, num_parts),
                ROWS=ROWS, COLUMNS=COLUMNS, num_warps=WARPS,
            )  # fmt: skip
        _finish_step[(batch, triton.cdiv(num_tags, BLOCK))](
            parts, emissions, j * emissions.stride(0), emissions.stride(1), start, mask, previous, scores, j, batch,
            num_tags, IS_FIRST=j == 0, PARTS=num_parts, BLOCK=BLOCK,
        )  # fmt: skip
    return scores


@on_tensor_device
def trace_back(scores: Tensor, columns: Tensor, last: Tensor, mask: Tensor, previous: Tensor) -> Tensor:
    """Returns the tags (L, B) of the best sequence that ends in `last` (B,).

    Args:
        scores: (L, B, |Y|) from `best_scores`.
        columns: (|Y|, |Y|), the transitions transposed.
        last: (B,) the last tags.
        mask, previous: (L, B), as in `Sites`.
    """
    length, batch, num_tags = scores.shape
    tags = last.new_empty(length, batch)
    block = min(WIDE, triton.next_power_of_2(num_tags))
    scores, columns, last = scores.contiguous(), columns.contiguous(), last.contiguous()
    _trace[(batch,)](
        scores, columns, last, mask.contiguous(), previous.contiguous(), tags, length, batch, num_tags,
        BLOCK=block, num_warps=WARPS,
    )  # fmt: skip
    return tags


@triton.jit(do_not_specialize=["offset"])
def _maxima(
    scores, offset, transitions, parts, batch, num_tags, part_size,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,  # noqa: N803
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    part = tl.program_id(2)
    is_tag = column < num_tags
    # Rows beyond the batch read the last row and store nothing, because a mask in the loop would be slower.
    source = scores + offset + tl.minimum(row, batch - 1).to(tl.int64) * num_tags
    step_pointer = transitions + (part * part_size).to(tl.int64) * num_tags + column
    best = tl.full((ROWS, COLUMNS), float("-inf"), tl.float32)
    for i in tl.range(part * part_size, tl.minimum(part * part_size + part_size, num_tags), loop_unroll_factor=8):
        before = tl.load(source + i)
        step = tl.load(step_pointer, mask=is_tag, other=0.0)
        step_pointer += num_tags
        best = tl.maximum(best, before[:, None] + step[None, :], propagate_nan=tl.PropagateNan.ALL)
    target = (part * batch + row[:, None]).to(tl.int64) * num_tags + column[None, :]
    tl.store(parts + target, best, mask=(row[:, None] < batch) & is_tag[None, :])


@triton.jit(do_not_specialize=["offset", "j"])
def _finish_step(
    parts, emissions, offset, row_stride, start, mask, previous, scores, j, batch, num_tags,
    IS_FIRST: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    chain = tl.program_id(0)
    tag = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_tag = tag < num_tags
    site = chain.to(tl.int64) + j * batch
    value = tl.load(start + tag, mask=is_tag, other=0.0)
    previous_score = tl.zeros((BLOCK,), tl.float32)
    if not IS_FIRST:
        best = tl.full((BLOCK,), float("-inf"), tl.float32)
        for part in tl.static_range(PARTS):
            part_best = tl.load(parts + (part * batch + chain).to(tl.int64) * num_tags + tag, mask=is_tag, other=0.0)
            best = tl.maximum(best, part_best, propagate_nan=tl.PropagateNan.ALL)
        value = tl.where(tl.load(previous + site) >= 0, best, value)
        previous_score = tl.load(scores + (site - batch) * num_tags + tag, mask=is_tag, other=0.0)
    value += tl.load(emissions + offset + chain.to(tl.int64) * row_stride + tag, mask=is_tag, other=0.0)
    value = tl.where(tl.load(mask + site) != 0, value, previous_score)
    tl.store(scores + site * num_tags + tag, value, mask=is_tag)


@triton.jit(do_not_specialize=["length"])
def _trace(scores, columns, last, mask, previous, tags, length, batch, num_tags, BLOCK: tl.constexpr):  # noqa: N803
    chain = tl.program_id(0)
    tag = tl.load(last + chain)
    for steps_back in range(1, length):
        j = length - steps_back
        site = chain.to(tl.int64) + j * batch
        tl.store(tags + site, tag)
        best = tl.full((), float("-inf"), tl.float32)
        previous_tag = tl.zeros((), tl.int64)
        for first in range(0, num_tags, BLOCK):
            i = first + tl.arange(0, BLOCK)
            is_tag = i < num_tags
            value = tl.load(scores + (site - batch) * num_tags + i, mask=is_tag, other=float("-inf"))
            value += tl.load(columns + tag * num_tags + i, mask=is_tag, other=0.0)
            # NaN counts as the maximum, as in torch; otherwise lanes beyond the last tag would win.
            value = tl.where(value != value, float("inf"), value)
            largest = tl.max(value, 0)
            previous_tag = tl.where(largest > best, first + tl.argmax(value, 0).to(tl.int64), previous_tag)
            best = tl.maximum(best, largest)
        is_linked = (tl.load(mask + site) != 0) & (tl.load(previous + site) >= 0)
        tag = tl.where(is_linked, previous_tag, tag)
    tl.store(tags + chain, tag)
