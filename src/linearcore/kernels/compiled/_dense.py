"""Dense multi-class losses with index targets, in one pass over the scores (`dense.c`)."""

import ctypes
import struct
from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from linearcore.kernels.compiled._library import library
from linearcore.surrogates import KernelIdentity

#: A loss function of scores and target with plain autograd, for second derivatives.
Reference = Callable[[Tensor, Tensor], Tensor]

_DTYPES = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2}
_REDUCTIONS = {"none": 0, "sum": 1, "mean": 2}
_LOSS = struct.Struct("=qdddddddqqdd")
_CALL = struct.Struct("=QQqqqqqQQq")
#: Class indices are 32-bit in the kernel.
_MAX_CLASSES = 2**31 - 16


class FormCode(IntEnum):
    """Forms that `dense.c` implements."""

    LOGODDS = 0
    PAIRWISE = 1
    CENTERED = 2


class LossCode(NamedTuple):
    """A loss that `dense.c` implements.

    Attributes:
        form: the form.
        is_mean: mean over competitors instead of their sum.
        surrogate: φ.
        radius: norm that the scores are normalised to (`losses.robust_loss`); 0 for none.
        scale: factor of the loss.
    """

    form: FormCode
    is_mean: bool
    surrogate: KernelIdentity
    radius: float = 0.0
    scale: float = 1.0


class NotCompiledError(Exception):
    """The kernel cannot compute this loss: a label is out of range, or a score or loss is infinite or NaN."""


@cache
def _packed(code: LossCode) -> bytes:
    return _LOSS.pack(*code.surrogate, code.form, code.is_mean, code.radius, code.scale)


@cache
def _function() -> Any:
    loaded = library()
    if loaded is None:
        return None
    function = loaded.lc_dense
    function.argtypes, function.restype = (ctypes.c_char_p,), ctypes.c_int64
    return function


def can_compile(scores: Tensor) -> bool:
    """Whether `dense.c` supports the dtype, layout and size of scores (N, C) on a CPU."""
    if scores.dtype not in _DTYPES or scores.dim() != 2 or not scores.is_cpu or not scores.is_contiguous():
        return False
    num_rows, num_classes = scores.shape
    return num_rows > 0 and 2 <= num_classes < _MAX_CLASSES and _function() is not None


def compiled_loss(
    code: LossCode, scores: Tensor, target: Tensor, ignore_index: int, reduction: str, reference: Reference
) -> Tensor | None:
    """Returns the reduced loss, a scalar in the dtype of `scores`, or with "none" the losses (N,).

    None if a label is out of range, a score or a loss is infinite or NaN, or all rows are ignored: the caller then uses
    another backend, which has the rules for these cases.

    Args:
        code: the loss.
        scores: (N, C), for which `can_compile` holds.
        target: (N,) int64, contiguous.
        ignore_index: label of rows without loss.
        reduction: "none" (float32 or float64 scores), "sum" or "mean".
        reference: the same loss with plain autograd, for second derivatives.

    If gradients are needed they are computed in the same pass and kept, as large as the scores, for the backward pass.
    """
    try:
        if scores.requires_grad and torch.is_grad_enabled():
            loss: Tensor = _DenseLoss.apply(scores, target, code, ignore_index, reduction, reference)  # type: ignore[no-untyped-call]
            return loss
        return _compute(code, scores, target, ignore_index, reduction, None)
    except NotCompiledError:
        return None


def compiled_rows(code: LossCode, scores: Tensor, target: Tensor, reference: Reference) -> Tensor | None:
    """`compiled_loss` with reduction "none", or None if `dense.c` does not support the scores; no row is ignored."""
    if scores.dtype == torch.bfloat16 or not can_compile(scores):
        return None
    return compiled_loss(code, scores, target.contiguous(), -1, "none", reference)


def _compute(
    code: LossCode, scores: Tensor, target: Tensor, ignore_index: int, reduction: str, gradient: Tensor | None
) -> Tensor:
    num_rows, num_classes = scores.shape
    losses = torch.empty((num_rows,) if reduction == "none" else (), dtype=scores.dtype)
    status = _function()(
        _packed(code)
        + _CALL.pack(
            scores.data_ptr(),
            target.data_ptr(),
            num_rows,
            num_classes,
            ignore_index,
            _DTYPES[scores.dtype],
            _REDUCTIONS[reduction],
            losses.data_ptr(),
            0 if gradient is None else gradient.data_ptr(),
            torch.get_num_threads(),
        )
    )
    if status != 0:
        raise NotCompiledError
    return losses


class _DenseLoss(torch.autograd.Function):
    """Computes the gradient in the forward pass. Double backward uses the reference implementation."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, target: Tensor, code: LossCode, ignore_index: int, reduction: str, reference: Reference
    ) -> Tensor:
        ctx.gradient = torch.empty_like(scores)
        loss = _compute(code, scores, target, ignore_index, reduction, ctx.gradient)
        ctx.save_for_backward(scores, target)
        ctx.arguments, ctx.reference = (code, ignore_index, reduction), reference
        return loss

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        scores, target = ctx.saved_tensors
        if torch.is_grad_enabled():
            (gradient,) = torch.autograd.grad(ctx.reference(scores, target), scores, grad_output, create_graph=True)
            return gradient, None, None, None, None, None
        # The gradient is released, so that autograd need not copy it; a second backward pass computes it again.
        gradient, ctx.gradient = ctx.gradient, None
        if gradient is None:
            gradient = torch.empty_like(scores)
            _compute(ctx.arguments[0], scores, target, *ctx.arguments[1:], gradient)
        if grad_output.dim() > 0:
            gradient.mul_(grad_output.unsqueeze(-1))
        elif grad_output.item() != 1:
            gradient.mul_(grad_output)
        return gradient, None, None, None, None, None
