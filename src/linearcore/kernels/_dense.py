"""Losses in one pass over the scores: C on a CPU, Triton on a GPU."""

import os
from collections.abc import Callable

from torch import Tensor

from linearcore.kernels._fused import fused_kernels_for
from linearcore.kernels._loss_code import LossCode
from linearcore.kernels.compiled import compiled_binary_loss, compiled_loss
from linearcore.surrogates import KernelIdentity

#: The same loss with plain autograd, for second derivatives.
Reference = Callable[[Tensor, Tensor], Tensor]


def dense_loss(
    code: LossCode | None, scores: Tensor, target: Tensor, ignore_index: int, reduction: str, reference: Reference,
    weights: tuple[Tensor | None, Tensor | None] = (None, None), label_smoothing: float = 0.0,
) -> Tensor | None:  # fmt: skip
    """Returns the reduced loss, in the dtype of F.cross_entropy, or None if another backend has to compute it.

    The cases for other backends, which have the rules and messages for them: arguments that `multiclass_loss` refuses,
    scores that are not (N, C), empty batches, and what the kernels do not support.

    Args:
        code: the loss; None if there is no kernel for it.
        scores: (N, C).
        target: (N,) class indices, or (N, C) probabilities.
        ignore_index: label of rows without loss.
        reduction: "none", "sum" or "mean".
        reference: the same loss with plain autograd, for second derivatives.
        weights: (C,) of the classes and (N,) of the rows, or None for ones.
        label_smoothing: as in `multiclass_loss`.

    If gradients are needed they are computed in the same pass and kept, as large as the scores, for the backward pass.
    """
    if code is None or type(scores) is not Tensor or type(target) is not Tensor or type(ignore_index) is not int:
        return None
    if not -(2**63) <= ignore_index < 2**63:  # The kernels have it as a 64-bit integer.
        return None
    if scores.is_cpu and "TRITON_INTERPRET" not in os.environ:
        return compiled_loss(code, scores, target, ignore_index, reduction, reference, weights, label_smoothing)
    is_plain = weights[0] is None and weights[1] is None and label_smoothing == 0.0
    fused = fused_kernels_for(scores) if is_plain else None
    return None if fused is None else fused.fused_loss(code, scores, target, ignore_index, reduction, reference)


def binary_call(
    identity: KernelIdentity | None, scores: Tensor, target: Tensor, reduction: str, reference: Reference
) -> Tensor | None:
    """Returns the binary loss, reduced, or None if another backend has to compute it, as `dense_loss` does.

    Args:
        identity: φ; None if there is no kernel for it.
        scores: any shape.
        target: same shape: 0 or 1 as bool, uint8 or int64, or probabilities.
        reduction: "none", "sum" or "mean".
        reference: the same loss with plain autograd, for second derivatives.
    """
    if identity is None or type(scores) is not Tensor or type(target) is not Tensor:
        return None
    if scores.is_cpu and "TRITON_INTERPRET" not in os.environ:
        return compiled_binary_loss(identity, scores, target, reduction, reference)
    fused = fused_kernels_for(scores)
    return None if fused is None else fused.fused_binary_loss(identity, scores, target, reduction, reference)
