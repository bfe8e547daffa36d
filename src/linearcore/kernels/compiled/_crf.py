"""Log-partition function and negative log-likelihood of a linear-chain CRF (`crf.c`)."""

import struct
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from linearcore.kernels._backend import compute_gradients
from linearcore.kernels.compiled._chain import ChainArguments, NotCompiledError, call_kernel, can_compile_chain
from linearcore.structures import Chain

#: Returns the values (B,) of emissions and chain with plain autograd, for second derivatives.
Reference = Callable[[Tensor, Chain], Tensor]

#: With more tags, matrix products over the batch are faster (measured with 100 positions and 8 sequences).
MAX_TAGS = 256
_CALL = struct.Struct("=7Q2q3Q")
_NONE = (0,) * 10


def can_compile_crf(emissions: Tensor, chain: Chain) -> bool:
    """Whether `compiled_crf` supports these scores: float32 or float64, and 2 to 256 tags."""
    return emissions.shape[-1] > 1 and can_compile_chain(emissions, chain, MAX_TAGS)


def compiled_crf(
    emissions: Tensor, chain: Chain, mask: Tensor | None, tags: Tensor | None, reference: Reference
) -> Tensor | None:
    """Returns log Z (B,), or with `tags` log Z − h(x, tags); 0 for an empty sequence.

    None if underflow is possible, if a sequence has no allowed tags or its tags are forbidden, and for infinite or NaN
    scores: the caller then uses another backend.

    Args:
        emissions: (L, B, |Y|), with `can_compile_crf(emissions, chain)`.
        chain: start, transition and end scores; −inf marks forbidden entries.
        mask: (L, B) booleans; None if no position is masked.
        tags: (L, B) int64, arbitrary where masked; or None.
        reference: the same values with plain autograd.

    Time O(L·B·|Y|²) in each pass. Memory: three tensors of size L×B×|Y| and two of size |Y|×|Y| are kept for the backward
    pass.
    """
    arguments = ChainArguments(emissions, chain, mask, tags)
    try:
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (emissions, *chain)):
            values: Tensor = _CRF.apply(emissions, *chain, arguments, reference)  # type: ignore[no-untyped-call]
            return values
        return _compute(arguments)[0]
    except NotCompiledError:
        return None


def _compute(arguments: ChainArguments) -> tuple[Tensor, Tensor]:
    """Returns the values and the work space."""
    length, batch, num_tags = arguments.emissions.shape
    padded = -(-num_tags // 16) * 16
    work = arguments.emissions.new_empty(2 * padded * (num_tags + 1) + length * batch * (3 * padded + 1))
    values = arguments.emissions.new_empty(batch)
    call_kernel("lc_crf", arguments.packed + _CALL.pack(work.data_ptr(), values.data_ptr(), *_NONE))
    return values, work


class _CRF(torch.autograd.Function):
    """Computes the gradients from the work space of the forward pass. Double backward uses the reference."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, start: Tensor, transitions: Tensor, end: Tensor,
        arguments: ChainArguments, reference: Reference,
    ) -> Tensor:  # fmt: skip
        values, work = _compute(arguments)
        # Tags and mask too: autograd then refuses a backward pass after they were overwritten.
        ctx.save_for_backward(emissions, start, transitions, end, work, arguments.tags, arguments.mask)
        ctx.arguments, ctx.reference = arguments, reference
        return values

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        (*inputs, work, _, _), needs_grad = ctx.saved_tensors, ctx.needs_input_grad[:4]
        if torch.is_grad_enabled():
            values = ctx.reference(inputs[0], Chain(*inputs[1:]))
            return *compute_gradients(values, inputs, grad_output, needs_grad, create_graph=True), None, None
        emissions = torch.empty_like(ctx.arguments.emissions) if needs_grad[0] else None
        transitions = torch.empty_like(inputs[2], memory_format=torch.contiguous_format) if needs_grad[2] else None
        start, end = inputs[1].new_zeros(inputs[1].shape), inputs[3].new_zeros(inputs[3].shape)
        grad_output = grad_output.contiguous()
        addresses = (
            work.data_ptr(),
            0,
            grad_output.data_ptr(),
            0 if emissions is None else emissions.data_ptr(),
            start.data_ptr(),
            0 if transitions is None else transitions.data_ptr(),
            end.data_ptr(),
            *((0, 0) if emissions is None else emissions.stride()[:2]),
            0,
            0,
            0,
        )
        call_kernel("lc_crf_gradient", ctx.arguments.packed + _CALL.pack(*addresses))
        return emissions, start, transitions, end, None, None
