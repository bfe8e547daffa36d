"""Rows in blocks, recomputed in the backward pass."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from linearcore._typing import compute_dtype
from linearcore.kernels._blocks import budget, row_blocks, slices
from linearcore.kernels._form import FormKernel
from linearcore.kernels._labels import Labels
from linearcore.kernels._plain import plain_rows


class BlockedRows(torch.autograd.Function):
    """The losses of all rows, block by block.

    Kept for the backward pass: the scores and labels as they came, and at most three numbers a row. A block is
    widened to float32 where needed, worked on, and dropped. A second derivative differentiates the plain definition.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, kernel: FormKernel, smoothing: float, *tensors: Tensor | None) -> Tensor:
        labels = Labels.of(tensors, smoothing)
        dtype = compute_dtype(scores)
        losses: list[Tensor] = []
        kept: list[tuple[Tensor, ...]] = []
        for block in _blocks(kernel, scores, labels):
            rows = labels.rows(block)
            if labels.is_hard:
                part = scores[block] if kernel.is_fused(scores) else scores[block].to(dtype)
                values, numbers = kernel.hard_forward(part, rows, overwrite=part.dtype != scores.dtype)
                kept.append(numbers)
            else:
                part = scores[block].to(dtype)
                values = torch.stack([kernel.soft(part, rows, chunk) for chunk in _chunks(kernel, part, labels)]).sum(0)
            losses.append(values)
        ctx.kernel, ctx.smoothing = kernel, smoothing
        ctx.save_for_backward(scores, *tensors, *(_joined(column) for column in zip(*kept, strict=True)))
        return _joined(losses) if losses else scores.new_empty(0, dtype=dtype)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        scores, *saved = ctx.saved_tensors
        labels = Labels.of(saved[:4], ctx.smoothing)
        if torch.is_grad_enabled():
            losses = plain_rows(ctx.kernel, scores, labels)
            (gradient,) = torch.autograd.grad(losses, scores, upstream, create_graph=True)
        else:
            gradient = _gradient(ctx.kernel, scores, labels, saved[4:], upstream.unsqueeze(-1))
        return gradient, None, None, *(None for _ in saved[:4])


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


def _gradient(kernel: FormKernel, scores: Tensor, labels: Labels, kept: list[Tensor], upstream: Tensor) -> Tensor:
    blocks = _blocks(kernel, scores, labels)
    if len(blocks) == 1:  # Nothing to put together: on an accelerator every copy is one more launch.
        return _block_gradient(kernel, scores, labels, tuple(kept), upstream).to(scores.dtype)
    gradient = torch.empty_like(scores, memory_format=torch.contiguous_format)
    for block in blocks:
        numbers = tuple(column[block] for column in kept)
        gradient[block] = _block_gradient(kernel, scores[block], labels.rows(block), numbers, upstream[block])
    return gradient


def _block_gradient(
    kernel: FormKernel, scores: Tensor, labels: Labels, kept: tuple[Tensor, ...], upstream: Tensor
) -> Tensor:
    if not labels.is_hard:
        return _soft_gradient(kernel, scores.to(upstream.dtype), labels, upstream)
    part = scores if kernel.is_fused(scores) else scores.to(upstream.dtype)
    overwrite = part.dtype != scores.dtype  # A widened block is a copy.
    gradient = kernel.hard_gradient(part, labels, kept, upstream, overwrite=overwrite)
    if kernel.surrogate.lipschitz == math.inf:
        # A row that counts for nothing has no gradient, even where its slopes are infinite.
        gradient.masked_fill_(upstream == 0, 0.0)
    return gradient


def _soft_gradient(kernel: FormKernel, scores: Tensor, labels: Labels, upstream: Tensor) -> Tensor:
    """By autograd over the plain definition: one block and one chunk of labels at a time, so its graph stays small."""
    gradient = torch.zeros_like(scores)
    with torch.enable_grad():
        leaf = scores.detach().requires_grad_()
        for chunk in _chunks(kernel, scores, labels):
            losses = kernel.soft(leaf, labels, chunk)
            gradient += torch.autograd.grad(losses, leaf, upstream.squeeze(-1))[0]
    return gradient


def _blocks(kernel: FormKernel, scores: Tensor, labels: Labels) -> list[slice]:
    """The rows in blocks; all at once where there are no temporaries to keep small."""
    rows, num_classes = scores.shape
    if labels.is_hard and kernel.is_fused(scores):
        return [slice(0, rows)] if rows else []
    is_quadratic = not labels.is_hard and kernel.soft_is_quadratic(labels)
    return list(row_blocks(scores, num_classes**2 if is_quadratic else num_classes))


def _chunks(kernel: FormKernel, scores: Tensor, labels: Labels) -> list[slice]:
    num_classes = scores.shape[1]
    if not kernel.soft_is_quadratic(labels):
        return [slice(0, num_classes)]
    return list(slices(num_classes, budget(scores) // max(1, scores.shape[0] * num_classes)))
