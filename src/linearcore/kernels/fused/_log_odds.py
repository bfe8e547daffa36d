"""logsumexp of a row without its label, and the gradient that goes with it, one pass each."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels.fused._device import by_rows, on_its_device

#: Classes a program looks at at a time.
BLOCK = 2048


@on_its_device
def log_odds(scores: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(N, 1) each, float32: the label's score, the largest of the others, and Σ exp(other − largest).

    Args:
        scores: (N, C).
        index: (N,) labels. One out of range has a score of NaN.
    """
    scores, index = by_rows(scores), index.contiguous()
    rows, num_classes = scores.shape
    own, peak, total = (torch.empty(rows, 1, dtype=torch.float32, device=scores.device) for _ in range(3))
    if rows:
        block = min(BLOCK, triton.next_power_of_2(max(1, num_classes)))
        _forward[(rows,)](scores, scores.stride(0), index, own, peak, total, num_classes, BLOCK=block)
    return own, peak, total


@on_its_device
def log_odds_gradient(scores: Tensor, index: Tensor, peak: Tensor, share: Tensor, slope: Tensor) -> Tensor:
    """(N, C), in the dtype of `scores`: share · exp(s − peak), and the slope at the label."""
    scores, index = by_rows(scores), index.contiguous()
    peak, share, slope = (numbers.contiguous() for numbers in (peak, share, slope))
    gradient = torch.empty_like(scores, memory_format=torch.contiguous_format)
    rows, num_classes = scores.shape
    if scores.numel():
        block = min(BLOCK, triton.next_power_of_2(num_classes))
        grid = (rows, triton.cdiv(num_classes, block))
        _backward[grid](scores, scores.stride(0), index, peak, share, slope, gradient, num_classes, BLOCK=block)
    return gradient


@triton.jit
def _forward(scores, stride, index, own, peak, total, num_classes, BLOCK: tl.constexpr):  # noqa: N803
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(index + row)
    base = scores + row * stride
    lanes = tl.arange(0, BLOCK)
    # The least float and not −inf: −inf − (−inf) would be no number.
    largest = tl.full((BLOCK,), -3.4028234663852886e38, tl.float32)
    summed = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, num_classes, BLOCK):
        here = first + lanes
        value = tl.load(base + here, mask=here < num_classes, other=-float("inf")).to(tl.float32)
        value = tl.where(here == label, -float("inf"), value)
        larger = tl.maximum(largest, value)
        summed = summed * tl.exp(largest - larger) + tl.exp(value - larger)
        largest = larger
    top = tl.max(largest, 0)
    is_label = (label >= 0) & (label < num_classes)
    tl.store(own + row, tl.load(base + label, mask=is_label, other=float("nan")).to(tl.float32))
    tl.store(peak + row, top)
    tl.store(total + row, tl.sum(summed * tl.exp(largest - top), 0))


@triton.jit
def _backward(scores, stride, index, peak, share, slope, gradient, num_classes, BLOCK: tl.constexpr):  # noqa: N803
    row = tl.program_id(0).to(tl.int64)
    here = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = here < num_classes
    value = tl.load(scores + row * stride + here, mask=inside, other=0.0).to(tl.float32)
    result = tl.exp(value - tl.load(peak + row)) * tl.load(share + row)
    result = tl.where(here == tl.load(index + row), tl.load(slope + row), result)
    tl.store(gradient + row * num_classes + here, result.to(gradient.dtype.element_ty), mask=inside)
