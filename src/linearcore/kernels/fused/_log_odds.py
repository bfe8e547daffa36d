"""logsumexp of a row without its label, and its gradient, in one pass each."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels.fused._device import on_tensor_device, with_unit_stride

#: Classes that a program processes at a time.
BLOCK = 2048


@on_tensor_device
def log_odds(scores: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns (N, 1) each, float32: score of the label, largest other score, and Σ exp(other − largest).

    Args:
        scores: (N, C).
        index: (N,) labels. The score of a label out of range is NaN.
    """
    scores, index = with_unit_stride(scores), index.contiguous()
    rows, num_classes = scores.shape
    label_score, peak, total = (torch.empty(rows, 1, dtype=torch.float32, device=scores.device) for _ in range(3))
    if rows:
        block = min(BLOCK, triton.next_power_of_2(max(1, num_classes)))
        _forward[(rows,)](scores, scores.stride(0), index, label_score, peak, total, num_classes, BLOCK=block)
    return label_score, peak, total


@on_tensor_device
def log_odds_gradient(scores: Tensor, index: Tensor, peak: Tensor, share: Tensor, slope: Tensor) -> Tensor:
    """Returns the gradient (N, C) in the dtype of `scores`: share · exp(s − peak), and `slope` at the label."""
    scores, index = with_unit_stride(scores), index.contiguous()
    peak, share, slope = (numbers.contiguous() for numbers in (peak, share, slope))
    gradient = torch.empty_like(scores, memory_format=torch.contiguous_format)
    rows, num_classes = scores.shape
    if scores.numel():
        block = min(BLOCK, triton.next_power_of_2(num_classes))
        grid = (rows, triton.cdiv(num_classes, block))
        _backward[grid](scores, scores.stride(0), index, peak, share, slope, gradient, num_classes, BLOCK=block)
    return gradient


@triton.jit
def _forward(scores, stride, index, label_score, peak, total, num_classes, BLOCK: tl.constexpr):  # noqa: N803
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(index + row)
    base = scores + row * stride
    lanes = tl.arange(0, BLOCK)
    # The lowest float instead of −inf, since −inf − (−inf) is NaN.
    largest = tl.full((BLOCK,), -3.4028234663852886e38, tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, num_classes, BLOCK):
        class_index = first + lanes
        value = tl.load(base + class_index, mask=class_index < num_classes, other=-float("inf")).to(tl.float32)
        value = tl.where(class_index == label, -float("inf"), value)
        new_largest = tl.maximum(largest, value)
        sums = sums * tl.exp(largest - new_largest) + tl.exp(value - new_largest)
        largest = new_largest
    top = tl.max(largest, 0)
    is_label = (label >= 0) & (label < num_classes)
    tl.store(label_score + row, tl.load(base + label, mask=is_label, other=float("nan")).to(tl.float32))
    tl.store(peak + row, top)
    tl.store(total + row, tl.sum(sums * tl.exp(largest - top), 0))


@triton.jit
def _backward(scores, stride, index, peak, share, slope, gradient, num_classes, BLOCK: tl.constexpr):  # noqa: N803
    row = tl.program_id(0).to(tl.int64)
    class_index = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_class = class_index < num_classes
    value = tl.load(scores + row * stride + class_index, mask=is_class, other=0.0).to(tl.float32)
    result = tl.exp(value - tl.load(peak + row)) * tl.load(share + row)
    result = tl.where(class_index == tl.load(index + row), tl.load(slope + row), result)
    tl.store(gradient + row * num_classes + class_index, result.to(gradient.dtype.element_ty), mask=is_class)
