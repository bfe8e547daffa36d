"""Binary losses of any shape: p·t·φ(h) + (1 − t)·φ(−h), with p the weight of positives."""

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
    """The loss of every element, in float32 for half-precision scores.

    Args:
        surrogate: φ.
        scores: h, any shape.
        positive: t, same shape: booleans, or the probability of the positive class.
        pos_weight: p, same shape (an expanded view will do), or None for 1.
        backend: "auto", "reference" or "eager".
    """
    chosen = resolve_backend(backend, [scores], [positive, pos_weight], can_fuse=False)
    if chosen == "reference" or scores.dim() == 0:
        return _reference(surrogate, scores.to(compute_dtype(scores)), positive, pos_weight)
    losses: Tensor = _BlockedElements.apply(scores, surrogate, positive, pos_weight)  # type: ignore[no-untyped-call]
    return losses


def _reference(surrogate: Surrogate, scores: Tensor, positive: Tensor, pos_weight: Tensor | None) -> Tensor:
    if positive.dtype == torch.bool:
        # A sure label needs one evaluation of φ and not two.
        value = surrogate._value(torch.where(positive, scores, -scores))
        return value if pos_weight is None else value * torch.where(positive, pos_weight, torch.ones_like(pos_weight))
    share = positive.to(scores.dtype)
    weighted = share if pos_weight is None else share * pos_weight
    return _product(weighted, surrogate._value, scores) + _product(1 - share, surrogate._value, -scores)


def _product(share: Tensor, function: Callable[[Tensor], Tensor], margin: Tensor) -> Tensor:
    """share · function(margin), with 0 · inf = 0: a label that is surely not there costs nothing."""
    if not is_differentiated(share):
        return share * function(margin.masked_fill(share == 0, 0.0))
    value = function(margin)  # The gradient of the share, so that its argument has to stay.
    return share * value.masked_fill((share == 0) & value.isinf(), 0.0)


def _gradient(surrogate: Surrogate, scores: Tensor, positive: Tensor, pos_weight: Tensor | None) -> Tensor:
    if positive.dtype == torch.bool:
        slope = surrogate._derivative(torch.where(positive, scores, -scores))
        signed = torch.where(positive, slope, -slope)
        return signed if pos_weight is None else signed * torch.where(positive, pos_weight, torch.ones_like(pos_weight))
    share = positive.to(scores.dtype)
    weighted = share if pos_weight is None else share * pos_weight
    return _product(weighted, surrogate._derivative, scores) - _product(1 - share, surrogate._derivative, -scores)


class _BlockedElements(torch.autograd.Function):
    """`_reference` block by block along the first dimension; keeps its inputs alone and recomputes in the backward pass."""

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
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        scores, positive, pos_weight = ctx.saved_tensors
        if torch.is_grad_enabled():
            losses = _reference(ctx.surrogate, scores.to(upstream.dtype), positive, pos_weight)
            (gradient,) = torch.autograd.grad(losses, scores, upstream, create_graph=True)
            return gradient, None, None, None
        gradient = torch.empty_like(scores, memory_format=torch.contiguous_format)
        for block in row_blocks(scores, math.prod(scores.shape[1:])):
            weight = None if pos_weight is None else pos_weight[block]
            slope = _gradient(ctx.surrogate, scores[block].to(upstream.dtype), positive[block], weight)
            # An element that counts for nothing has no gradient, even where its slope is infinite.
            gradient[block] = slope.mul_(upstream[block]).masked_fill_(upstream[block] == 0, 0.0)
        return gradient, None, None, None
