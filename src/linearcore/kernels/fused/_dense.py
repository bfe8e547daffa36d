"""Launches of the dense losses: forward and gradient together, or one after the other."""

import math
from functools import lru_cache
from typing import NamedTuple

import torch
import triton
from torch import Tensor

from linearcore.kernels._loss_code import FormCode, LossCode
from linearcore.kernels.fused._dense_rows import rows_kernel
from linearcore.kernels.fused._dense_stream import scale_kernel, stream_kernel
from linearcore.kernels.fused._device import with_unit_stride
from linearcore.kernels.fused._launch import Launch, special

#: Longest rows that a program keeps in registers.
MAX_ON_CHIP = 4096
#: The same for normalised scores, which have no other kernel.
MAX_ON_SPHERE = 8192
#: Scores that a program processes at a time.
TILE = 2048
#: From this many rows on they are counted once, not by every program.
COUNTED_ONCE = 16384
#: Gradients smaller than this are multiplied by their upstream gradient without a look at it.
SMALL = 2**20
_REDUCTIONS = {"none": 0, "sum": 1, "mean": 2}


class Dense(NamedTuple):
    """A dense loss of a batch.

    Attributes:
        code: the loss.
        ignore_index: label of rows without loss.
        reduction: "none", "sum" or "mean".
        dtype: of the result.
        margin: (C,) class margins in float32, or None.
    """

    code: LossCode
    ignore_index: int
    reduction: str
    dtype: torch.dtype
    margin: Tensor | None = None


def supports(code: LossCode, num_classes: int) -> bool:
    """Whether rows of this length have a kernel: normalised scores only if they fit into the registers of a program."""
    return num_classes <= MAX_ON_SPHERE if code.radius else num_classes < 2**30


def is_ahead(dense: Dense, scores: Tensor) -> bool:
    """Whether the gradient is computed in the forward pass.

    Not in float16, where it might underflow before it is multiplied by the factor of a gradient scaler.
    """
    return dense.reduction != "none" and scores.dtype != torch.float16


def losses_and_gradient(
    dense: Dense, scores: Tensor, target: Tensor, *, needs_gradient: bool
) -> tuple[Tensor, Tensor | None]:
    """Returns the losses, and what `gradient_of` needs: the gradient itself if `is_ahead`, or three numbers per row."""
    scores, target = with_unit_stride(scores), target.contiguous()
    num_rows, num_classes = scores.shape
    device = scores.device
    plan = _plan(dense.code.form, dense.code.radius > 0, num_rows, num_classes, scores.dtype, device)
    is_unreduced = dense.reduction == "none"
    # Programs write their share of a sum, or the result if there is one program.
    is_result = is_unreduced or plan.num_programs == 1
    shape = (num_rows,) if is_unreduced else () if is_result else (plan.num_programs,)
    losses = torch.empty(shape, dtype=dense.dtype if is_result else torch.float32, device=device)
    gradient = statistics = None
    if needs_gradient and is_ahead(dense, scores):
        gradient = torch.empty((num_rows, num_classes), dtype=scores.dtype, device=device)
    elif needs_gradient and not plan.is_on_chip:
        statistics = torch.empty((3, num_rows), dtype=torch.float32, device=device)
    _launch(plan, dense, scores, target, losses=losses, gradient=gradient, statistics=statistics)
    if not is_result:
        losses = losses.sum()
        losses = losses if dense.dtype == torch.float32 else losses.to(dense.dtype)
    return losses, statistics if gradient is None else gradient


def gradient_of(dense: Dense, scores: Tensor, target: Tensor, kept: Tensor | None, upstream: Tensor) -> Tensor:
    """Returns upstream · gradient. `kept` is from `losses_and_gradient` and may be overwritten."""
    if is_ahead(dense, scores):
        assert kept is not None
        return scaled(kept, upstream)
    scores, target = with_unit_stride(scores), target.contiguous()
    num_rows, num_classes = scores.shape
    plan = _plan(dense.code.form, dense.code.radius > 0, num_rows, num_classes, scores.dtype, scores.device)
    gradient = torch.empty((num_rows, num_classes), dtype=scores.dtype, device=scores.device)
    _launch(plan, dense, scores, target, gradient=gradient, statistics=kept, upstream=upstream)
    return gradient


def scaled(gradient: Tensor, upstream: Tensor) -> Tensor:
    """Multiplies `gradient` in place by the number `upstream`. If that is 1, large gradients are not read."""
    if gradient.numel() < SMALL:
        return gradient.mul_(upstream)
    _scaling(gradient.numel(), gradient.dtype, upstream.dtype, gradient.device)(gradient.get_device(), gradient, upstream)
    return gradient


