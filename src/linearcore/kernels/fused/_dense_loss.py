"""Dense losses with gradients: the whole batch in a plain call, or the losses of rows."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from linearcore._torch import is_ordinary
from linearcore._typing import result_dtype
from linearcore.kernels._loss_code import LossCode
from linearcore.kernels.fused._dense import Dense, gradient_of, losses_and_gradient, supports

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
#: The same losses with plain autograd, for second derivatives.
Reference = Callable[[Tensor, Tensor], Tensor]


def fused_loss(
    code: LossCode, scores: Tensor, target: Tensor, ignore_index: int, reduction: str, reference: Reference
) -> Tensor | None:
    """Returns the loss, or None if another backend has to compute it, as `compiled_loss` does.

    Labels out of range and infinite scores have the results of `multiclass_loss`, without a synchronisation.

    Args:
        code: the loss.
        scores: (N, C).
        target: (N,) class indices.
        ignore_index: label of rows without loss; a 64-bit integer.
        reduction: "none", "sum" or "mean".
        reference: the same loss with plain autograd, for second derivatives.
    """
    if scores.dtype not in DTYPES or scores.dim() != 2 or reduction not in ("mean", "sum", "none"):
        return None
    if not is_ordinary(scores) or scores.numel() == 0 or not supports(code, scores.shape[1]):
        return None
    if target.dtype != torch.int64 or target.shape != scores.shape[:1] or target.device != scores.device:
        return None
    if scores.is_cpu and not _is_valid(target, scores.shape[1], ignore_index):  # In the interpreter. It is an error there.
        return None
    return _apply(Dense(code, ignore_index, reduction, result_dtype(scores)), scores, target, reference)


def fused_rows(code: LossCode, scores: Tensor, target: Tensor, margin: Tensor | None, reference: Reference) -> Tensor:
    """Returns the losses (N,) in float32.

    Args:
        code: the loss, with `supports(code, C)`.
        scores: (N, C), not empty.
        target: (N,) int64 in [0, C).
        margin: (C,) class margins, or None.
        reference: the same losses with plain autograd, for second derivatives.
    """
    return _apply(_rows(code, margin), scores, target, reference)


def rows_forward(code: LossCode, scores: Tensor, target: Tensor, margin: Tensor | None) -> tuple[Tensor, Tensor]:
    """Returns the losses (N,) and statistics (3, N) in float32, without a graph; arguments as in `fused_rows`."""
    losses, statistics = losses_and_gradient(_rows(code, margin), scores, target, needs_gradient=True)
    return losses, losses.new_empty(3, len(losses)) if statistics is None else statistics


def rows_backward(
    code: LossCode, scores: Tensor, target: Tensor, margin: Tensor | None, statistics: Tensor, grad_losses: Tensor
) -> Tensor:
    """Returns the gradient (N, C) of `rows_forward`."""
    return gradient_of(_rows(code, margin), scores, target, statistics, grad_losses)


def _rows(code: LossCode, margin: Tensor | None) -> Dense:
    margin = None if margin is None else margin.to(torch.float32).contiguous()
    return Dense(code, -1, "none", torch.float32, margin)


def _apply(dense: Dense, scores: Tensor, target: Tensor, reference: Reference) -> Tensor:
    if not (scores.requires_grad and torch.is_grad_enabled()):
        return losses_and_gradient(dense, scores, target, needs_gradient=False)[0]
    losses: Tensor = _DenseLoss.apply(scores, target, dense, reference)  # type: ignore[no-untyped-call]
    return losses


def _is_valid(target: Tensor, num_classes: int, ignore_index: int) -> bool:
    return bool(((target == ignore_index) | ((target >= 0) & (target < num_classes))).all())


class _DenseLoss(torch.autograd.Function):
    """Double backward uses the reference."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, target: Tensor, dense: Dense, reference: Reference) -> Tensor:
        losses, ctx.kept = losses_and_gradient(dense, scores, target, needs_gradient=True)
        ctx.save_for_backward(scores, target)
        ctx.dense, ctx.reference = dense, reference
        return losses

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        scores, target = ctx.saved_tensors
        # A gradient is released, so that autograd need not copy it; a second backward pass computes it again.
        kept, ctx.kept = ctx.kept, None
        if torch.is_grad_enabled():
            (gradient,) = torch.autograd.grad(ctx.reference(scores, target), scores, grad_output, create_graph=True)
            return gradient, None, None, None
        if kept is None:
            kept = losses_and_gradient(ctx.dense, scores, target, needs_gradient=True)[1]
        return gradient_of(ctx.dense, scores, target, kept, grad_output), None, None, None
