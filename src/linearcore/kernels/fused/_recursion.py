"""The two directions of the scaled recursion, two launches a step: a thin product, and all that follows it.

A product of a few rows with a large matrix is bound by reading the matrix. Libraries pad the rows to a tile of 64 or more
and become bound by arithmetic instead.
"""

import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels.fused._device import by_rows, on_its_device

#: Rows of a tile: the least that Triton multiplies.
ROWS = 16
#: Columns and depth of a tile, and into how many parts the depth is cut, so that there is work for every processor. The best
#: of 27 combinations with 1000 and 4000 tags on an H200.
COLUMNS, DEPTH, PARTS = 128, 32, 16


@on_its_device
def forwards(a: Tensor, weights: Tensor, factors: Tensor, here: Tensor | None) -> Tensor:
    """Fills a[1:] and returns (L, B, 1) z; see `kernels._partition`.

    Args:
        a: (L + 1, B, W), contiguous, zero but for a[0].
        weights: (W, |Y|).
        factors: (L, B, |Y|).
        here: (L, B, 1) booleans, or None where all are True.
    """
    weights, factors = weights.contiguous(), by_rows(factors)
    z, parts = a.new_empty(factors.shape[0], a.shape[1], 1), a.new_empty(PARTS, a.shape[1], weights.shape[1])
    here = None if here is None else here.contiguous()
    for j in range(factors.shape[0]):
        _product(a, j, None, weights, parts)
        _finish_step(parts, a, j, j + 1, factors, j, here, z)
    return z


@on_its_device
def backwards(b: Tensor, weights: Tensor, factors: Tensor, here: Tensor | None) -> Tensor:
    """Fills b[:-1] and returns (L, B, 1) z'."""
    factors = by_rows(factors)
    z, parts = b.new_empty(factors.shape[0], b.shape[1], 1), b.new_empty(PARTS, b.shape[1], weights.shape[0])
    here = None if here is None else here.contiguous()
    # Copied once: read across its rows in every step, the matrix takes four times as long.
    columns = weights.t().contiguous()
    for j in reversed(range(factors.shape[0])):
        _product(b, j + 1, (factors, j), columns, parts)
        _finish_step(parts, b, j + 1, j, None, j, here, z)
    return z


def _product(x: Tensor, at: int, factors: tuple[Tensor, int] | None, matrix: Tensor, parts: Tensor) -> None:
    """parts (P, B, N): the P parts of x[at] @ matrix, or (x[at] ⊙ factors) @ matrix, for a matrix (K, N)."""
    depth, columns = matrix.shape
    batch = x.shape[1]
    share = triton.cdiv(triton.cdiv(depth, PARTS), DEPTH) * DEPTH
    by, step = (x, 0) if factors is None else factors
    # Positions go in as numbers: taking slices here would cost more than the launch.
    _thin[(triton.cdiv(columns, COLUMNS), PARTS, triton.cdiv(batch, ROWS))](
        x, at * x.stride(0), x.stride(1), by, step * by.stride(0), by.stride(1), matrix, parts, batch, depth, columns, share,
        HAS_FACTORS=factors is not None, ROWS=ROWS, COLUMNS=COLUMNS, DEPTH=DEPTH,
    )  # fmt: skip


def _finish_step(
    parts: Tensor, x: Tensor, old: int, new: int, factors: Tensor | None, step: int, here: Tensor | None, z: Tensor
) -> None:
    """x[new], from the parts of the product, the factors, and x[old] where there is no tag."""
    batch, width = x.shape[1:]
    by = x if factors is None else factors
    _finish[(batch,)](
        parts, by, step * by.stride(0), by.stride(1), x, old * x.stride(0), new * x.stride(0),
        z if here is None else here, z, step * batch, batch, width, parts.shape[2],
        HAS_FACTORS=factors is not None, IS_FULL=here is None, PARTS=PARTS, BLOCK=triton.next_power_of_2(width), num_warps=8,
    )  # fmt: skip


@triton.jit(do_not_specialize=["at", "by_at"])
def _thin(
    x, at, by_row, factors, by_at, by_factor_row, matrix, parts, batch, depth, columns, share,
    HAS_FACTORS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,  # noqa: N803
):  # fmt: skip
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    part = tl.program_id(1)
    row = (tl.program_id(2) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(part * share, tl.minimum(part * share + share, depth), DEPTH):
        k = first + tl.arange(0, DEPTH)
        wanted = (row[:, None] < batch) & (k[None, :] < depth)
        left = tl.load(x + at + row[:, None] * by_row + k[None, :], mask=wanted, other=0.0)
        if HAS_FACTORS:
            left *= tl.load(factors + by_at + row[:, None] * by_factor_row + k[None, :], mask=wanted, other=0.0)
        there = (k[:, None] < depth) & (column[None, :] < columns)
        right = tl.load(matrix + k[:, None].to(tl.int64) * columns + column[None, :], mask=there, other=0.0)
        # Not in reduced precision, whatever the global setting: errors of a recursion add up.
        total = tl.dot(left, right, total, input_precision="ieee")
    place = (part * batch + row[:, None]) * columns + column[None, :]
    tl.store(parts + place, total, mask=(row[:, None] < batch) & (column[None, :] < columns))


@triton.jit(do_not_specialize=["by_at", "old", "new", "step"])
def _finish(
    parts, factors, by_at, by_factor_row, x, old, new, here, z, step, batch, width, columns,
    HAS_FACTORS: tl.constexpr, IS_FULL: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    chain = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    value = tl.zeros((BLOCK,), tl.float32)
    for part in tl.static_range(PARTS):
        value += tl.load(parts + (part * batch + chain) * columns + column, mask=inside, other=0.0)
    if HAS_FACTORS:
        value *= tl.load(factors + by_at + chain * by_factor_row + column, mask=inside, other=0.0)
    if not IS_FULL:
        kept = tl.load(x + old + chain * width + column, mask=column < width, other=0.0)
        value = tl.where(tl.load(here + step + chain) != 0, value, kept)
    largest = tl.max(value, 0)
    tl.store(z + step + chain, largest)
    tl.store(x + new + chain * width + column, value / largest, mask=column < width)
