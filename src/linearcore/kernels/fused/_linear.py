"""Losses and gradients of chunks of scores = hidden · weightᵀ, in place: scores in, gradient of the scores out."""

import math

import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels.fused._device import on_tensor_device
from linearcore.kernels.fused._surrogate import lane_sums, surrogate, surrogate_sums
from linearcore.surrogates import KernelIdentity

#: Scores that a program processes at a time: repeats of lanes, each with neighbouring scores (16 bytes in half precision).
PART_REPEATS, PART_LANES, ROW_LANES, WIDTH = 1, 256, 1024, 8
PART_WARPS, ROW_WARPS = 8, 16
#: With fewer rows than this each row is divided into parts, to give work to every processor.
FEWEST_PROGRAMS = 1024
LOWEST = tl.constexpr(-3.4028234663852886e38)
LOG2_E = tl.constexpr(1.4426950408889634)


def num_parts(rows: int, num_classes: int) -> int:
    """Returns the number of parts P of a row in `competitor_losses`."""
    return max(1, min(FEWEST_PROGRAMS // max(1, rows), -(-num_classes // (PART_REPEATS * PART_LANES * WIDTH))))


@on_tensor_device
def competitor_losses(
    scores: Tensor, labels: Tensor, first: int, reference: Tensor, scale: Tensor | None, offset: Tensor | None,
    identity: KernelIdentity, sums: Tensor, *, counts_masked: bool,
) -> None:  # fmt: skip
    """Adds up φ(reference − s_v) over the competitors v in a chunk of classes, and replaces the scores by the gradient.

        gradient[v] = scale · (−φ'(reference − s_v) − offset),   and −scale · offset at the label; 0 where masked

    Args:
        scores: (N, K) contiguous scores of the classes from `first` on.
        labels: (N,), contiguous.
        first: the first class of the chunk.
        reference: (N,) float32.
        scale: (N,) float32, or None to leave the scores as they are.
        offset: (N,) float32, or None for 0.
        identity: φ.
        sums: (3, P, N) float32: losses, row sums of the gradient, and numbers of masked classes so far.
        counts_masked: if False, a positive number of masked classes may be wrong.
    """
    rows, num_classes = scores.shape
    parts = sums.shape[1]
    if scores.numel():
        block = PART_REPEATS * PART_LANES * WIDTH
        span = triton.cdiv(triton.cdiv(num_classes, block), parts) * block
        _competitors[(rows, parts)](
            scores, labels, first, reference, scale, offset, sums, rows, parts, num_classes, span, *identity[1:],
            BASE=identity.base, IS_SIMPLE=_is_simple(identity), COUNTS_MASKED=counts_masked,
            REPEATS=PART_REPEATS, LANES=PART_LANES, WIDTH=WIDTH, num_warps=PART_WARPS,
        )  # fmt: skip


@on_tensor_device
def log_odds_losses(
    scores: Tensor, labels: Tensor, label_scores: Tensor, scale: Tensor | None, identity: KernelIdentity
) -> Tensor:
    """Returns φ(label score − logsumexp of the other scores) (N,), and replaces the scores by scale · its gradient.

    Args:
        scores: (N, C), contiguous.
        labels: (N,), contiguous.
        label_scores: (N,) float32, the scores of the labels minus their margins.
        scale: (N,) float32, or None to leave the scores as they are.
        identity: φ.
    """
    rows, num_classes = scores.shape
    losses = label_scores.new_empty(rows)
    if rows:
        _log_odds[(rows,)](
            scores, labels, label_scores, scale, losses, num_classes, *identity[1:],
            BASE=identity.base, LANES=ROW_LANES, WIDTH=WIDTH, num_warps=ROW_WARPS,
        )  # fmt: skip
    return losses


def _is_simple(identity: KernelIdentity) -> bool:
    return identity.width == math.inf and identity.sharpness == 1.0


@triton.jit(do_not_specialize=["first", "rows", "parts"])
def _competitors(
    scores, labels, first, reference, scale, offset, sums, rows, parts, num_classes, span,
    tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE: tl.constexpr, IS_SIMPLE: tl.constexpr,  # noqa: N803
    COUNTS_MASKED: tl.constexpr, REPEATS: tl.constexpr, LANES: tl.constexpr, WIDTH: tl.constexpr,  # noqa: N803
):  # fmt: skip
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1)
    base = scores + row * num_classes
    label = tl.load(labels + row) - first
    center = tl.load(reference + row)
    # A reference of −inf would have a margin of NaN to itself.
    center = tl.where(center < LOWEST, LOWEST, center)
    times, shift = 0.0, 0.0
    if scale is not None:
        times = tl.load(scale + row)
        if offset is not None:
            shift = tl.load(offset + row) * times
    slope_times = times * (factor * sharpness * tail_scale)
    losses = tl.zeros((LANES,), tl.float32)
    totals = tl.zeros((LANES,), tl.float32)
    masked = tl.zeros((LANES,), tl.float32)
    lanes = tl.arange(0, LANES)[None, :, None] * WIDTH + tl.arange(0, WIDTH)[None, None, :]
    cells = tl.arange(0, REPEATS)[:, None, None] * (LANES * WIDTH) + lanes
    size: tl.constexpr = REPEATS * LANES * WIDTH
    for start in range(part * span, part * span + span, size):
        index = start + cells
        is_class = index < num_classes
        score = tl.load(base + index, mask=is_class, other=0.0).to(tl.float32)
        if COUNTS_MASKED:
            masked += lane_sums(tl.where(score == -float("inf"), 1.0, 0.0))
        else:
            # As a maximum: the compiler of Triton 3.9 crashes on the minimum.
            masked = tl.minimum(masked, -tl.max(tl.max(-score, 2), 0))
        is_unmasked = is_class & (score != -float("inf"))
        if start + size > num_classes:
            score = tl.where(is_class, score, -float("inf"))
        if (label >= start) & (label < start + size):
            score = tl.where(index == label, -float("inf"), score)
        value, slope_sum, slope = surrogate_sums(
            center, score, tau, width, sharpness, tail_scale, parameter_1, parameter_2,
            BASE, IS_SIMPLE, scores.dtype.element_ty == tl.float32, scale is not None,
        )  # fmt: skip
        losses += value
        if scale is not None:
            # Rows without weight have no gradient, also where φ' is infinite or NaN.
            gradient = tl.where(times == 0.0, 0.0, slope * slope_times)
            if offset is None:
                totals += tl.where(times == 0.0, 0.0, slope_sum * slope_times)
            else:
                gradient = tl.where(is_unmasked, gradient - shift, 0.0)
                totals += lane_sums(gradient)
            tl.store(base + index, gradient.to(scores.dtype.element_ty), mask=is_class)
    number = tl.sum(masked, 0) if COUNTS_MASKED else tl.where(tl.min(masked, 0) == -float("inf"), 1.0, 0.0)
    cell = sums + part * rows + row
    step = tl.full((), rows, tl.int64) * parts
    tl.store(cell, tl.load(cell) + factor * tl.sum(losses, 0))
    tl.store(cell + step, tl.load(cell + step) + tl.sum(totals, 0))
    tl.store(cell + 2 * step, tl.load(cell + 2 * step) + number)


@triton.jit
def _log_odds(
    scores, labels, label_scores, scale, losses, num_classes,
    tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE: tl.constexpr,  # noqa: N803
    LANES: tl.constexpr, WIDTH: tl.constexpr,  # noqa: N803
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    base = scores + row * num_classes
    label = tl.load(labels + row)
    cell = tl.arange(0, LANES)[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    # The lowest float instead of −inf, since −inf − (−inf) is NaN.
    largest = tl.full((LANES,), LOWEST, tl.float32)
    exps = tl.zeros((LANES,), tl.float32)
    for start in range(0, num_classes, LANES * WIDTH):
        index = start + cell
        score = tl.load(base + index, mask=index < num_classes, other=-float("inf")).to(tl.float32)
        if (label >= start) & (label < start + LANES * WIDTH):
            score = tl.where(index == label, -float("inf"), score)
        new_largest = tl.maximum(largest, tl.max(score, 1))
        terms = tl.exp2((score - new_largest[:, None]) * LOG2_E)
        exps = exps * tl.exp2((largest - new_largest) * LOG2_E) + tl.sum(terms, 1)
        largest = new_largest
    top = tl.max(largest, 0)
    total = tl.sum(exps * tl.exp2((largest - top) * LOG2_E), 0)
    margin = (tl.load(label_scores + row) - top) - tl.log(total)
    value, slope = surrogate(margin, 0.0, tau, width, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE)
    tl.store(losses + row, value)
    if scale is not None:
        times = tl.load(scale + row)
        slope = tl.where(times == 0.0, 0.0, slope * times)
        # Without competitors the total is 0 and so is φ'.
        share = slope / tl.maximum(total, 1.1754943508222875e-38)
        num_blocks = tl.cdiv(num_classes, LANES * WIDTH)
        for block in range(0, num_blocks):
            # From the end of the row, which is still in the cache.
            start = (num_blocks - 1 - block) * LANES * WIDTH
            index = start + cell
            score = tl.load(base + index, mask=index < num_classes, other=0.0).to(tl.float32)
            gradient = tl.exp2((score - top) * LOG2_E) * share
            if (label >= start) & (label < start + LANES * WIDTH):
                gradient = tl.where(index == label, -slope, gradient)
            tl.store(base + index, gradient.to(scores.dtype.element_ty), mask=index < num_classes)
