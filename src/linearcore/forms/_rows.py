"""Losses of rows of scores: the definition in one piece, or rows in blocks that are recomputed in the backward pass."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor

from linearcore._typing import compute_dtype
from linearcore.forms._labels import Labels
from linearcore.kernels import block_size, fused_for, row_blocks, slices
from linearcore.surrogates import Surrogate

if TYPE_CHECKING:
    from linearcore.forms._base import Form

#: Per-row numbers, each (N,) or (N, 1), that the forward pass hands to the backward pass.
Kept: TypeAlias = tuple[Tensor, ...]


def row_losses(form: "Form", surrogate: Surrogate, scores: Tensor, labels: Labels, backend: str) -> Tensor:
    """(N,): the loss of every row of `scores` (N, C), unreduced, in float32 for half-precision scores.

    Args:
        form, surrogate: the loss.
        scores: (N, C).
        labels: of the rows.
        backend: "reference", "eager" or "fused", as `kernels.resolve_backend` gives it.

    Time O(N·C) with hard labels, O(N·C²) with soft ones where the form says so. Memory beyond the inputs: "reference" a
    handful of N×C (N×C×C) temporaries, "eager" one block, and the gradient in the backward pass.
    """
    if backend == "reference":
        return reference_rows(form, surrogate, scores, labels)
    fused = fused_for(scores) if backend == "fused" and form.can_fuse and labels.is_hard else None
    losses: Tensor = BlockedRows.apply(scores, form, surrogate, fused, labels.smoothing, *labels.tensors)  # type: ignore[no-untyped-call]
    return losses


def reference_rows(form: "Form", surrogate: Surrogate, scores: Tensor, labels: Labels) -> Tensor:
    """`row_losses` by the form's definition, differentiable as often as wanted."""
    scores = scores.to(compute_dtype(scores))
    if labels.is_hard:
        return form.hard(surrogate, scores, labels)
    return form.soft(surrogate, scores, labels, slice(0, scores.shape[-1]))


class BlockedRows(torch.autograd.Function):
    """The losses of all rows, block by block.

    Kept for the backward pass: the scores and labels as they came, and at most three numbers a row. A block is
    widened to float32 where needed, worked on, and dropped. A second derivative differentiates the definition.
    """

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, form: "Form", surrogate: Surrogate, fused: ModuleType | None, smoothing: float,
        *tensors: Tensor | None,
    ) -> Tensor:  # fmt: skip
        labels = Labels.of(tensors, smoothing)
        dtype = compute_dtype(scores)
        losses: list[Tensor] = []
        kept: list[Kept] = []
        for block in _blocks(form, scores, labels, fused):
            rows = labels.rows(block)
            if labels.is_hard and form.has_fast_path:
                part = scores[block] if fused else scores[block].to(dtype)
                overwrite = part.dtype != scores.dtype  # A widened block is a copy.
                values, numbers = form.hard_forward(surrogate, part, rows, fused=fused, overwrite=overwrite)
                kept.append(numbers)
            else:
                part = scores[block].to(dtype)
                values = torch.stack([piece(part) for piece in _pieces(form, surrogate, part, rows)]).sum(0)
            losses.append(values)
        ctx.how, ctx.smoothing = (form, surrogate, fused), smoothing
        ctx.save_for_backward(scores, *tensors, *(_joined(column) for column in zip(*kept, strict=True)))
        return _joined(losses) if losses else scores.new_empty(0, dtype=dtype)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        scores, *saved = ctx.saved_tensors
        labels = Labels.of(saved[:4], ctx.smoothing)
        form, surrogate, fused = ctx.how
        if torch.is_grad_enabled():
            losses = reference_rows(form, surrogate, scores, labels)
            (gradient,) = torch.autograd.grad(losses, scores, upstream, create_graph=True)
        else:
            gradient = _gradient(form, surrogate, fused, scores, labels, saved[4:], upstream.unsqueeze(-1))
        return gradient, None, None, None, None, *(None for _ in saved[:4])


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


def _gradient(
    form: "Form", surrogate: Surrogate, fused: ModuleType | None, scores: Tensor, labels: Labels, kept: list[Tensor],
    upstream: Tensor,
) -> Tensor:  # fmt: skip
    blocks = _blocks(form, scores, labels, fused)
    if len(blocks) == 1:  # Nothing to put together: on an accelerator every copy is one more launch.
        return _block_gradient(form, surrogate, fused, scores, labels, tuple(kept), upstream).to(scores.dtype)
    gradient = torch.empty_like(scores, memory_format=torch.contiguous_format)
    for block in blocks:
        rows, numbers = labels.rows(block), tuple(column[block] for column in kept)
        gradient[block] = _block_gradient(form, surrogate, fused, scores[block], rows, numbers, upstream[block])
    return gradient


def _block_gradient(
    form: "Form", surrogate: Surrogate, fused: ModuleType | None, scores: Tensor, labels: Labels, kept: Kept,
    upstream: Tensor,
) -> Tensor:  # fmt: skip
    if not (labels.is_hard and form.has_fast_path):
        return _differentiated(form, surrogate, scores.to(upstream.dtype), labels, upstream)
    part = scores if fused else scores.to(upstream.dtype)
    overwrite = part.dtype != scores.dtype
    gradient = form.hard_gradient(surrogate, part, labels, kept, upstream, fused=fused, overwrite=overwrite)
    if surrogate.lipschitz == math.inf:
        # A row that counts for nothing has no gradient, even where its slopes are infinite.
        gradient.masked_fill_(upstream == 0, 0.0)
    return gradient


def _differentiated(form: "Form", surrogate: Surrogate, scores: Tensor, labels: Labels, upstream: Tensor) -> Tensor:
    """The gradient of a block by autograd, a piece at a time so that its graph stays small."""
    gradient = torch.zeros_like(scores)
    with torch.enable_grad():
        leaf = scores.detach().requires_grad_()
        for piece in _pieces(form, surrogate, scores, labels):
            gradient += torch.autograd.grad(piece(leaf), leaf, upstream.squeeze(-1))[0]
    return gradient


def _pieces(form: "Form", surrogate: Surrogate, scores: Tensor, labels: Labels) -> list[Callable[[Tensor], Tensor]]:
    """Functions of the scores whose sum is the losses: one, or one for each chunk of labels where soft ones are many."""
    if labels.is_hard:
        return [partial(form.hard, surrogate, labels=labels)]
    num_classes = scores.shape[1]
    step = num_classes
    if form.soft_is_quadratic(labels):
        step = block_size(scores) // max(1, scores.shape[0] * num_classes)
    chunks = list(slices(num_classes, step)) or [slice(0, 0)]
    return [partial(form.soft, surrogate, labels=labels, chunk=chunk) for chunk in chunks]


def _blocks(form: "Form", scores: Tensor, labels: Labels, fused: ModuleType | None) -> list[slice]:
    """The rows in blocks; all at once where there are no temporaries to keep small."""
    rows, num_classes = scores.shape
    if fused:
        return [slice(0, rows)] if rows else []
    is_quadratic = not labels.is_hard and form.soft_is_quadratic(labels)
    return list(row_blocks(scores, num_classes**2 if is_quadratic else num_classes))


def tensors_of(*members: object) -> tuple[Tensor, ...]:
    """Tensors among the attributes of forms and surrogates, which a user's own may train."""
    return tuple(value for member in members for value in vars(member).values() if isinstance(value, Tensor))
