"""Log-partition function and negative log-likelihood of a linear-chain CRF with few tags, in Triton (`fused/_crf.py`)."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from linearcore.kernels._backend import compute_gradients
from linearcore.structures import Chain, Sites

#: Returns the values (B,) of emissions and chain with plain autograd, for second derivatives.
Reference = Callable[[Tensor, Chain], Tensor]


def fused_crf(
    kernels: ModuleType, emissions: Tensor, chain: Chain, sites: Sites, tags: Tensor | None, reference: Reference
) -> Tensor:
    """Returns log Z (B,), or with `tags` log Z − h(x, tags); 0 for an empty sequence.

    Args:
        kernels: `linearcore.kernels.fused`.
        emissions: (L, B, |Y|) with at most `MAX_TAGS` tags.
        chain: start, transition and end scores; −inf marks forbidden entries.
        sites: positions of the tags.
        tags: (L, B) int64, arbitrary where masked; or None.
        reference: the same values with plain autograd.

    Time O(L·B·|Y|²) in each pass. Memory: two tensors of size L×B×|Y| are kept for the backward pass.
    """
    if not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (emissions, *chain))):
        return kernels.crf_messages(emissions, chain, sites[:3], tags, has_gradient=False)[0]  # type: ignore[no-any-return]
    values: Tensor = _FusedCRF.apply(emissions, *chain, sites, tags, kernels, reference)  # type: ignore[no-untyped-call]
    return values


class _FusedCRF(torch.autograd.Function):
    """One launch forward and two backward. Double backward uses the reference."""

    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, start: Tensor, transitions: Tensor, end: Tensor,
        sites: Sites, tags: Tensor | None, kernels: ModuleType, reference: Reference,
    ) -> Tensor:  # fmt: skip
        values, *state = kernels.crf_messages(emissions, (start, transitions, end), sites[:3], tags, has_gradient=True)
        ctx.save_for_backward(emissions, start, transitions, end, *sites[:3], tags, *state)
        ctx.kernels, ctx.reference = kernels, reference
        return values  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        saved, needs_grad = ctx.saved_tensors, ctx.needs_input_grad[:4]
        inputs = saved[:4]
        if torch.is_grad_enabled():
            values = ctx.reference(inputs[0], Chain(*inputs[1:]))
            gradients = compute_gradients(values, inputs, grad_output, needs_grad, create_graph=True)
        else:
            gradients = ctx.kernels.crf_gradient(inputs[0], inputs[2], saved[4:7], *saved[7:], grad_output)
        return *gradients, None, None, None, None
