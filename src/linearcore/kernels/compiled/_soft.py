"""Multi-class losses with a weight for each class, in one pass over the scores (`soft.c`)."""

import struct
from functools import lru_cache

import torch
from torch import Tensor

from linearcore.kernels._loss_code import LossCode
from linearcore.kernels.compiled._gradient import Reference, with_gradient
from linearcore.kernels.compiled._library import entry

_DTYPES = {torch.float32: 0, torch.float64: 1}
_LOSS = struct.Struct("=qdddddddqq")
_CALL = struct.Struct("=QQqqqQQq")


@lru_cache(maxsize=256)
def _packed_loss(code: LossCode) -> bytes:
    return _LOSS.pack(*code.surrogate, code.form, code.is_mean)


def compiled_soft_rows(code: LossCode, scores: Tensor, weights: Tensor, reference: Reference) -> Tensor | None:
    """Returns the losses Σ_y w_y ℓ(s, y), (N,), or None if a score or a loss is infinite or NaN.

    Args:
        code: the loss, without a sphere or a scale.
        scores: (N, C) in float32 or float64, with `can_compile(scores)`.
        weights: (N, C), w, without a gradient.
        reference: the same losses with plain autograd, for second derivatives.
    """
    function, packed = entry("lc_soft"), _packed_loss(code)
    if function is None:
        return None

    def compute(scores: Tensor, weights: Tensor, gradient: Tensor | None) -> Tensor | None:
        losses = scores.new_empty(scores.shape[0])
        outputs = losses.data_ptr(), 0 if gradient is None else gradient.data_ptr()
        call = _CALL.pack(
            scores.data_ptr(), weights.data_ptr(), *scores.shape, _DTYPES[scores.dtype], *outputs, torch.get_num_threads()
        )
        return losses if function(packed + call) == 0 else None

    return with_gradient(compute, reference, scores.contiguous(), weights.to(scores.dtype).contiguous())
