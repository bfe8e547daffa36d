"""Binary losses p·φ(h) + (1 − p)·φ(−h): loss and gradient of all elements in one pass."""

from functools import lru_cache
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from linearcore._torch import is_ordinary
from linearcore._typing import result_dtype
from linearcore.kernels.fused._dense import num_processors, scaled
from linearcore.kernels.fused._dense_loss import DTYPES, Reference
from linearcore.kernels.fused._launch import Launch, special
from linearcore.kernels.fused._surrogate import surrogate
from linearcore.surrogates import KernelIdentity

#: Elements that a program processes at a time.
BLOCK = 2048
_HARD = (torch.bool, torch.uint8, torch.int64)


def fused_binary_loss(
    identity: KernelIdentity, scores: Tensor, target: Tensor, reduction: str, reference: Reference
) -> Tensor | None:
    """Returns the loss, or None if another backend has to compute it, as `compiled_binary_loss` does.

    Targets out of range and infinite scores give NaN, without a synchronisation.

    Args:
        identity: φ.
        scores: any shape.
        target: same shape: 0 or 1 as bool, uint8 or int64, or probabilities in float32 or half precision.
        reduction: "none", "sum" or "mean".
        reference: the same loss with plain autograd, for second derivatives.
    """
    if scores.dtype not in DTYPES or target.dtype not in (*DTYPES, *_HARD) or reduction not in ("mean", "sum", "none"):
        return None
    if not is_ordinary(scores) or scores.numel() == 0 or scores.shape != target.shape or target.requires_grad:
        return None
    if target.device != scores.device or not (scores.is_contiguous() and target.is_contiguous()):
        return None
    if scores.is_cpu and not bool(((target >= 0) & (target <= 1)).all()):  # In the interpreter. It is an error there.
        return None
    binary = _Binary(identity, reduction, result_dtype(scores))
    if not (scores.requires_grad and torch.is_grad_enabled()):
        return _losses_and_gradient(binary, scores, target, needs_gradient=False)[0]
    losses: Tensor = _BinaryLoss.apply(scores, target, binary, reference)  # type: ignore[no-untyped-call]
    return losses


class _Binary(NamedTuple):
    identity: KernelIdentity
    reduction: str
    dtype: torch.dtype