@lru_cache(maxsize=256)
def _scaling(size: int, dtype: torch.dtype, upstream_dtype: torch.dtype, device: torch.device) -> Launch:
    kind = "scale", dtype, upstream_dtype, device, special(size)
    return Launch(scale_kernel, 8 * num_processors(device), (size, 4096), kind, num_warps=4)


class _Plan(NamedTuple):
    is_on_chip: bool
    num_programs: int
    tile: tuple[int, ...]
    num_warps: int
    max_registers: int | None = None


@lru_cache(maxsize=256)
def _plan(
    form: FormCode, is_sphere: bool, num_rows: int, num_classes: int, dtype: torch.dtype, device: torch.device
) -> _Plan:
    processors = num_processors(device)
    if is_sphere or num_classes <= MAX_ON_CHIP:
        block = max(16, triton.next_power_of_2(num_classes))
        rows = max(1, min(TILE // block, triton.next_power_of_2(num_rows)))
        num_warps = min(32, max(4, block // 512)) if rows * block >= TILE else max(1, rows * block // 512)
        num_programs = min(triton.cdiv(num_rows, rows), processors * max(1, 32 // num_warps))
        return _Plan(True, num_programs, (rows, block), num_warps)
    num_warps, per_processor, repeats, max_registers = STREAMING[form]
    tile = repeats, 32 * num_warps, 16 // dtype.itemsize
    return _Plan(False, min(num_rows, per_processor * processors), tile, num_warps, max_registers)


#: Warps of a program, programs of a processor, loads of 16 bytes of a thread at a time, and its most registers.
STREAMING: dict[FormCode, tuple[int, int, int, int | None]] = {
    FormCode.PAIRWISE: (8, 4, 1, None),
    FormCode.LOGODDS: (8, 4, 1, None),
    FormCode.CENTERED: (8, 4, 1, None),
}


@lru_cache(maxsize=16)
def num_processors(device: torch.device) -> int:
    """Returns the number of multiprocessors; 2 in the interpreter, which runs programs one after another."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2


def _launch(
    plan: _Plan, dense: Dense, scores: Tensor, target: Tensor, *, losses: Tensor | None = None,
    gradient: Tensor | None = None, statistics: Tensor | None = None, upstream: Tensor | None = None,
) -> None:  # fmt: skip
    count = None
    if dense.reduction == "mean" and scores.shape[0] >= COUNTED_ONCE:
        count = (target != dense.ignore_index).sum()
    prepared = _prepared(
        plan, dense.code, dense.ignore_index, dense.reduction, dense.margin is not None, count is not None,
        scores.shape, scores.stride(0), scores.dtype, scores.device, None if losses is None else losses.dtype,
        gradient is not None, statistics is not None, None if upstream is None else upstream.dtype,
        0 if upstream is None or upstream.dim() == 0 else upstream.stride(0),
    )  # fmt: skip
    prepared(scores.get_device(), scores, target, dense.margin, upstream, count, statistics, losses, gradient)


@lru_cache(maxsize=1024)
def _prepared(
    plan: _Plan, code: LossCode, ignore_index: int, reduction: str, has_margin: bool, has_count: bool, shape: torch.Size,
    stride: int, dtype: torch.dtype, device: torch.device, loss_dtype: torch.dtype | None, has_gradient: bool,
    has_statistics: bool, upstream_dtype: torch.dtype | None, upstream_stride: int,
) -> Launch:  # fmt: skip
    """Returns the launch for tensors of these kinds. All of them are in its key, as Triton compiles a kernel for each."""
    base, *surrogate = code.surrogate
    numbers = stride, upstream_stride, *shape, ignore_index, *map(float, (*surrogate, code.radius, code.scale))
    flags = (
        has_margin, _REDUCTIONS[reduction], has_count, upstream_dtype is not None, loss_dtype is not None, has_gradient,
    )  # fmt: skip
    numbers_kind = special(stride), special(shape[1])
    kind = plan._replace(num_programs=0), dtype, device, loss_dtype, upstream_dtype, has_statistics, numbers_kind
    if plan.is_on_chip:
        constants: tuple[int | bool, ...] = int(code.form), base, code.is_mean, code.radius > 0, *flags
        rest = *numbers, *constants, *plan.tile
        return Launch(rows_kernel, plan.num_programs, rest, (kind, constants), num_warps=plan.num_warps)
    is_simple = code.surrogate.width == math.inf and code.surrogate.sharpness == 1.0
    constants = int(code.form), base, is_simple, code.is_mean, *flags, has_statistics
    options = {} if plan.max_registers is None else {"maxnreg": plan.max_registers}
    rest = *numbers, *constants, *plan.tile
    return Launch(stream_kernel, plan.num_programs, rest, (kind, constants), num_warps=plan.num_warps, **options)
