"""Factors of the local scores of a chain whose transitions are a product F Tᵀ, and their gradients.

The local scores of a position, without the emissions, are a row (F[y_{j−1}], T[y_{j+1}], 1 if first, 1 if last) times the
columns (T, F, start, end); rows and columns are padded with zeros, since matrix products need aligned rows.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels.fused._device import on_tensor_device
from linearcore.kernels.fused._launch import Launcher, block_size
from linearcore.kernels.fused._positions import Positions, find_neighbours, position


@on_tensor_device
def low_rank_factors(
    start: Tensor, source: Tensor, target: Tensor, end: Tensor, positions: Positions, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Returns rows (R, W) and columns (|Y|, W), in `dtype`, for factors F and T (|Y|, r); rows are as in `local_losses`."""
    parts = tuple(part.contiguous() for part in (start, source, target, end))
    (num_tags, rank), num_rows = source.shape, positions.length * positions.batch
    width = -(-(2 * rank + 2) // 8) * 8
    rows = torch.empty((num_rows, width), dtype=dtype, device=source.device)
    columns = torch.empty((num_tags, width), dtype=dtype, device=source.device)
    _launch_factors(
        (num_rows + num_tags, 1, 1), (*parts, *positions.tensors, rows, columns), (*positions.sizes, num_tags, rank, width),
        given=8, IS_BATCH_FIRST=positions.is_batch_first, HAS_MASK=positions.mask is not None,
        BLOCK=block_size(width), num_warps=1,
    )  # fmt: skip
    return rows, columns


@on_tensor_device
def low_rank_gradients(
    rows: Tensor, columns: Tensor, neighbours: Tensor, rank: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the gradients of start, F, T and end, from those of rows and columns, and `LocalState.neighbours`.

    The rows are added with atomic operations, or in order in torch's deterministic mode.
    """
    (num_tags, width), (num_rows, _) = columns.shape, rows.shape
    start, end = (torch.empty(num_tags, dtype=torch.float32, device=rows.device) for _ in range(2))
    source, target = (torch.empty((num_tags, rank), dtype=torch.float32, device=rows.device) for _ in range(2))
    parts, block = (start, source, target, end), block_size(width)
    _launch_split((num_tags, 1, 1), (columns, *parts), (rank, width), given=1, BLOCK=block, num_warps=1)
    if not torch.are_deterministic_algorithms_enabled():
        tensors = rows, neighbours, source, target
        _launch_add((num_rows, 1, 1), tensors, (num_tags, rank, width), given=1, BLOCK=block, num_warps=1)
        return parts
    for index, part, values in ((0, source, rows[:, :rank]), (1, target, rows[:, rank : 2 * rank])):
        tags = neighbours[index].long()
        is_missing = (tags < 0) | (tags == num_tags)
        part.index_add_(0, tags.masked_fill(is_missing, 0), values.float().masked_fill(is_missing.unsqueeze(-1), 0.0))
    return parts


@triton.jit(do_not_specialize=["length", "batch"])
def _factors(
    start, source, target, end, tags, mask, rows, columns, tag_time_stride, tag_chain_stride, mask_time_stride,
    mask_chain_stride, length, batch, num_tags, rank, width, IS_BATCH_FIRST: tl.constexpr, HAS_MASK: tl.constexpr,  # noqa: N803
    BLOCK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    num_rows = tl.num_programs(0) - num_tags
    k = tl.arange(0, BLOCK)
    is_left = k < rank
    is_right = (k >= rank) & (k < 2 * rank)
    if row < num_rows:
        t, chain = position(row, length, batch, IS_BATCH_FIRST)
        own, old, new, _, _ = find_neighbours(
            tags + chain * tag_chain_stride, tag_time_stride, mask + chain * mask_chain_stride, mask_time_stride, t, length,
            num_tags, HAS_MASK,
        )  # fmt: skip
        value = tl.zeros((BLOCK,), tl.float32)
        if own >= 0:
            if old < num_tags:
                value += tl.load(source + old.to(tl.int64) * rank + k, mask=is_left, other=0.0)
            else:
                value += tl.where(k == 2 * rank, 1.0, 0.0)
            if new < num_tags:
                value += tl.load(target + new.to(tl.int64) * rank + (k - rank), mask=is_right, other=0.0)
            else:
                value += tl.where(k == 2 * rank + 1, 1.0, 0.0)
        tl.store(rows + row * width + k, value.to(rows.dtype.element_ty), mask=k < width)
    else:
        tag = row - num_rows
        value = tl.load(target + tag * rank + k, mask=is_left, other=0.0)
        value += tl.load(source + tag * rank + (k - rank), mask=is_right, other=0.0)
        value += tl.where(k == 2 * rank, tl.load(start + tag), 0.0)
        value += tl.where(k == 2 * rank + 1, tl.load(end + tag), 0.0)
        tl.store(columns + tag * width + k, value.to(columns.dtype.element_ty), mask=k < width)


@triton.jit
def _split(columns, start, source, target, end, rank, width, BLOCK: tl.constexpr):  # noqa: N803
    tag = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, BLOCK)
    value = tl.load(columns + tag * width + k, mask=k < width, other=0.0).to(tl.float32)
    tl.store(target + tag * rank + k, value, mask=k < rank)
    tl.store(source + tag * rank + (k - rank), value, mask=(k >= rank) & (k < 2 * rank))
    tl.store(start + tag + (k - 2 * rank), value, mask=k == 2 * rank)
    tl.store(end + tag + (k - 2 * rank - 1), value, mask=k == 2 * rank + 1)


@triton.jit
def _add(rows, neighbours, source, target, num_tags, rank, width, BLOCK: tl.constexpr):  # noqa: N803
    row = tl.program_id(0).to(tl.int64)
    k = tl.arange(0, BLOCK)
    old = tl.load(neighbours + row).to(tl.int64)
    new = tl.load(neighbours + tl.num_programs(0).to(tl.int64) + row).to(tl.int64)
    value = tl.load(rows + row * width + k, mask=k < width, other=0.0).to(tl.float32)
    if (old >= 0) & (old < num_tags):
        tl.atomic_add(source + old * rank + k, value, mask=k < rank, sem="relaxed")
    if (new >= 0) & (new < num_tags):
        tl.atomic_add(target + new * rank + (k - rank), value, mask=(k >= rank) & (k < 2 * rank), sem="relaxed")


_launch_factors, _launch_split, _launch_add = Launcher(_factors), Launcher(_split), Launcher(_add)
