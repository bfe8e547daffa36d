"""Both directions of the rescaled recursion over many tags in one launch: a persistent kernel with a barrier between phases.

Each step reads the matrix once, for both directions. In the first phase a program multiplies tiles of the matrix, in the
second one it adds up the parts of some new entries. Triton's interpreter runs one phase per launch.
"""

import os

import torch
import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels.fused._device import on_tensor_device, with_unit_stride

#: Columns and depth per tile, and number of parts of the depth.
COLUMNS, DEPTH, PARTS = 64, 32, 4
#: New entries that a program adds up at a time.
BLOCK = 256
#: Products of a float32 as three products of its leading and trailing digits on tensor cores, which have been able to do
#: this since compute capability 8. The errors are those of float32 products (measured with 4000 tags and 128 positions).
PRECISION = "tf32x3"
WARPS, STAGES = 4, 1
#: Programs per processor, which have to run at the same time, if a processor has the shared memory.
RESIDENT, SHARED_MEMORY = 2, 200 * 2**10


@on_tensor_device
def recursions(a: Tensor, b: Tensor, exp_transitions: Tensor, factors: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Fills a[1:] and b[:-1], scaled so that their largest entries are 1, and returns the scales z and z' (L, B, 1).

        z_j a_j = (a_{j−1} E) ⊙ x_j          z'_j b_{j−1} = (b_j ⊙ x_j) Eᵀ

    Args:
        a, b: (L + 1, B, W), contiguous, given a[0] and b[L] with largest entry 1.
        exp_transitions: (W, |Y|), E.
        factors: (L, B, |Y|), x.
        mask: (L, B) booleans; masked steps copy.
    """
    matrix, factors, mask = exp_transitions.contiguous(), with_unit_stride(factors), mask.contiguous()
    (width, num_tags), (length, batch) = matrix.shape, mask.shape
    rows = 16 if batch <= 16 else 32 if batch <= 32 else 64
    tiles = triton.cdiv(num_tags, COLUMNS), PARTS, triton.cdiv(batch, rows)
    forward_parts = a.new_empty(PARTS, batch, num_tags)
    backward_parts = a.new_empty(tiles[0], batch, width)
    num_blocks = triton.cdiv(width, BLOCK)
    maxima = torch.ones((2, 2, batch, num_blocks), dtype=torch.float32, device=a.device)
    counter = torch.zeros(1, dtype=torch.int32, device=a.device)
    num_items = tiles[0] * tiles[1] * tiles[2]
    for grid, first, last, phases in _launches(a, num_items, length):
        _recursion[(grid,)](
            a, b, matrix, factors, *factors.stride()[:2], mask, forward_parts, backward_parts, maxima, counter, first, last,
            length, batch, width, num_tags, triton.cdiv(triton.cdiv(width, PARTS), DEPTH) * DEPTH, num_blocks, num_items,
            PHASES=phases, ROWS=rows, COLUMNS=COLUMNS, DEPTH=DEPTH, PARTS=PARTS, BLOCK=BLOCK,
            TILES=triton.next_power_of_2(tiles[0]), MAXIMA=triton.next_power_of_2(num_blocks), PRECISION=_precision(a),
            num_warps=WARPS, num_stages=STAGES, launch_cooperative_grid=phases == 0,
        )  # fmt: skip
    z, z_back = a[1:].amax(-1, keepdim=True), b[:-1].amax(-1, keepdim=True)
    a[1:].div_(z)
    b[:-1].div_(z_back)
    return z, z_back


def _launches(a: Tensor, num_items: int, length: int) -> list[tuple[int, int, int, int]]:
    """Returns (programs, first step, last step, phases) of each launch; phases is 0 for both, with barriers between them."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        return [(1, step, step + 1, phase) for step in range(length) for phase in (1, 2)]
    device = torch.cuda.get_device_properties(a.device)
    resident = RESIDENT if device.shared_memory_per_multiprocessor > SHARED_MEMORY else 1
    return [(min(num_items, resident * device.multi_processor_count), 0, length, 0)]


def _precision(tensor: Tensor) -> str:
    return "ieee" if tensor.is_cuda and torch.cuda.get_device_capability(tensor.device) < (8, 0) else PRECISION


@triton.jit
def _wait_for_all(counter, number):
    """Waits until all programs have called this function for the `number`-th time; they run at the same time."""
    tl.debug_barrier()
    tl.atomic_add(counter, 1, sem="acq_rel", scope="gpu")
    while tl.atomic_add(counter, 0, sem="acquire", scope="gpu") < number * tl.num_programs(0):
        pass
    tl.debug_barrier()


@triton.jit
def _scale(maxima, row, is_row, num_blocks, MAXIMA: tl.constexpr):  # noqa: N803
    """Returns the largest entry of each row."""
    block = tl.arange(0, MAXIMA)
    at = maxima + row[:, None] * num_blocks + block[None, :]
    return tl.max(tl.load(at, mask=is_row[:, None] & (block[None, :] < num_blocks), other=0.0), 1)


@triton.jit
def _left_part(a, row, is_row, k, width, scale):
    """Returns the entries k of the rows, scaled; 0 outside."""
    is_here = is_row[:, None] & (k[None, :] < width)
    values = tl.load(a + row[:, None] * width + k[None, :], mask=is_here, other=0.0) / scale[:, None]
    return tl.where(is_here, values, 0.0)


@triton.jit
def _entries(matrix, k, column, width, num_tags):
    """Returns a tile of the matrix; 0 outside."""
    at = matrix + k[:, None].to(tl.int64) * num_tags + column[None, :]
    return tl.load(at, mask=(k[:, None] < width) & (column[None, :] < num_tags), other=0.0)


@triton.jit
def _multiply(
    item, a, b, matrix, factors, factor_stride, forward_parts, backward_parts, maxima, batch, width, num_tags, part_size,
    num_blocks, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, PARTS: tl.constexpr,  # noqa: N803
    MAXIMA: tl.constexpr, PRECISION: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Parts of the products of a tile of rows with a tile of the matrix in both directions; `a` and `b` are the old rows."""
    num_tiles = tl.cdiv(num_tags, COLUMNS)
    tile = item % num_tiles
    part = (item // num_tiles) % PARTS
    row = (item // (num_tiles * PARTS)) * ROWS + tl.arange(0, ROWS)
    is_row = row < batch
    row = row.to(tl.int64)
    column = tile * COLUMNS + tl.arange(0, COLUMNS)
    is_here = is_row[:, None] & (column[None, :] < num_tags)
    scale = _scale(maxima, row, is_row, num_blocks, MAXIMA)
    back_scale = _scale(maxima + batch * num_blocks, row, is_row, num_blocks, MAXIMA)
    right = tl.load(b + row[:, None] * width + column[None, :], mask=is_here, other=0.0) / back_scale[:, None]
    right *= tl.load(factors + row[:, None] * factor_stride + column[None, :], mask=is_here, other=0.0)
    right = tl.where(is_here, right, 0.0)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    start = part * part_size
    left = _left_part(a, row, is_row, start + tl.arange(0, DEPTH), width, scale)
    entries = _entries(matrix, start + tl.arange(0, DEPTH), column, width, num_tags)
    for first in range(start, tl.minimum(start + part_size, width), DEPTH):
        k = first + tl.arange(0, DEPTH)
        is_k = is_row[:, None] & (k[None, :] < width)
        # Loaded one iteration ahead. Triton does not do this for tiles that are used in two products.
        next_left = _left_part(a, row, is_row, k + DEPTH, width, scale)
        next_entries = _entries(matrix, k + DEPTH, column, width, num_tags)
        total = tl.dot(left, entries, total, input_precision=PRECISION)
        back = tl.dot(right, tl.trans(entries), input_precision=PRECISION)
        tl.store(backward_parts + (tile * batch + row[:, None]) * width + k[None, :], back, mask=is_k)
        left, entries = next_left, next_entries
    tl.store(forward_parts + (part * batch + row[:, None]) * num_tags + column[None, :], total, mask=is_here)


@triton.jit
def _add_up(
    direction, chain, block, parts, num_parts, size, factors, mask, old, new, old_maxima, new_maxima, width, num_tags,
    batch, num_blocks, BLOCK: tl.constexpr, ROOM: tl.constexpr, MAXIMA: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Adds up the parts of a block of a new row, which is `size` wide, and multiplies it by the factors if it is forward."""
    column = block * BLOCK + tl.arange(0, BLOCK)
    part = tl.arange(0, ROOM)
    is_here = column < size
    at = parts + (part[:, None] * batch + chain) * size + column[None, :]
    value = tl.sum(tl.load(at, mask=(part[:, None] < num_parts) & is_here[None, :], other=0.0), 0)
    if direction == 0:
        value *= tl.load(factors + column, mask=column < num_tags, other=0.0)
    if tl.load(mask) == 0:
        maximum = tl.arange(0, MAXIMA)
        scale = tl.max(tl.load(old_maxima + maximum, mask=maximum < num_blocks, other=0.0), 0)
        value = tl.load(old + column, mask=column < width, other=0.0) / scale
    tl.store(new + column, value, mask=column < width)
    tl.store(new_maxima + block, tl.max(tl.where(column < width, value, 0.0), 0))


@triton.jit(do_not_specialize=["first", "last", "length", "batch"])
def _recursion(
    a, b, matrix, factors, time_stride, chain_stride, mask, forward_parts, backward_parts, maxima, counter, first, last,
    length, batch, width, num_tags, part_size, num_blocks, num_items,
    PHASES: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, PARTS: tl.constexpr,  # noqa: N803
    BLOCK: tl.constexpr, TILES: tl.constexpr, MAXIMA: tl.constexpr, PRECISION: tl.constexpr,  # noqa: N803
):  # fmt: skip
    size = tl.full((), 0, tl.int64) + batch * width
    for step in range(first, last):
        j = tl.full((), 0, tl.int64) + step
        back = length - 1 - j
        old_maxima = maxima + (step % 2) * 2 * batch * num_blocks
        new_maxima = maxima + ((step + 1) % 2) * 2 * batch * num_blocks
        if PHASES != 2:
            for item in range(tl.program_id(0), num_items, tl.num_programs(0)):
                _multiply(
                    item, a + j * size, b + (back + 1) * size, matrix, factors + back * time_stride, chain_stride,
                    forward_parts, backward_parts, old_maxima, batch, width, num_tags, part_size, num_blocks,
                    ROWS, COLUMNS, DEPTH, PARTS, MAXIMA, PRECISION,
                )  # fmt: skip
        if PHASES == 0:
            _wait_for_all(counter, 2 * step + 1)
        if PHASES != 1:
            for item in range(tl.program_id(0), 2 * batch * num_blocks, tl.num_programs(0)):
                block = item % num_blocks
                chain = ((item // num_blocks) % batch).to(tl.int64)
                row = chain * width
                if item < batch * num_blocks:
                    _add_up(
                        0, chain, block, forward_parts, PARTS, num_tags, factors + j * time_stride + chain * chain_stride,
                        mask + j * batch + chain, a + j * size + row, a + (j + 1) * size + row,
                        old_maxima + chain * num_blocks, new_maxima + chain * num_blocks, width, num_tags, batch, num_blocks,
                        BLOCK, PARTS, MAXIMA,
                    )  # fmt: skip
                else:
                    _add_up(
                        1, chain, block, backward_parts, tl.cdiv(num_tags, COLUMNS), width, factors,
                        mask + back * batch + chain, b + (back + 1) * size + row, b + back * size + row,
                        old_maxima + (batch + chain) * num_blocks, new_maxima + (batch + chain) * num_blocks, width,
                        num_tags, batch, num_blocks, BLOCK, TILES, MAXIMA,
                    )  # fmt: skip
        if PHASES == 0:
            _wait_for_all(counter, 2 * step + 2)
