"""Losses of the positions of a chain, each over all changes of its tag, in Triton (`fused/_local.py`)."""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from linearcore.kernels._backend import compute_gradients
from linearcore.kernels._fused import fused_kernels_for
from linearcore.kernels._loss_code import LossCode

#: Returns the losses of the emissions and the parameters of the chain with plain autograd, for second derivatives.
Reference = Callable[..., Tensor]


def local_kernels(emissions: Tensor, *parameters: Tensor) -> ModuleType | None:
    """Returns the fused kernels if `fused_local` supports these tensors."""
    if emissions.numel() == 0:
        return None
    kernels = fused_kernels_for(emissions, *parameters)
    return kernels if kernels is not None and emissions.shape[-1] <= kernels.MAX_LOCAL_TAGS else None


class LocalCall(NamedTuple):
    """Arguments of `fused_local` that are not differentiated.

    Attributes:
        kernels: from `local_kernels`.
        code: the loss.
        unary: weight of the loss of the emissions alone.
        tags: int64, in the layout of the emissions; −100 is masked.
        mask: booleans, or None.
        is_batch_first: layout (B, L) instead of (L, B).
        reduction: "sites" for (L, B), "none" for (B,), "sum", "mean" or "token_mean".
        is_strict: a masked first position makes the loss NaN, as a tag out of range does.
        reference: the same losses with plain autograd.
        dtype: dtype of the product of low-rank factors and its gradient.
    """

    kernels: ModuleType
    code: LossCode
    unary: float
    tags: Tensor
    mask: Tensor | None
    is_batch_first: bool
    reduction: str
    is_strict: bool
    reference: Reference
    dtype: torch.dtype

    @property
    def positions(self) -> Any:
        return self.kernels.Positions(self.tags, self.mask, self.is_batch_first)


def fused_local(call: LocalCall, emissions: Tensor, *parameters: Tensor) -> Tensor:
    """Returns the reduced losses (1 − w)·form(local scores) + w·form(emissions) of all positions; 0 where masked.

    Args:
        call: loss, tags and reduction.
        emissions: (L, B, |Y|) or (B, L, |Y|), float32 or narrower, arbitrary where masked.
        parameters: start, transitions and end; or start, F, T and end for transitions = F Tᵀ; float32.

    Time O(L·B·|Y|), and O(|Y|²) for the gradient of the transitions; O(L·B·|Y|·r) with factors. Memory: the gradient of the
    emissions, which is computed in the forward pass and kept, twice with a unary loss; with factors a temporary of the same
    size.
    """
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (emissions, *parameters)):
        result: Tensor = _FusedLocal.apply(call, emissions, *parameters)  # type: ignore[no-untyped-call]
        return result
    return _compute(call, emissions, parameters, has_gradient=False)[0]


def _compute(
    call: LocalCall, emissions: Tensor, parameters: tuple[Tensor, ...], *, has_gradient: bool
) -> tuple[Tensor, Tensor | None, Any, tuple[Tensor, ...]]:
    """Returns the result, the number of unmasked positions if it was divided by it, `LocalState`, and low-rank factors."""
    loss = call.kernels.LocalLoss(call.code.form, call.code.is_mean, call.code.surrogate, call.unary)
    edges, factors, positions = parameters, (), call.positions
    if len(parameters) == 4:
        with torch.autocast(emissions.device.type, enabled=False):
            factors = call.kernels.low_rank_factors(*parameters, positions, call.dtype)
            edges = (factors[0] @ factors[1].t(),)
    losses, state = call.kernels.local_losses(
        emissions, edges, positions, loss, has_gradient=has_gradient, has_count=call.reduction == "token_mean",
        is_strict=call.is_strict,
    )  # fmt: skip
    if call.reduction == "token_mean":
        total, count = losses.sum(1).unbind()
        return total / count, count, state, factors
    if call.reduction == "sites":
        return losses.view(call.tags.shape), None, state, factors
    if call.reduction == "none":
        return losses.view(call.tags.shape).sum(int(call.is_batch_first)), None, state, factors
    total = losses.sum()
    return total / positions.batch if call.reduction == "mean" else total, None, state, factors


class _FusedLocal(torch.autograd.Function):
    """Computes the gradients of the scores in the forward pass. Double backward uses the reference."""

    @staticmethod
    def forward(ctx: Any, call: LocalCall, emissions: Tensor, *parameters: Tensor) -> Tensor:
        result, count, ctx.state, factors = _compute(call, emissions, parameters, has_gradient=True)
        # Tags and mask too: autograd then refuses a backward pass after they were overwritten.
        ctx.save_for_backward(emissions, *parameters, call.tags, call.mask, count, *factors)
        ctx.call, ctx.num_inputs = call, 1 + len(parameters)
        return result

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        call, saved = ctx.call, ctx.saved_tensors
        inputs, (count, *factors) = saved[: ctx.num_inputs], saved[ctx.num_inputs + 2 :]
        if torch.is_grad_enabled():
            needs_grad = ctx.needs_input_grad[1:]
            return None, *compute_gradients(call.reference(*inputs), inputs, grad_output, needs_grad, create_graph=True)
        # The gradients are released, so that autograd need not copy them; a second backward pass computes them again.
        state, ctx.state = ctx.state, None
        if state is None:
            state = _compute(call, inputs[0], inputs[1:], has_gradient=True)[2]
        return None, *_gradients(call, state, grad_output, count, factors, inputs, any(ctx.needs_input_grad[2:]))


def _gradients(
    call: LocalCall, state: Any, grad_output: Tensor, count: Tensor | None, factors: list[Tensor],
    inputs: tuple[Tensor, ...], needs_parameters: bool,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """Returns the gradients of emissions and parameters."""
    positions, emissions = call.positions, inputs[0]
    is_deterministic = torch.are_deterministic_algorithms_enabled()
    result, edges = call.kernels.scale_local_gradient(
        grad_output, count, 1 / positions.batch if call.reduction == "mean" else 1.0, state, positions, emissions.dtype,
        has_edges=needs_parameters and not factors and not is_deterministic,
    )  # fmt: skip
    result, number = result.view(emissions.shape), emissions.shape[-1]
    if not needs_parameters:
        return result, *(None for _ in inputs[1:])
    if factors:
        rows, columns = factors
        with torch.autocast(emissions.device.type, enabled=False):
            gradient = state.gradient.to(rows.dtype)
            parts = gradient @ columns, gradient.t() @ rows
        return result, *call.kernels.low_rank_gradients(*parts, state.neighbours, inputs[2].shape[1])
    if is_deterministic:
        edges = _edges_in_order(state.gradient, state.neighbours)
    return result, edges[number], edges[:number], edges[number + 1]


def _edges_in_order(gradient: Tensor, neighbours: Tensor) -> Tensor:
    """Returns the gradients of transitions, start and end (|Y| + 2, |Y|) with a deterministic order of additions."""
    num_tags = gradient.shape[1]
    # Masked rows have gradient 0.
    before, after = (tags.masked_fill(tags < 0, 0) for tags in neighbours.long())
    to_rows = gradient.new_zeros(num_tags + 1, num_tags).index_add_(0, before, gradient)
    to_columns = gradient.new_zeros(num_tags + 1, num_tags).index_add_(0, after, gradient)
    return torch.cat([to_rows[:num_tags] + to_columns[:num_tags].t(), to_rows[num_tags:], to_columns[num_tags:]])
