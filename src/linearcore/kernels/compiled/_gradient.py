"""Autograd for kernels that compute a loss and its gradient in one pass."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

#: Kernel: losses of scores and target, or None if it does not support their values; writes the gradient if given.
Kernel = Callable[[Tensor, Tensor, Tensor | None], Tensor | None]
#: The same losses with plain autograd, for second derivatives.
Reference = Callable[[Tensor, Tensor], Tensor]


class _Unsupported(Exception):  # noqa: N818  # Never leaves this module.
    """The kernel returned None."""


def with_gradient(
    kernel: Kernel, reference: Reference, scores: Tensor, target: Tensor, weights: Sequence[Tensor | None] = ()
) -> Tensor | None:
    """Returns the losses, differentiable in `scores`, or None if the kernel does not support the values.

    The losses are a scalar, or one for each row of the scores. If a gradient is needed, it is computed in the forward pass
    and kept for the backward pass. `weights` are tensors that kernel and reference read as well: a second backward pass
    raises if they have changed.
    """
    if not (scores.requires_grad and torch.is_grad_enabled()):
        return kernel(scores, target, None)
    try:
        losses: Tensor = _WithGradient.apply(scores, target, kernel, reference, *weights)  # type: ignore[no-untyped-call]
    except _Unsupported:
        return None
    return losses


class _WithGradient(torch.autograd.Function):
    """Runs the kernel once, forward. Double backward uses the reference."""

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, target: Tensor, kernel: Kernel, reference: Reference, *weights: Tensor | None
    ) -> Tensor:
        ctx.gradient = torch.empty_like(scores)
        losses = kernel(scores, target, ctx.gradient)
        if losses is None:
            raise _Unsupported
        ctx.save_for_backward(scores, target, *weights)
        ctx.kernel, ctx.reference = kernel, reference
        return losses

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        # The gradient is released, so that autograd need not copy it; a second backward pass computes it again.
        gradient, ctx.gradient = ctx.gradient, None
        rest = [None] * (len(ctx.needs_input_grad) - 1)
        if torch.is_grad_enabled():
            scores, target, *_ = ctx.saved_tensors
            (gradient,) = torch.autograd.grad(ctx.reference(scores, target), scores, grad_output, create_graph=True)
            return gradient, *rest
        if gradient is None:
            scores, target, *_ = ctx.saved_tensors
            gradient = torch.empty_like(scores)
            if ctx.kernel(scores, target, gradient) is None:
                raise RuntimeError("the scores or targets of a loss were changed before a second backward pass")
        if grad_output.dim() > 0:
            gradient.mul_(grad_output.unsqueeze(-1))
        elif grad_output.item() != 1:
            gradient.mul_(grad_output)
        return gradient, *rest
