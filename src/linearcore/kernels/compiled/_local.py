"""Losses of the positions of a chain, each over all changes of its tag (`local.c`)."""

import struct
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from linearcore.kernels._backend import compute_gradients
from linearcore.kernels._loss_code import LossCode
from linearcore.kernels.compiled._chain import ChainArguments, NotCompiledError, call_kernel, can_compile_chain
from linearcore.kernels.compiled._dense import packed_loss
from linearcore.structures import Chain

#: Returns the losses (L, B) of emissions and chain with plain autograd, for second derivatives.
Reference = Callable[[Tensor, Chain], Tensor]

#: Tags are 32-bit in the kernel.
MAX_TAGS = 2**31 - 16
_CALL = struct.Struct("=2Q2qQ2q7Q")


def can_compile_local(emissions: Tensor, chain: Chain) -> bool:
    """Whether `compiled_local` supports these scores: float32 or float64, and two tags or more."""
    return emissions.shape[-1] > 1 and can_compile_chain(emissions, chain, MAX_TAGS)


def compiled_local(
    code: LossCode, emissions: Tensor, chain: Chain, tags: Tensor, mask: Tensor | None, reference: Reference
) -> Tensor | None:
    """Returns the loss (L, B) at each position, over all changes of its tag; 0 where masked.

    None if a true tag is forbidden, or a loss is infinite or NaN: the caller then uses another backend.

    Args:
        code: the loss.
        emissions: (L, B, |Y|), with `can_compile_local(emissions, chain)`; arbitrary where masked.
        chain: start, transition and end scores; −inf marks forbidden entries.
        tags: (L, B) int64, arbitrary where masked.
        mask: (L, B) booleans; None if no position is masked.
        reference: the same losses with plain autograd.

    Time O(L·B·|Y|), and O(|Y|²) for the gradient of the transitions. Memory: the gradient of the emissions, which is
    computed in the forward pass and kept; with fewer tags than positions also one transposed copy of the transitions.
    """
    arguments = ChainArguments(emissions, chain, mask, tags)
    try:
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (emissions, *chain)):
            losses: Tensor = _LocalLosses.apply(emissions, *chain, code, arguments, reference)  # type: ignore[no-untyped-call]
            return losses
        return _compute(code, arguments, None)
    except NotCompiledError:
        return None


def _compute(code: LossCode, arguments: ChainArguments, gradient: Tensor | None) -> Tensor:
    losses = arguments.emissions.new_empty(arguments.emissions.shape[:2])
    strides = (0, 0) if gradient is None else gradient.stride()[:2]
    addresses = losses.data_ptr(), 0 if gradient is None else gradient.data_ptr(), *strides
    call_kernel("lc_local", packed_loss(code) + arguments.packed + _CALL.pack(*addresses, *(0,) * 10))
    return losses


class _LocalLosses(torch.autograd.Function):
    """Computes the gradient of the emissions in the forward pass. Double backward uses the reference."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, start: Tensor, transitions: Tensor, end: Tensor,
        code: LossCode, arguments: ChainArguments, reference: Reference,
    ) -> Tensor:  # fmt: skip
        ctx.gradient = torch.empty_like(arguments.emissions)
        losses = _compute(code, arguments, ctx.gradient)
        # Tags and mask too: autograd then refuses a backward pass after they were overwritten.
        ctx.save_for_backward(emissions, start, transitions, end, arguments.tags, arguments.mask)
        ctx.code, ctx.arguments, ctx.reference = code, arguments, reference
        return losses

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        (*inputs, _, _), needs_grad = ctx.saved_tensors, ctx.needs_input_grad[:4]
        if torch.is_grad_enabled():
            losses = ctx.reference(inputs[0], Chain(*inputs[1:]))
            return *compute_gradients(losses, inputs, grad_output, needs_grad, create_graph=True), None, None, None
        # The gradient is released, so that autograd need not copy it; a second backward pass computes it again.
        gradient, ctx.gradient = ctx.gradient, None
        if gradient is None:
            gradient = torch.empty_like(ctx.arguments.emissions)
            _compute(ctx.code, ctx.arguments, gradient)
        start = transitions = end = None
        if any(needs_grad[1:]):
            start, end = inputs[1].new_zeros(inputs[1].shape), inputs[3].new_zeros(inputs[3].shape)
            transitions = torch.zeros_like(inputs[2], memory_format=torch.contiguous_format)
        call_kernel(
            "lc_local_gradient",
            packed_loss(ctx.code)
            + ctx.arguments.packed
            + _CALL.pack(
                0,
                gradient.data_ptr(),
                *gradient.stride()[:2],
                grad_output.data_ptr(),
                *grad_output.stride(),
                *(0 if part is None else part.data_ptr() for part in (start, transitions, end)),
                *(0,) * 4,
            ),
        )
        return gradient, start, transitions, end, None, None, None
