"""Dense multi-class losses with index targets, in one pass over the scores (`dense.c`)."""

import struct
from functools import lru_cache

import torch
from torch import Tensor

from linearcore._torch import is_plain
from linearcore.kernels._loss_code import LossCode
from linearcore.kernels.compiled._gradient import Reference, with_gradient
from linearcore.kernels.compiled._library import entry

_DTYPES = {torch.float32: 0, torch.float64: 1, torch.bfloat16: 2}
_REDUCTIONS = {"none": 0, "sum": 1, "mean": 2}
_LOSS = struct.Struct("=qdddddddqqdd")
_CALL = struct.Struct("=QQqqqqqQQq")
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
    code: LossCode, scores: Tensor, target: Tensor, ignore_index: int, reduction: str, reference: Reference
) -> Tensor | None:
    """Returns the reduced loss, a scalar in the dtype of `scores`, or None if another backend has to compute it.

    The cases for other backends, which have the rules and messages for them: arguments that `multiclass_loss` refuses,
    targets that are not class indices (N,), strided scores, infinite or NaN scores, labels out of range, and batches in
    which all rows are ignored.

    Args:
        code: the loss.
        scores: (N, C).
        target: (N,) class indices.
        ignore_index: label of rows without loss; a 64-bit integer.
        reduction: "sum" or "mean".
        reference: the same loss with plain autograd, for second derivatives.

    If gradients are needed they are computed in the same pass and kept, as large as the scores, for the backward pass.
    """
    if reduction not in ("sum", "mean") or not can_compile(scores) or not scores.is_contiguous():
        return None
    if target.dtype != torch.int64 or target.shape != scores.shape[:1] or not (target.is_cpu and target.is_contiguous()):
        return None
    if scores.dtype == torch.bfloat16 and torch.is_autocast_enabled("cpu"):
        return None  # The result would be float32.
    return _apply(code, scores, target, ignore_index, reduction, reference)


def compiled_rows(code: LossCode, scores: Tensor, target: Tensor, reference: Reference) -> Tensor | None:
    """Returns the losses (N,), or None if a score or a loss is infinite or NaN.

    Args:
        code: the loss.
        scores: (N, C) in float32 or float64, with `can_compile(scores)`.
        target: (N,) int64 in [0, C).
        reference: the same losses with plain autograd, for second derivatives.
    """
    return _apply(code, scores.contiguous(), target.contiguous(), -1, "none", reference)


def _apply(
    code: LossCode, scores: Tensor, target: Tensor, ignore_index: int, reduction: str, reference: Reference
) -> Tensor | None:
    function, packed = entry("lc_dense"), packed_loss(code)
    if function is None:
        return None

    size = target.shape if reduction == "none" else ()
    options = *scores.shape, ignore_index, _DTYPES[scores.dtype], _REDUCTIONS[reduction]

    def compute(scores: Tensor, target: Tensor, gradient: Tensor | None) -> Tensor | None:
        losses = scores.new_empty(size)
        outputs = losses.data_ptr(), 0 if gradient is None else gradient.data_ptr()
        call = _CALL.pack(scores.data_ptr(), target.data_ptr(), *options, *outputs, torch.get_num_threads())
        return losses if function(packed + call) == 0 else None

    return with_gradient(compute, reference, scores, target)
