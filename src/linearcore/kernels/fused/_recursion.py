"""Forward and backward direction of the rescaled recursion, with two launches per step: a product, and everything else.

A product of a few rows with a large matrix is limited by reading the matrix. Libraries pad the rows to a tile of 64 or more,
so their products are limited by arithmetic instead.
"""

import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels.fused._device import on_tensor_device, with_unit_stride

#: Rows per tile: the minimum for tl.dot.
ROWS = 16
#: Columns and depth per tile, and number of parts of the depth, which gives work to every processor. Fastest of 27 settings
#: with 1000 and 4000 tags on an H200.
COLUMNS, DEPTH, PARTS = 128, 32, 16


@on_tensor_device
def forward_recursion(a: Tensor, exp_transitions: Tensor, factors: Tensor, mask: Tensor | None) -> Tensor:
    """Fills a[1:] and returns z (L, B, 1); see `kernels._partition`.

    Args:
        a: (L + 1, B, W), contiguous, zero except a[0].
        exp_transitions: (W, |Y|).
        factors: (L, B, |Y|).
        mask: (L, B, 1) booleans, or None if all are True.
    """
    exp_transitions, factors = exp_transitions.contiguous(), with_unit_stride(factors)
    z, parts = a.new_empty(factors.shape[0], a.shape[1], 1), a.new_empty(PARTS, a.shape[1], exp_transitions.shape[1])
    mask = None if mask is None else mask.contiguous()
    for j in range(factors.shape[0]):
        _product(a, j, None, exp_transitions, parts)
        _finish_step(parts, a, j, j + 1, factors, j, mask, z)
    return z


@on_tensor_device
def backward_recursion(b: Tensor, exp_transitions: Tensor, factors: Tensor, mask: Tensor | None) -> Tensor:
    """Fills b[:-1] and returns z' (L, B, 1). Arguments as in `forward_recursion`."""
    factors = with_unit_stride(factors)
    z, parts = b.new_empty(factors.shape[0], b.shape[1], 1), b.new_empty(PARTS, b.shape[1], exp_transitions.shape[0])
    mask = None if mask is None else mask.contiguous()
    # Copied once: reading the transposed view in every step takes four times as long.
    columns = exp_transitions.t().contiguous()
    for j in reversed(range(factors.shape[0])):
        _product(b, j + 1, (factors, j), columns, parts)
        _finish_step(parts, b, j + 1, j, None, j, mask, z)
    return z


def _product(x: Tensor, at: int, factors: tuple[Tensor, int] | None, matrix: Tensor, parts: Tensor) -> None:
    """Writes the P parts of x[at] @ matrix, or (x[at] ⊙ factors) @ matrix, to `parts` (P, B, N), for a matrix (K, N)."""
    depth, columns = matrix.shape
    batch = x.shape[1]
    part_size = triton.cdiv(triton.cdiv(depth, PARTS), DEPTH) * DEPTH
    y, step = (x, 0) if factors is None else factors
    # Positions are passed as offsets, since slicing would take longer than the launch.
    _thin_product[(triton.cdiv(columns, COLUMNS), PARTS, triton.cdiv(batch, ROWS))](
        x, at * x.stride(0), x.stride(1), y, step * y.stride(0), y.stride(1), matrix, parts, batch, depth, columns,
        part_size, HAS_FACTORS=factors is not None, ROWS=ROWS, COLUMNS=COLUMNS, DEPTH=DEPTH,
    )  # fmt: skip


def _finish_step(
    parts: Tensor, x: Tensor, old: int, new: int, factors: Tensor | None, step: int, mask: Tensor | None, z: Tensor
) -> None:
    """Computes x[new] from the parts of the product and the factors; copies x[old] where masked."""
    batch, width = x.shape[1:]
    y = x if factors is None else factors
    _finish[(batch,)](
        parts, y, step * y.stride(0), y.stride(1), x, old * x.stride(0), new * x.stride(0),
        z if mask is None else mask, z, step * batch, batch, width, parts.shape[2],
        HAS_FACTORS=factors is not None, IS_FULL=mask is None, PARTS=PARTS, BLOCK=triton.next_power_of_2(width), num_warps=8,
    )  # fmt: skip


@triton.jit(do_not_specialize=["at", "factor_offset"])
def _thin_product(
    x, at, row_stride, factors, factor_offset, factor_stride, matrix, parts, batch, depth, columns, part_size,
    HAS_FACTORS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,  # noqa: N803
):  # fmt: skip
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    part = tl.program_id(1)
    row = (tl.program_id(2) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(part * part_size, tl.minimum(part * part_size + part_size, depth), DEPTH):
        k = first + tl.arange(0, DEPTH)
        left_mask = (row[:, None] < batch) & (k[None, :] < depth)
        left = tl.load(x + at + row[:, None] * row_stride + k[None, :], mask=left_mask, other=0.0)
        if HAS_FACTORS:
            left *= tl.load(factors + factor_offset + row[:, None] * factor_stride + k[None, :], mask=left_mask, other=0.0)
        right_mask = (k[:, None] < depth) & (column[None, :] < columns)
        right = tl.load(matrix + k[:, None].to(tl.int64) * columns + column[None, :], mask=right_mask, other=0.0)
        # Full precision regardless of the global setting, because errors accumulate over positions.
        total = tl.dot(left, right, total, input_precision="ieee")
    target = (part * batch + row[:, None]) * columns + column[None, :]
    tl.store(parts + target, total, mask=(row[:, None] < batch) & (column[None, :] < columns))


@triton.jit(do_not_specialize=["factor_offset", "old", "new", "step"])
def _finish(
    parts, factors, factor_offset, factor_stride, x, old, new, mask, z, step, batch, width, columns,
    HAS_FACTORS: tl.constexpr, IS_FULL: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    chain = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    is_column = column < columns
    value = tl.zeros((BLOCK,), tl.float32)
    for part in tl.static_range(PARTS):
        value += tl.load(parts + (part * batch + chain) * columns + column, mask=is_column, other=0.0)
    if HAS_FACTORS:
        value *= tl.load(factors + factor_offset + chain * factor_stride + column, mask=is_column, other=0.0)
    if not IS_FULL:
        old_value = tl.load(x + old + chain * width + column, mask=column < width, other=0.0)
        value = tl.where(tl.load(mask + step + chain) != 0, value, old_value)
    largest = tl.max(value, 0)
    tl.store(z + step + chain, largest)
    tl.store(x + new + chain * width + column, value / largest, mask=column < width)
