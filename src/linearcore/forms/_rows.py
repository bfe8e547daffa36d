"""Row losses: the reference implementation, and a blocked one that recomputes intermediates in the backward pass."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch import Tensor

from linearcore._typing import compute_dtype
from linearcore.forms._labels import Labels
from linearcore.kernels import (
    block_size,
    can_compile,
    can_trace_fused,
    compiled_rows,
    fused_kernels_for,
    row_blocks,
    slices,
    traced_rows,
)
from linearcore.surrogates import Surrogate

if TYPE_CHECKING:
    from linearcore.forms._base import Form

#: Length of `Labels.tensors`, which are saved after the scores and before all other tensors.
_NUM_LABEL_TENSORS = 4
#: Per-row tensors, each (N,) or (N, 1), that the forward pass saves for the backward pass.
SavedTensors: TypeAlias = tuple[Tensor, ...]


def row_losses(form: "Form", surrogate: Surrogate, scores: Tensor, labels: Labels, backend: str) -> Tensor:
    """Returns the unreduced loss (N,) of each row, in float32 for half-precision scores.

    Args:
        form, surrogate: define the loss.
        scores: (N, C).
        labels: labels of the rows.
        backend: "reference", "eager", "compiled" or "fused", the result of `kernels.resolve_backend`.

    Time O(N·C) with hard labels; O(N·C²) with soft labels if `form.soft_is_quadratic(labels)`. Temporary memory: with
    "reference" a few tensors of size N×C, or N×C×C if the time is O(N·C²); with "eager" one block, and in the backward pass
    the gradient; with "fused" only the gradient; with "compiled" the gradient, which is computed in the forward pass.
    """
    if backend == "reference":
        return reference_rows(form, surrogate, scores, labels)
    if backend == "compiled" and (values := _compiled_rows(form, surrogate, scores, labels)) is not None:
        return values
    if backend == "fused" and can_trace_rows(form, surrogate, scores, labels):
        code = form.loss_code(surrogate)
        assert code is not None and labels.index is not None
        return traced_rows(code, scores, labels.index, labels.margin)
    fused_kernels = fused_kernels_for(scores) if backend == "fused" and can_fuse_rows(form, surrogate, labels) else None
    if fused_kernels and (code := form.loss_code(surrogate)) is not None and labels.index is not None and scores.numel():

        def reference(rows: Tensor, index: Tensor) -> Tensor:
            return reference_rows(form, surrogate, rows, replace(labels, index=index))

        return fused_kernels.fused_rows(code, scores, labels.index, labels.margin, reference)  # type: ignore[no-any-return]
    row_helpers = fused_kernels if form.can_fuse else None  # Parts of a form inside "eager", not the whole loss.
    losses: Tensor = BlockedRowLosses.apply(scores, form, surrogate, row_helpers, labels.smoothing, *labels.tensors)  # type: ignore[no-untyped-call]
    return losses


def _compiled_rows(form: "Form", surrogate: Surrogate, scores: Tensor, labels: Labels) -> Tensor | None:
    """Returns the losses (N,), or None for values that the C kernels leave to "eager"."""
    code = form.loss_code(surrogate)
    if code is None:
        return None

    def reference(rows: Tensor, _: Tensor) -> Tensor:
        return reference_rows(form, surrogate, rows, labels)

    target = labels.index if labels.is_hard else labels.target_weights(scores)
    assert target is not None
    return compiled_rows(code, scores, target, reference)


def can_compile_rows(form: "Form", surrogate: Surrogate, scores: Tensor, labels: Labels) -> bool:
    """Whether `row_losses` supports the backend "compiled" (C kernels) for these arguments."""
    is_supported = labels.margin is None and scores.dtype != torch.bfloat16
    return is_supported and form.loss_code(surrogate) is not None and can_compile(scores)


def can_fuse_rows(form: "Form", surrogate: Surrogate, labels: Labels) -> bool:
    """Whether there are fused (Triton) kernels for this loss, or for parts of it (`form.can_fuse`)."""
    return labels.is_hard and (form.can_fuse or form.loss_code(surrogate) is not None)


def can_trace_rows(form: "Form", surrogate: Surrogate, scores: Tensor, labels: Labels) -> bool:
    """Whether a function that torch.compile is tracing can call the fused kernels for these arguments."""
    return labels.is_hard and can_trace_fused(scores) and form.loss_code(surrogate) is not None


def reference_rows(form: "Form", surrogate: Surrogate, scores: Tensor, labels: Labels) -> Tensor:
    """Reference implementation of `row_losses` with plain autograd; supports higher derivatives."""
    scores = scores.to(compute_dtype(scores))
    if labels.is_hard:
        return form.hard_losses(surrogate, scores, labels)
    return form.soft_losses(surrogate, scores, labels, slice(0, scores.shape[-1]))


class BlockedRowLosses(torch.autograd.Function):
    """Losses of all rows, computed in blocks of rows.

    Saves scores, labels and at most three values per row for the backward pass. Each block is cast to float32 if needed,
    processed and freed. Double backward uses the reference implementation.
    """

    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, form: "Form", surrogate: Surrogate, fused_kernels: ModuleType | None, smoothing: float,
        *tensors: Tensor | None,
    ) -> Tensor:  # fmt: skip
        labels = Labels.from_tensors(tensors, smoothing)
        dtype = compute_dtype(scores)
        losses: list[Tensor] = []
        saved: list[SavedTensors] = []
        for rows in _row_blocks(form, scores, labels, fused_kernels):
            block_labels = labels.rows(rows)
            if labels.is_hard and form.has_custom_backward:
                block = scores[rows] if fused_kernels else scores[rows].to(dtype)
                overwrite = block.dtype != scores.dtype  # A cast block is a copy, so it may be overwritten.
                values, block_saved = form.hard_forward(
                    surrogate, block, block_labels, fused=fused_kernels, overwrite=overwrite
                )
                saved.append(block_saved)
            else:
                block = scores[rows].to(dtype)
                terms = _loss_terms(form, surrogate, block, block_labels)
                values = torch.stack([term(block) for term in terms]).sum(0)
            losses.append(values)
        ctx.config, ctx.smoothing = (form, surrogate, fused_kernels), smoothing
        ctx.save_for_backward(scores, *tensors, *(_concatenate(column) for column in zip(*saved, strict=True)))
        return _concatenate(losses) if losses else scores.new_empty(0, dtype=dtype)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        scores, *tensors = ctx.saved_tensors
        labels = Labels.from_tensors(tensors[:_NUM_LABEL_TENSORS], ctx.smoothing)
        saved = tensors[_NUM_LABEL_TENSORS:]
        form, surrogate, fused_kernels = ctx.config
        if torch.is_grad_enabled():
            losses = reference_rows(form, surrogate, scores, labels)
            (gradient,) = torch.autograd.grad(losses, scores, grad_output, create_graph=True)
        else:
            gradient = _gradient(form, surrogate, fused_kernels, scores, labels, saved, grad_output.unsqueeze(-1))
        return gradient, None, None, None, None, *(None,) * _NUM_LABEL_TENSORS


def _concatenate(tensors: Sequence[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(list(tensors))


def _gradient(
    form: "Form", surrogate: Surrogate, fused_kernels: ModuleType | None, scores: Tensor, labels: Labels,
    saved: list[Tensor], grad_output: Tensor,
) -> Tensor:  # fmt: skip
    blocks = _row_blocks(form, scores, labels, fused_kernels)
    if len(blocks) == 1:  # Avoids a copy, which is one more kernel launch on a GPU.
        return _block_gradient(form, surrogate, fused_kernels, scores, labels, tuple(saved), grad_output).to(scores.dtype)
    gradient = torch.empty_like(scores, memory_format=torch.contiguous_format)
    for rows in blocks:
        block_labels, block_saved = labels.rows(rows), tuple(column[rows] for column in saved)
        gradient[rows] = _block_gradient(
            form, surrogate, fused_kernels, scores[rows], block_labels, block_saved, grad_output[rows]
        )
    return gradient


def _block_gradient(
    form: "Form", surrogate: Surrogate, fused_kernels: ModuleType | None, scores: Tensor, labels: Labels,
    saved: SavedTensors, grad_output: Tensor,
) -> Tensor:  # fmt: skip
    if not (labels.is_hard and form.has_custom_backward):
        return _autograd_gradient(form, surrogate, scores.to(grad_output.dtype), labels, grad_output)
    block = scores if fused_kernels else scores.to(grad_output.dtype)
    overwrite = block.dtype != scores.dtype
    gradient = form.hard_gradient(surrogate, block, labels, saved, grad_output, fused=fused_kernels, overwrite=overwrite)
    if surrogate.lipschitz == math.inf:
        # Rows with zero grad_output get zero gradient, because 0 · inf would be NaN.
        gradient.masked_fill_(grad_output == 0, 0.0)
    return gradient


def _autograd_gradient(form: "Form", surrogate: Surrogate, scores: Tensor, labels: Labels, grad_output: Tensor) -> Tensor:
    """Returns the gradient of a block by autograd, term by term to limit the size of the graph."""
    gradient = torch.zeros_like(scores)
    with torch.enable_grad():
        leaf = scores.detach().requires_grad_()
        for term in _loss_terms(form, surrogate, scores, labels):
            gradient += torch.autograd.grad(term(leaf), leaf, grad_output.squeeze(-1))[0]
    return gradient


def _loss_terms(form: "Form", surrogate: Surrogate, scores: Tensor, labels: Labels) -> list[Callable[[Tensor], Tensor]]:
    """Returns functions of the scores whose results sum to the losses: one, or one per chunk of classes."""
    if labels.is_hard:
        return [partial(form.hard_losses, surrogate, labels=labels)]
    num_classes = scores.shape[1]
    step = num_classes
    if form.soft_is_quadratic(labels):
        step = block_size(scores) // max(1, scores.shape[0] * num_classes)
    chunks = list(slices(num_classes, step)) or [slice(0, 0)]
    return [partial(form.soft_losses, surrogate, labels=labels, chunk=chunk) for chunk in chunks]


def _row_blocks(form: "Form", scores: Tensor, labels: Labels, fused_kernels: ModuleType | None) -> list[slice]:
    """Returns blocks of rows; a single block for fused kernels, which need no temporaries."""
    rows, num_classes = scores.shape
    if fused_kernels:
        return [slice(0, rows)] if rows else []
    is_quadratic = not labels.is_hard and form.soft_is_quadratic(labels)
    return list(row_blocks(scores, num_classes**2 if is_quadratic else num_classes))


def tensor_attributes(*objects: object) -> tuple[Tensor, ...]:
    """Returns the tensor attributes of forms and surrogates. User-defined classes may have trainable attributes."""
    return tuple(value for item in objects for value in _attributes(item) if isinstance(value, Tensor))


def _attributes(item: object) -> list[object]:
    # torch 2.11 cannot compile `vars` of a dataclass.
    names = getattr(item, "__dataclass_fields__", None) if torch.compiler.is_compiling() else None
    return [getattr(item, name) for name in names or vars(item)]