class _BinaryLoss(torch.autograd.Function):
    """Keeps the gradient if it is a sum or a mean, but not in float16, as `is_ahead`. Double backward uses the reference."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, target: Tensor, binary: _Binary, reference: Reference) -> Tensor:
        is_ahead = binary.reduction != "none" and scores.dtype != torch.float16
        losses, ctx.gradient = _losses_and_gradient(binary, scores, target, needs_gradient=is_ahead)
        ctx.save_for_backward(scores, target)
        ctx.binary, ctx.reference = binary, reference
        return losses

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        scores, target = ctx.saved_tensors
        gradient, ctx.gradient = ctx.gradient, None
        if torch.is_grad_enabled():
            (gradient,) = torch.autograd.grad(ctx.reference(scores, target), scores, grad_output, create_graph=True)
        elif gradient is not None:
            gradient = scaled(gradient, grad_output)
        else:
            gradient = torch.empty_like(scores)
            upstream = grad_output.contiguous()
            _run(ctx.binary, scores, target, None, gradient, upstream)
        return gradient, None, None, None


def _losses_and_gradient(
    binary: _Binary, scores: Tensor, target: Tensor, *, needs_gradient: bool
) -> tuple[Tensor, Tensor | None]:
    num_programs = _num_programs(scores.numel(), scores.device)
    is_result = binary.reduction == "none" or num_programs == 1
    shape = scores.shape if binary.reduction == "none" else () if is_result else (num_programs,)
    losses = torch.empty(shape, dtype=binary.dtype if is_result else torch.float32, device=scores.device)
    gradient = torch.empty_like(scores) if needs_gradient else None
    _run(binary, scores, target, losses, gradient, None)
    return losses if is_result else losses.sum().to(binary.dtype), gradient


def _num_programs(size: int, device: torch.device) -> int:
    return min(-(-size // BLOCK), 8 * num_processors(device))


def _run(
    binary: _Binary, scores: Tensor, target: Tensor, losses: Tensor | None, gradient: Tensor | None, upstream: Tensor | None
) -> None:
    prepared = _prepared(
        binary, scores.numel(), scores.dtype, target.dtype, None if losses is None else losses.dtype, gradient is not None,
        None if upstream is None else upstream.dtype, scores.device,
    )  # fmt: skip
    prepared(scores.get_device(), scores, target, upstream, losses, gradient)


@lru_cache(maxsize=256)
def _prepared(
    binary: _Binary, size: int, dtype: torch.dtype, target_dtype: torch.dtype, loss_dtype: torch.dtype | None,
    has_gradient: bool, upstream_dtype: torch.dtype | None, device: torch.device,
) -> Launch:  # fmt: skip
    base, *parameters = binary.identity
    is_unreduced = binary.reduction == "none"
    scale = 1.0 / size if binary.reduction == "mean" else 1.0
    flags = is_unreduced, upstream_dtype is not None, loss_dtype is not None, has_gradient
    rest = size, *map(float, parameters), scale, base, target_dtype in _HARD, *flags, BLOCK
    kind = "binary", base, flags, dtype, target_dtype, loss_dtype, upstream_dtype, device, special(size)
    return Launch(_kernel, _num_programs(size, device), rest, kind, num_warps=4)


@triton.jit
def _kernel(
    scores, target, upstream, losses, gradient,
    size: tl.int64, tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2, scale,
    BASE: tl.constexpr, IS_HARD: tl.constexpr, IS_UNREDUCED: tl.constexpr, HAS_UPSTREAM: tl.constexpr,  # noqa: N803
    HAS_LOSS: tl.constexpr, HAS_GRADIENT: tl.constexpr, BLOCK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Losses, or the share of each program in their sum or mean, and upstream · gradient."""
    program = tl.program_id(0)
    sums = tl.zeros((BLOCK,), tl.float32)
    for first in range(program.to(tl.int64) * BLOCK, size, tl.num_programs(0) * BLOCK):
        place = first + tl.arange(0, BLOCK)
        mask = place < size
        h = tl.load(scores + place, mask=mask, other=0.0).to(tl.float32)
        t = tl.load(target + place, mask=mask, other=0)
        if IS_HARD:
            label = t.to(tl.int64)
            is_positive = label != 0
            is_invalid = (label != 0) & (label != 1)
            margin = tl.where(is_positive, h, -h)
            loss, slope = surrogate(margin, 0.0, tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE)
            slope = tl.where(is_positive, -slope, slope)
        else:
            p = t.to(tl.float32)
            # `_TOLERANCE` of losses/_binary.py. Not in the range is NaN as well.
            is_invalid = ((p >= -0.01) & (p <= 1.01)) == 0
            value_1, slope_1 = surrogate(h, 0.0, tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE)
            value_0, slope_0 = surrogate(-h, 0.0, tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE)
            # 0 · inf is 0.
            loss = tl.where(p == 0.0, 0.0, p * value_1) + tl.where(p == 1.0, 0.0, (1.0 - p) * value_0)
            slope = tl.where(p == 1.0, 0.0, (1.0 - p) * slope_0) - tl.where(p == 0.0, 0.0, p * slope_1)
        if HAS_LOSS:
            # Infinite scores have no finite loss either.
            loss = tl.where(is_invalid, float("nan"), loss + h * 0.0)
            if IS_UNREDUCED:
                tl.store(losses + place, loss.to(losses.dtype.element_ty), mask=mask)
            else:
                sums += tl.where(mask, loss, 0.0)
        if HAS_GRADIENT:
            weight = tl.zeros((BLOCK,), tl.float32) + scale
            if HAS_UPSTREAM:
                weight *= tl.load(upstream + (place if IS_UNREDUCED else place * 0), mask=mask, other=0.0).to(tl.float32)
            slope = tl.where(weight == 0.0, 0.0, slope * weight)
            slope = tl.where(is_invalid, float("nan"), slope)
            tl.store(gradient + place, slope.to(gradient.dtype.element_ty), mask=mask)
    if HAS_LOSS and not IS_UNREDUCED:
        tl.store(losses + program, (tl.sum(sums, 0) * scale).to(losses.dtype.element_ty))
