"""The loss of a chain head from hidden states: emissions are computed in chunks and never kept."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from linearcore._torch import is_traced
from linearcore._typing import compute_dtype
from linearcore.heads._arguments import check_reduction
from linearcore.heads._batch import Batch, check_shapes
from linearcore.heads._sampled import Edges, Neighbours, unpack_projection
from linearcore.kernels import slices
from linearcore.losses import cast_as_autocast, check_chunk_bytes, default_chunk, linear_vjp, scale_gradient
from linearcore.structures import Sites

#: Tensors as large as the emissions that the loss of a chunk has at a time.
COPIES = 4
#: Hidden states (N, H), weight (|Y|, H), and bias (|Y|,) or None.
Layer = tuple[Tensor, Tensor, Tensor | None]


class ProjectedLoss(nn.Module):
    """The method `linear_loss` of `ChainHead`."""

    num_tags: int
    batch_first: bool
    start_transitions: Tensor

    def linear_loss(
        self,
        hidden: Tensor,
        projection: nn.Linear | tuple[Tensor, Tensor | None] | Tensor,
        tags: Tensor,
        mask: Tensor | None = None,
        *,
        reduction: str = "token_mean",
        chunk_bytes: int | None = None,
    ) -> Tensor:
        """Returns `loss` for emissions = projection(hidden), computed in chunks of at most `chunk_bytes` of emissions.

        Use it if the emissions L×B×|Y| and their gradients are too large. Emissions and gradients are computed for a few
        sequences at a time, in the forward pass unless `reduction` is "none". With `rank` and without constraints the
        scores of `LinearCoreChain` are a linear function of hidden states and factors, so it uses the chunks of
        `linear_multiclass_loss`.

        Args:
            hidden: (L, B, d), or (B, L, d) with `batch_first`.
            projection: the nn.Linear that computes the emissions, or its (weight, bias).
            tags, mask, reduction: as in `loss`.
            chunk_bytes: memory for emissions; None: 0.5 GiB, 128 MiB on a CPU. At least one sequence is computed at a time.

        Raises:
            ValueError, TypeError: as `loss`; if the projection does not fit.
        """
        check_reduction(reduction)
        check_chunk_bytes(chunk_bytes)
        check_shapes(None, hidden, tags, mask)
        layer = unpack_projection(projection, self.num_tags, hidden.shape[-1])
        batch = self._to_batch(hidden, tags, mask, is_hidden=True)
        # In the dtype of the projection: `_to_batch` computes in float32 at least.
        states = hidden.transpose(0, 1) if self.batch_first else hidden
        return self._projected((states, *layer), batch, reduction, chunk_bytes)

    def _projected(self, layer: Layer, batch: Batch, reduction: str, chunk_bytes: int | None) -> Tensor:
        """Returns the reduced loss for states (L, B, d), a few sequences at a time."""
        states, (_, tags, sites) = layer[0], batch.loss_inputs
        dtype = torch.promote_types(compute_dtype(states), compute_dtype(self.start_transitions))
        size = COPIES * dtype.itemsize * self.num_tags * max(1, len(states))
        step = max(1, (chunk_bytes or default_chunk(states)) // size)

        parameters = tuple(self.parameters())

        def losses(states: Tensor, weight: Tensor, bias: Tensor | None, some: slice = slice(None)) -> Tensor:
            if any(now is not then for now, then in zip(self.parameters(), parameters, strict=True)):
                raise RuntimeError("the head has other parameters than in the forward pass of linear_loss; under "
                                   "functional_call pass a `chunk_bytes` that holds all emissions")  # fmt: skip
            chunk = Sites(sites.mask[:, some], sites.previous[:, some], sites.following[:, some], sites.is_full)
            return self._losses(F.linear(states, weight, bias).to(dtype), tags[:, some], chunk)

        def finish(losses: Tensor) -> Tensor:
            return self._reduce(losses, batch, reduction, emissions_dtype(states))

        # A parametrised head computes its parameters again whenever they are read, perhaps with random numbers.
        if states.shape[1] <= step or is_traced() or is_parametrized(self):
            return finish(losses(*layer))
        chunks = _Chunks(losses, finish, reduction != "none", step, dtype)
        loss: Tensor = _ChunkedSequences.apply(chunks, *layer, *parameters)  # type: ignore[no-untyped-call]
        return loss

    @abstractmethod
    def _to_batch(
        self, emissions: Tensor, tags: Tensor | None, mask: Tensor | None, *, is_hidden: bool = False
    ) -> Batch: ...

    @abstractmethod
    def _losses(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor: ...

    @abstractmethod
    def _reduce(self, losses: Tensor, batch: Batch, reduction: str, dtype: torch.dtype) -> Tensor: ...


@dataclass(frozen=True)
class _Chunks:
    """A loss that is computed for a few sequences at a time.

    Attributes:
        losses: losses (K,) of states (L, K, d), weight, bias and the slice of the sequences.
        finish: a linear function of the losses (B,).
        is_scalar: whether `finish` returns a scalar, so that gradients can be computed in the forward pass.
        step: number of sequences in a chunk.
        dtype: dtype of the losses.
    """

    losses: Callable[..., Tensor]
    finish: Callable[[Tensor], Tensor]
    is_scalar: bool
    step: int
    dtype: torch.dtype

    def compute(
        self, layer: Layer, parameters: Sequence[Tensor], needs_grad: Sequence[bool] | None, upstream: Tensor | None
    ) -> tuple[Tensor, list[Tensor | None]]:
        """Returns the result, and its gradients with respect to the layer and the parameters that need one."""
        states, weight, bias = layer
        values = states.new_empty(states.shape[1], dtype=self.dtype)
        inputs = (states, weight, bias, *parameters)
        gradients: list[Tensor | None] = [None] * len(inputs)
        if needs_grad is None:
            for some in slices(len(values), self.step):
                values[some] = self.losses(states[:, some], weight, bias, some)
            return self.finish(values), gradients
        grad_output = linear_vjp(self.finish, values, upstream)
        gradients = [
            torch.zeros_like(tensor) if tensor is not None and is_needed else None
            for tensor, is_needed in zip(inputs, needs_grad, strict=True)
        ]
        for some in slices(len(values), self.step):
            with torch.enable_grad():
                leaves = [None if tensor is None else tensor.detach().requires_grad_() for tensor in layer]
                chunk = leaves[0][:, some]  # type: ignore[index]
                losses = self.losses(chunk, *leaves[1:], some)
                places = [place for place, gradient in enumerate(gradients) if gradient is not None]
                needed = [(chunk, *leaves[1:], *parameters)[place] for place in places]
                parts = torch.autograd.grad(losses, needed, grad_output[some], materialize_grads=True)  # type: ignore[arg-type]
            values[some] = losses.detach()
            for place, part in zip(places, parts, strict=True):
                gradient = gradients[place]
                assert gradient is not None
                (gradient[:, some] if place == 0 else gradient).add_(part)
        return self.finish(values), gradients


class _ChunkedSequences(torch.autograd.Function):
    """Computes the gradients in the forward pass for a scalar result. Double backward computes all sequences at once."""

    @staticmethod
    def forward(
        ctx: Any, chunks: _Chunks, states: Tensor, weight: Tensor, bias: Tensor | None, *parameters: Tensor
    ) -> Tensor:
        needs_grad = ctx.needs_input_grad[1:] if chunks.is_scalar and any(ctx.needs_input_grad[1:]) else None
        value, gradients = chunks.compute((states, weight, bias), parameters, needs_grad, None)
        ctx.chunks, ctx.parameters = chunks, parameters
        ctx.gradients = None if needs_grad is None else gradients
        ctx.autocast = _autocast_state(states)
        ctx.save_for_backward(states, weight, bias, *parameters)
        return value

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        states, weight, bias, *_ = ctx.saved_tensors  # Not the parameters: the head reads its own.
        chunks, needs_grad = ctx.chunks, ctx.needs_input_grad[1:]
        gradients, ctx.gradients = ctx.gradients, None
        if torch.is_grad_enabled():
            inputs = (states, weight, bias, *ctx.parameters)
            required = [tensor for tensor, is_needed in zip(inputs, needs_grad, strict=True) if is_needed]
            with torch.autocast(*ctx.autocast):
                value = chunks.finish(chunks.losses(states, weight, bias))
            found = iter(torch.autograd.grad(value, required, grad_output, create_graph=True, materialize_grads=True))
            return None, *(next(found) if is_needed else None for is_needed in needs_grad)
        if gradients is None:
            with torch.autocast(*ctx.autocast):
                _, gradients = chunks.compute((states, weight, bias), ctx.parameters, needs_grad, grad_output)
        else:
            for gradient in gradients:
                if gradient is not None:
                    scale_gradient(gradient, grad_output)
        return None, *gradients


def _autocast_state(tensor: Tensor) -> tuple[str, torch.dtype, bool]:
    device = tensor.device.type
    return device, torch.get_autocast_dtype(device), torch.is_autocast_enabled(device)


def emissions_dtype(states: Tensor) -> torch.dtype:
    """Returns the dtype of projection(states), under autocast, too."""
    return cast_as_autocast(states[:0])[0].dtype


def low_rank_layer(layer: Layer, edges: Edges, neighbours: Neighbours, sites: Sites) -> Layer:
    """Returns the linear layer whose scores are the local scores (see `kernels.local_scores`) for low-rank transitions.

    The factors of the neighbours are appended to the hidden states (L, B, d), and those of all tags to the weight.
    """
    states, weight, bias = layer
    assert edges.factors is not None
    source, target = edges.factors
    left = source[neighbours.before].masked_fill(neighbours.is_first, 0.0)
    right = target[neighbours.after].masked_fill(neighbours.is_last, 0.0)
    is_edge = torch.cat([neighbours.is_first, neighbours.is_last], -1).to(left.dtype)
    hidden = torch.cat([sites.zero_masked(states).flatten(0, 1), left, right, is_edge], -1)
    columns = torch.stack([edges.start, edges.end], -1)
    extended = torch.cat([weight, target, source, columns], -1)
    return hidden, extended, None if bias is None else bias.to(extended.dtype)
