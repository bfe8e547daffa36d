"""Losses of the positions of a chain, each over all changes of its tag (`local.c`)."""

import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from linearcore.kernels._backend import compute_gradients
from linearcore.kernels._loss_code import LossCode
from linearcore.kernels.compiled._chain import ChainArguments, NotCompiledError, call_kernel, can_compile_chain
from linearcore.kernels.compiled._dense import packed_loss
from linearcore.structures import Chain

#: Returns the losses (L, B) of emissions and chain with plain autograd, for second derivatives.
Reference = Callable[[Tensor, Chain], Tensor]
#: The loss, and the weight of the loss of the emissions alone.
_Loss: TypeAlias = tuple[LossCode, float]
#: The gradients of the emissions in the two losses.
_Gradients: TypeAlias = tuple[Tensor | None, Tensor | None]

#: Tags are 32-bit in the kernel.
MAX_TAGS = 2**31 - 16
_CALL = struct.Struct("=d3Q2qQ2q7Q")


def can_compile_local(emissions: Tensor, chain: Sequence[Tensor]) -> bool:
    """Whether `compiled_local` supports these scores: float32 or float64, and two tags or more."""
    return emissions.shape[-1] > 1 and can_compile_chain(emissions, chain, MAX_TAGS)


def compiled_local(
    code: LossCode, emissions: Tensor, chain: Chain, tags: Tensor, mask: Tensor | None, reference: Reference,
    unary: float = 0.0,
) -> Tensor | None:  # fmt: skip
    """Returns the loss (L, B) at each position, over all changes of its tag; 0 where masked.

        (1 − w)·form(local scores) + w·form(emissions)

    None if a true tag is forbidden, or a loss is infinite or NaN: the caller then uses another backend.

    Args:
        code: the loss.
        emissions: (L, B, |Y|), with `can_compile_local(emissions, chain)`; arbitrary where masked.
        chain: start, transition and end scores; −inf marks forbidden entries.
        tags: (L, B) int64, arbitrary where masked.
        mask: (L, B) booleans; None if no position is masked.
        reference: the same losses with plain autograd.
        unary: w.

    Time O(L·B·|Y|), and O(|Y|²) for the gradient of the transitions. Memory: the gradient of the emissions, which is
    computed in the forward pass and kept, with w one for each loss; with fewer tags than positions also one transposed copy
    of the transitions.
    """
    arguments = ChainArguments(emissions, chain, mask, tags)
    try:
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (emissions, *chain)):
            losses: Tensor = _LocalLosses.apply(emissions, *chain, (code, unary), arguments, reference)  # type: ignore[no-untyped-call]
            return losses
        return _compute((code, unary), arguments, (None, None))
    except NotCompiledError:
        return None


def _compute(loss: _Loss, arguments: ChainArguments, gradients: _Gradients) -> Tensor:
    (code, unary), gradient = loss, gradients[0]
    losses = arguments.emissions.new_empty(arguments.emissions.shape[:2])
    strides = (0, 0) if gradient is None else gradient.stride()[:2]
    addresses = (0 if part is None else part.data_ptr() for part in gradients)
    packed = _CALL.pack(unary, losses.data_ptr(), *addresses, *strides, *(0,) * 10)
    call_kernel("lc_local", packed_loss(code) + arguments.packed + packed)
    return losses


def _empty_gradients(loss: _Loss, emissions: Tensor) -> _Gradients:
    return torch.empty_like(emissions), torch.empty_like(emissions) if loss[1] else None


class _LocalLosses(torch.autograd.Function):
    """Computes the gradients of the emissions in the forward pass. Double backward uses the reference."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, start: Tensor, transitions: Tensor, end: Tensor,
        loss: _Loss, arguments: ChainArguments, reference: Reference,
    ) -> Tensor:  # fmt: skip
        ctx.gradients = _empty_gradients(loss, arguments.emissions)
        losses = _compute(loss, arguments, ctx.gradients)
        # Tags and mask too: autograd then refuses a backward pass after they were overwritten.
        ctx.save_for_backward(emissions, start, transitions, end, arguments.tags, arguments.mask)
        ctx.loss, ctx.arguments, ctx.reference = loss, arguments, reference
        return losses

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        (*inputs, _, _), needs_grad = ctx.saved_tensors, ctx.needs_input_grad[:4]
        if torch.is_grad_enabled():
            losses = ctx.reference(inputs[0], Chain(*inputs[1:]))
            return *compute_gradients(losses, inputs, grad_output, needs_grad, create_graph=True), None, None, None
        # The gradients are released, so that autograd need not copy them; a second backward pass computes them again.
        gradients, ctx.gradients = ctx.gradients, None
        if gradients is None:
            gradients = _empty_gradients(ctx.loss, ctx.arguments.emissions)
            _compute(ctx.loss, ctx.arguments, gradients)
        gradient, unary_gradient = gradients
        start = transitions = end = None
        if any(needs_grad[1:]):
            start, end = inputs[1].new_zeros(inputs[1].shape), inputs[3].new_zeros(inputs[3].shape)
            transitions = torch.zeros_like(inputs[2], memory_format=torch.contiguous_format)
        call_kernel(
            "lc_local_gradient",
            packed_loss(ctx.loss[0])
            + ctx.arguments.packed
            + _CALL.pack(
                ctx.loss[1],
                0,
                gradient.data_ptr(),
                0 if unary_gradient is None else unary_gradient.data_ptr(),
                *gradient.stride()[:2],
                grad_output.data_ptr(),
                *grad_output.stride(),
                *(0 if part is None else part.data_ptr() for part in (start, transitions, end)),
                *(0,) * 4,
            ),
        )
        return gradient, start, transitions, end, None, None, None
