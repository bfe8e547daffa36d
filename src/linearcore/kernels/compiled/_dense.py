"""Dense multi-class losses in one pass over the scores (`dense.c`)."""

import struct
from functools import lru_cache
from typing import TypeAlias

import torch
from torch import Tensor

from linearcore._torch import is_plain
from linearcore._typing import compute_dtype, result_dtype
from linearcore.kernels._blocks import CPU_BLOCK
from linearcore.kernels._loss_code import LossCode
from linearcore.kernels.compiled._gradient import Reference, with_gradient
from linearcore.kernels.compiled._library import entry

#: Weights of classes and of rows.
Weights: TypeAlias = tuple[Tensor | None, Tensor | None]
_HALF_DTYPES = (torch.float16, torch.bfloat16)
_DTYPES = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2}
_REDUCTIONS = {"none": 0, "sum": 1, "mean": 2}
_LOSS = struct.Struct("=qdddddddqqdd")
_CALL = struct.Struct("=QQQqqqqqQQqQQd")
#: Class indices are 32-bit in the kernel.
_MAX_CLASSES = 2**31 - 16


@lru_cache(maxsize=256)
def packed_loss(code: LossCode) -> bytes:
    return _LOSS.pack(*code.surrogate, code.form, code.is_mean, code.radius, code.scale)


def can_compile(scores: Tensor) -> bool:
    """Whether `dense.c` supports scores (N, C): floating point on a CPU, and no tracing, transform or forward mode."""
    if scores.dtype not in _DTYPES or scores.dim() != 2 or not is_plain(scores):
        return False
    num_rows, num_classes = scores.shape
    return num_rows > 0 and 2 <= num_classes < _MAX_CLASSES and entry("lc_dense") is not None


def compiled_loss(
    code: LossCode, scores: Tensor, target: Tensor, ignore_index: int, reduction: str, reference: Reference,
    weights: Weights = (None, None), label_smoothing: float = 0.0,
) -> Tensor | None:  # fmt: skip
    """Returns the reduced loss, a scalar in the dtype of F.cross_entropy, or None if another backend has to compute it.

    The cases for other backends, which have the rules and messages for them: arguments that `multiclass_loss` refuses,
    scores that are not (N, C), strided scores, infinite or NaN scores, labels out of range, batches in which all rows are
    ignored or have weight 0, and weights and probabilities that need a gradient.

    Args:
        code: the loss.
        scores: (N, C).
        target: (N,) class indices, or (N, C) probabilities.
        ignore_index: label of rows without loss; a 64-bit integer.
        reduction: "sum" or "mean".
        reference: the same loss with plain autograd, for second derivatives.
        weights: (C,) of the classes and (N,) of the rows, or None for ones.
        label_smoothing: as in `multiclass_loss`.

    If gradients are needed they are computed in the same pass and kept, as large as the scores, for the backward pass.
    """
    if _is_cast(scores):
        # Cast first, because a gradient in float16 could underflow before it is multiplied by the factor of a GradScaler.
        single = scores.to(torch.float32)
        loss = compiled_loss(code, single, target, ignore_index, reduction, reference, weights, label_smoothing)
        return None if loss is None else loss.to(result_dtype(scores))
    if reduction not in ("sum", "mean") or not can_compile(scores) or not scores.is_contiguous():
        return None
    if target.dtype != torch.int64:
        probabilities = _as_probabilities(target, scores) if ignore_index < 0 else None
        if probabilities is None:
            return None
        target = probabilities
    elif target.shape != scores.shape[:1] or not (target.is_cpu and target.is_contiguous()):
        return None
    if scores.dtype == torch.bfloat16 and torch.is_autocast_enabled("cpu"):
        return None  # The result would be float32.
    if label_smoothing != 0.0 and not (type(label_smoothing) is float and 0.0 < label_smoothing <= 1.0):
        return None
    if any(tensor is not None for tensor in weights):
        cast = _in_dtype_of_kernel(weights, scores)
        if cast is None:
            return None
        weights = cast
    return _apply(code, scores, target, ignore_index, reduction, reference, weights, label_smoothing)


def _is_cast(scores: Tensor) -> bool:
    """Whether to compute in a float32 copy: float16, and results in float32. Only if the copy is not larger than a block."""
    if scores.dtype not in _HALF_DTYPES or scores.numel() > CPU_BLOCK or not is_plain(scores):
        return False
    return scores.dtype == torch.float16 or torch.is_autocast_enabled("cpu")


def _in_dtype_of_kernel(weights: Weights, scores: Tensor) -> Weights | None:
    """Returns the weights as the kernel reads them, or None if they do not fit or need a gradient."""
    dtype = compute_dtype(scores)
    num_rows, num_classes = scores.shape
    for tensor, size in zip(weights, (num_classes, num_rows), strict=True):
        if tensor is not None and (not is_plain(tensor) or tensor.requires_grad or tensor.shape != (size,)):
            return None
    classes, rows = (None if tensor is None else tensor.to(dtype).contiguous() for tensor in weights)
    return classes, rows


def _as_probabilities(target: Tensor, scores: Tensor) -> Tensor | None:
    """Returns target probabilities as the kernel reads them, or None if they are none or need a gradient."""
    if not target.is_floating_point() or target.shape != scores.shape or target.requires_grad or not is_plain(target):
        return None
    return target.to(compute_dtype(scores)).contiguous()


def compiled_rows(code: LossCode, scores: Tensor, target: Tensor, reference: Reference) -> Tensor | None:
    """Returns the losses (N,), or None if a score or a loss is infinite or NaN.

    Args:
        code: the loss.
        scores: (N, C) in float32 or float64, with `can_compile(scores)`.
        target: (N,) int64 in [0, C), or (N, C): w for the losses Σ_y w_y ℓ(s, y).
        reference: the same losses with plain autograd, for second derivatives.
    """
    return _apply(code, scores.contiguous(), target.contiguous(), -1, "none", reference, (None, None), 0.0)


def _apply(
    code: LossCode, scores: Tensor, target: Tensor, ignore_index: int, reduction: str, reference: Reference,
    weights: Weights, label_smoothing: float,
) -> Tensor | None:  # fmt: skip
    function, packed = entry("lc_dense"), packed_loss(code)
    if function is None:
        return None

    size = scores.shape[:1] if reduction == "none" else ()
    options = *scores.shape, ignore_index, _DTYPES[scores.dtype], _REDUCTIONS[reduction]
    has_labels = target.dtype == torch.int64
    last = *(0 if tensor is None else tensor.data_ptr() for tensor in weights), label_smoothing

    def compute(scores: Tensor, target: Tensor, gradient: Tensor | None) -> Tensor | None:
        losses = scores.new_empty(size)
        outputs = losses.data_ptr(), 0 if gradient is None else gradient.data_ptr()
        targets = (target.data_ptr(), 0) if has_labels else (0, target.data_ptr())
        call = _CALL.pack(scores.data_ptr(), *targets, *options, *outputs, torch.get_num_threads(), *last)
        return losses if function(packed + call) == 0 else None

    return with_gradient(compute, reference, scores, target, weights)
