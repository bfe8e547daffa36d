"""AdamW on the rows of a sparse gradient: one program for each row."""

import math
import struct

import torch
import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels._adamw_types import AdamWStep
from linearcore.kernels.fused._device import on_tensor_device

#: Columns of a block, and gradients of one row that are summed at a time.
BLOCK, REPEATS = 512, 8


@on_tensor_device
def sparse_adamw(
    values: Tensor, tables: tuple[Tensor, Tensor, Tensor], last_step: Tensor | None, index: Tensor, step: AdamWStep
) -> None:
    """See `kernels.sparse_adamw`."""
    count, columns = values.shape
    if not count or not columns:
        return
    # Stable, so that sums of repeated rows have a fixed order.
    sorted_index, place = torch.sort(index, stable=True)
    block = min(BLOCK, triton.next_power_of_2(columns))
    # In two floats, because a decay over thousands of steps multiplies the rounding error.
    log_decay = math.log(step.decay)
    high = struct.unpack("f", struct.pack("f", log_decay))[0]
    _update[(count,)](
        *tables, last_step if last_step is not None else sorted_index, sorted_index, place, values.contiguous(),
        count, columns, step.number, high, log_decay - high, step.betas[0], step.betas[1],
        step.lr / (1 - step.betas[0] ** step.number), 1 / (1 - step.betas[1] ** step.number), step.eps,
        HAS_DECAY=last_step is not None, BLOCK=block, REPEATS=REPEATS, num_warps=1 if block <= 128 else 4,
    )  # fmt: skip


@triton.jit(do_not_specialize=["count", "number"])
def _update(
    parameter, first, second, last_step, index, place, values, count, columns, number, log_decay, log_decay_rest, beta1,
    beta2, rate, correction, eps, HAS_DECAY: tl.constexpr, BLOCK: tl.constexpr, REPEATS: tl.constexpr,  # noqa: N803
):  # fmt: skip
    begin = tl.program_id(0).to(tl.int64)
    row = tl.load(index + begin)
    is_new = begin == 0
    if begin > 0:
        is_new = tl.load(index + begin - 1) != row
    if is_new:
        decay = 1.0
        if HAS_DECAY:
            log_step = tl.full((), log_decay, tl.float64) + tl.full((), log_decay_rest, tl.float64)
            decay = tl.exp(log_step * (number - tl.load(last_step + row)).to(tl.float64)).to(tl.float32)
        repeats = tl.arange(0, REPEATS)
        for start in range(0, columns, BLOCK):
            column = start + tl.arange(0, BLOCK)
            inside = column < columns
            total = tl.zeros((BLOCK,), tl.float32)
            at = begin
            num_found = REPEATS
            while num_found == REPEATS:
                in_range = at + repeats < count
                is_same = in_range & (tl.load(index + at + repeats, mask=in_range, other=-1) == row)
                source = tl.load(place + at + repeats, mask=is_same, other=0)
                mask = is_same[:, None] & inside[None, :]
                rows = tl.load(values + source[:, None] * columns + column[None, :], mask=mask, other=0.0)
                total += tl.sum(rows.to(tl.float32), 0)
                num_found = tl.sum(is_same.to(tl.int32), 0)
                at += REPEATS
            offset = row * columns + column
            m = tl.load(first + offset, mask=inside, other=0.0).to(tl.float32)
            v = tl.load(second + offset, mask=inside, other=0.0).to(tl.float32)
            p = tl.load(parameter + offset, mask=inside, other=0.0).to(tl.float32)
            m += (1.0 - beta1) * (total - m)
            v = beta2 * v + (1.0 - beta2) * total * total
            p = decay * p - rate * (m / (tl.sqrt(v * correction) + eps))
            tl.store(first + offset, m.to(first.dtype.element_ty), mask=inside)
            tl.store(second + offset, v.to(second.dtype.element_ty), mask=inside)
            tl.store(parameter + offset, p.to(parameter.dtype.element_ty), mask=inside)
        if HAS_DECAY:
            # Other warps may still have to read the previous number.
            tl.debug_barrier()
            tl.store(last_step + row, number)
