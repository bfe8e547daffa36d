"""Elementwise binary losses p·t·φ(h) + (1 − t)·φ(−h), with p the weight of positives."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from linearcore._typing import compute_dtype
from linearcore.kernels._backend import is_differentiated, resolve_backend
from linearcore.kernels._blocks import row_blocks
from linearcore.surrogates import Surrogate


def binary_elements(
    surrogate: Surrogate, scores: Tensor, positive: Tensor, pos_weight: Tensor | None, backend: str = "auto"
) -> Tensor:
    """Returns the loss of each element, in float32 for half-precision scores; NaN for infinite scores.

    Args:
        surrogate: φ.
        scores: h, any shape.
        positive: t, same shape: booleans, or probabilities of the positive class.
        pos_weight: p, same shape (may be an expanded view), or None for 1.
        backend: "auto", "reference" or "eager".
    """
    chosen = resolve_backend(backend, [scores], [positive, pos_weight], can_fuse=False)
    if chosen == "reference" or scores.dim() == 0:
        return _reference(surrogate, scores.to(compute_dtype(scores)), positive, pos_weight)
    losses: Tensor = _BlockedElements.apply(scores, surrogate, positive, pos_weight)  # type: ignore[no-untyped-call]
    return losses


def _reference(surrogate: Surrogate, scores: Tensor, positive: Tensor, pos_weight: Tensor | None) -> Tensor:
    # 0 · inf is NaN. Without it the loss would be finite where φ(∞) is.
    return _losses(surrogate, scores, positive, pos_weight).add(scores, alpha=0)


def _losses(surrogate: Surrogate, scores: Tensor, positive: Tensor, pos_weight: Tensor | None) -> Tensor:
    if positive.dtype == torch.bool:
        # A hard label needs only one evaluation of φ.
        value = surrogate._value(torch.where(positive, scores, -scores))
        return value if pos_weight is None else value * torch.where(positive, pos_weight, torch.ones_like(pos_weight))
    p_positive = positive.to(scores.dtype)
    weighted = p_positive if pos_weight is None else p_positive * pos_weight
    return _product(weighted, surrogate._value, scores) + _product(1 - p_positive, surrogate._value, -scores)


def _product(p_positive: Tensor, function: Callable[[Tensor], Tensor], margin: Tensor) -> Tensor:
    """Returns p_positive · function(margin), with 0 · inf = 0."""
    if not is_differentiated(p_positive):
        return p_positive * function(margin.masked_fill(p_positive == 0, 0.0))
    value = function(margin)  # The gradient of `p_positive` needs function(margin), so the margin is not masked.
    return p_positive * value.masked_fill((p_positive == 0) & value.isinf(), 0.0)


def _gradient(surrogate: Surrogate, scores: Tensor, positive: Tensor, pos_weight: Tensor | None) -> Tensor:
    if positive.dtype == torch.bool:
        slope = surrogate._derivative(torch.where(positive, scores, -scores))
        signed = torch.where(positive, slope, -slope)
        return signed if pos_weight is None else signed * torch.where(positive, pos_weight, torch.ones_like(pos_weight))
    p_positive = positive.to(scores.dtype)
    weighted = p_positive if pos_weight is None else p_positive * pos_weight
    return _product(weighted, surrogate._derivative, scores) - _product(1 - p_positive, surrogate._derivative, -scores)


class _BlockedElements(torch.autograd.Function):
    """`_reference` in blocks along the first dimension; saves only the inputs and recomputes in the backward pass."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, surrogate: Surrogate, positive: Tensor, pos_weight: Tensor | None) -> Tensor:
        ctx.surrogate = surrogate
        ctx.save_for_backward(scores, positive, pos_weight)
        losses = torch.empty(scores.shape, dtype=compute_dtype(scores), device=scores.device)
        for block in row_blocks(scores, math.prod(scores.shape[1:])):
            weight = None if pos_weight is None else pos_weight[block]
            losses[block] = _reference(surrogate, scores[block].to(losses.dtype), positive[block], weight)
        return losses

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        scores, positive, pos_weight = ctx.saved_tensors
        if torch.is_grad_enabled():
            losses = _reference(ctx.surrogate, scores.to(grad_output.dtype), positive, pos_weight)
            (gradient,) = torch.autograd.grad(losses, scores, grad_output, create_graph=True)
            return gradient, None, None, None
        gradient = torch.empty_like(scores, memory_format=torch.contiguous_format)
        for block in row_blocks(scores, math.prod(scores.shape[1:])):
            weight = None if pos_weight is None else pos_weight[block]
            slope = _gradient(ctx.surrogate, scores[block].to(grad_output.dtype), positive[block], weight)
            # Avoids 0 · inf = NaN for elements with grad_output 0.
            gradient[block] = slope.mul_(grad_output[block]).masked_fill_(grad_output[block] == 0, 0.0)
        return gradient, None, None, None
