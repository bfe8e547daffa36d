"""The part of the labels in losses of scores = hidden · weightᵀ: their scores, and their rows of the gradients."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels.fused._device import on_tensor_device

#: Features, and rows with the same label, that a program processes at a time.
FEATURES, ROWS = 2048, 4
#: Elements per program of `scale_by` at a time, and number of programs.
BLOCK, PROGRAMS = 8192, 2048


@on_tensor_device
def label_scores(hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor) -> Tensor:
    """Returns the scores (N,) of the labels (N,), float32, for hidden (N, H), weight (C, H) and bias (C,), contiguous."""
    rows, features = hidden.shape
    scores = torch.empty(rows, dtype=torch.float32, device=hidden.device)
    if rows:
        block = min(FEATURES, triton.next_power_of_2(max(1, features)))
        _label_scores[(rows,)](hidden, weight, bias, labels, scores, features, BLOCK=block)
    return scores


@on_tensor_device
def add_to_hidden(gradient: Tensor, weight: Tensor, labels: Tensor, factor: Tensor, dtype: torch.dtype) -> Tensor:
    """Returns gradient + factor · weight[labels], (N, H) in `dtype`, for a gradient (N, H) and factors (N,) in float32."""
    rows, features = gradient.shape
    result = torch.empty(rows, features, dtype=dtype, device=gradient.device)
    if gradient.numel():
        block = min(FEATURES, triton.next_power_of_2(features))
        _add_to_hidden[(rows, triton.cdiv(features, block))](gradient, weight, labels, factor, result, features, BLOCK=block)
    return result


@on_tensor_device
def add_to_weight(gradient: Tensor, bias_gradient: Tensor | None, hidden: Tensor, labels: Tensor, factor: Tensor) -> None:
    """Adds factor · hidden to gradient[labels], and factor to bias_gradient[labels], in a fixed order.

    Rows with the same label are added up in float32 by one program.

    Args:
        gradient: (C, H), contiguous.
        bias_gradient: (C,) float32, or None.
        hidden: (N, H), contiguous.
        labels: (N,); rows with label C are left out.
        factor: (N,) float32.
    """
    rows, features = hidden.shape
    if hidden.numel():
        ordered, order = labels.sort(stable=True)
        block = min(FEATURES, triton.next_power_of_2(features))
        _add_to_weight[(rows, triton.cdiv(features, block))](
            gradient, bias_gradient, hidden, ordered, order, factor, rows, gradient.shape[0], features,
            ROWS=ROWS, BLOCK=block,
        )  # fmt: skip


@on_tensor_device
def add_to_rows(gradient: Tensor, vector: Tensor, mask: Tensor | None) -> None:
    """Adds a vector (H,) to all rows of a contiguous gradient (C, H) in place, or to those with mask (C,) True."""
    rows, features = gradient.shape
    if gradient.numel():
        block = min(FEATURES, triton.next_power_of_2(features))
        _add_to_rows[(triton.cdiv(rows, ROWS), triton.cdiv(features, block))](
            gradient, vector, mask, rows, features, ROWS=ROWS, BLOCK=block
        )


@on_tensor_device
def scale_by(tensor: Tensor, factor: Tensor) -> None:
    """Multiplies a contiguous tensor by a scalar tensor in place; reads and writes nothing if the factor is 1."""
    if tensor.numel():
        programs = min(PROGRAMS, triton.cdiv(tensor.numel(), BLOCK))
        _scale[(programs,)](tensor, factor, tensor.numel(), programs, BLOCK=BLOCK)


@triton.jit
def _label_scores(hidden, weight, bias, labels, scores, features, BLOCK: tl.constexpr):  # noqa: N803
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, features, BLOCK):
        index = start + tl.arange(0, BLOCK)
        left = tl.load(hidden + row * features + index, mask=index < features, other=0.0).to(tl.float32)
        right = tl.load(weight + label * features + index, mask=index < features, other=0.0).to(tl.float32)
        total += left * right
    score = tl.sum(total, 0)
    if bias is not None:
        score += tl.load(bias + label).to(tl.float32)
    tl.store(scores + row, score)


@triton.jit
def _add_to_hidden(gradient, weight, labels, factor, result, features, BLOCK: tl.constexpr):  # noqa: N803
    row = tl.program_id(0).to(tl.int64)
    index = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_feature = index < features
    label_row = tl.load(weight + tl.load(labels + row) * features + index, mask=is_feature, other=0.0).to(tl.float32)
    total = tl.load(gradient + row * features + index, mask=is_feature, other=0.0) + tl.load(factor + row) * label_row
    tl.store(result + row * features + index, total.to(result.dtype.element_ty), mask=is_feature)


@triton.jit(do_not_specialize=["rows", "num_classes"])
def _add_to_weight(
    gradient, bias_gradient, hidden, ordered, order, factor, rows, num_classes, features,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    first = tl.program_id(0)
    index = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_feature = index < features
    label = tl.load(ordered + first)
    before = tl.load(ordered + first - 1, mask=first > 0, other=-1)
    if (label != before) & (label < num_classes):
        # Most labels are the label of one row.
        only = tl.load(order + first)
        bias_total = tl.load(factor + only)
        total = bias_total * tl.load(hidden + only * features + index, mask=is_feature, other=0.0).to(tl.float32)
        start = first + 1
        start = tl.where(tl.load(ordered + start, mask=start < rows, other=-1) == label, start, rows)
        while start < rows:
            place = start + tl.arange(0, ROWS)
            is_same = tl.load(ordered + place, mask=place < rows, other=-1) == label
            row = tl.load(order + place, mask=is_same, other=0)
            times = tl.load(factor + row, mask=is_same, other=0.0)
            states = tl.load(
                hidden + row[:, None] * features + index[None, :], mask=is_same[:, None] & is_feature[None, :], other=0.0
            )
            total += tl.sum(times[:, None] * states.to(tl.float32), 0)
            bias_total += tl.sum(times, 0)
            # The labels are sorted: after a row with another one there are no more.
            start = tl.where(tl.sum(is_same.to(tl.int32), 0) == ROWS, start + ROWS, rows)
        where = gradient + label * features + index
        total += tl.load(where, mask=is_feature, other=0.0).to(tl.float32)
        tl.store(where, total.to(gradient.dtype.element_ty), mask=is_feature)
        # Two conditions: the first is known when the kernel is compiled.
        if bias_gradient is not None:  # noqa: SIM102
            if tl.program_id(1) == 0:
                tl.store(bias_gradient + label, tl.load(bias_gradient + label) + bias_total)


@triton.jit(do_not_specialize=["rows"])
def _add_to_rows(gradient, vector, mask, rows, features, ROWS: tl.constexpr, BLOCK: tl.constexpr):  # noqa: N803
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    index = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_used = row < rows
    if mask is not None:
        is_used = is_used & (tl.load(mask + row, mask=is_used, other=0) != 0)
    where = gradient + row.to(tl.int64)[:, None] * features + index[None, :]
    is_used = is_used[:, None] & (index < features)[None, :]
    total = tl.load(where, mask=is_used, other=0.0).to(tl.float32)
    total += tl.load(vector + index, mask=index < features, other=0.0)[None, :]
    tl.store(where, total.to(gradient.dtype.element_ty), mask=is_used)


@triton.jit
def _scale(tensor, factor, size, programs, BLOCK: tl.constexpr):  # noqa: N803
    times = tl.load(factor).to(tl.float32)
    if times != 1.0:
        for start in range(tl.program_id(0).to(tl.int64) * BLOCK, size, programs * BLOCK):
            index = start + tl.arange(0, BLOCK)
            value = tl.load(tensor + index, mask=index < size).to(tl.float32)
            tl.store(tensor + index, (value * times).to(tensor.dtype.element_ty), mask=index < size)
