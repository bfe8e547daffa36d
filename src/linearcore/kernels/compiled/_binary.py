"""Binary losses in one pass over the scores (`binary.c`)."""

import struct

import torch
from torch import Tensor

from linearcore._torch import is_plain
from linearcore.kernels.compiled._gradient import Reference, with_gradient
from linearcore.kernels.compiled._library import entry
from linearcore.surrogates import KernelIdentity

_DTYPES = {torch.float32: 0, torch.float64: 1}
_TARGET_KINDS = {torch.bool: 1, torch.uint8: 1, torch.int64: 2}
_CALL = struct.Struct("=qdddddddQQqqqdQQq")


def compiled_binary_loss(
    identity: KernelIdentity, scores: Tensor, target: Tensor, reduction: str, reference: Reference
) -> Tensor | None:
    """Returns the reduced loss, a scalar, or None if another backend has to compute it, as `compiled_loss` does.

    Args:
        identity: φ.
        scores: any shape, float32 or float64.
        target: same shape: 0 or 1 as bool, uint8 or int64, or probabilities in the dtype of the scores.
        reduction: "sum" or "mean".
        reference: the same loss with plain autograd, for second derivatives.
    """
    if (
        reduction not in ("sum", "mean")
        or scores.dtype not in _DTYPES
        or not is_plain(scores)
        or scores.shape != target.shape
        or scores.numel() == 0
    ):
        return None
    kind = 0 if target.dtype == scores.dtype else _TARGET_KINDS.get(target.dtype)
    if kind is None or target.requires_grad or not (target.is_cpu and target.is_contiguous() and scores.is_contiguous()):
        return None
    function = entry("lc_binary")
    if function is None:
        return None
    scale = 1 / scores.numel() if reduction == "mean" else 1.0

    def compute(scores: Tensor, target: Tensor, gradient: Tensor | None) -> Tensor | None:
        loss = scores.new_empty(())
        pointers = scores.data_ptr(), target.data_ptr()
        outputs = loss.data_ptr(), 0 if gradient is None else gradient.data_ptr()
        sizes = kind, scores.numel(), _DTYPES[scores.dtype]
        status = function(_CALL.pack(*identity, *pointers, *sizes, scale, *outputs, torch.get_num_threads()))
        return loss if status == 0 else None

    return with_gradient(compute, reference, scores, target)
