"""Sampled losses of rows of scores, and their gradients; one launch each.

The products of all rows with all candidates are matrix products between the launches; see `kernels._sampled`.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels._sampled_types import Gathered, SampledRows
from linearcore.kernels.fused._device import on_tensor_device
from linearcore.kernels.fused._sampled_arguments import BLOCK, ends, flags, neighbours, vectors, warps
from linearcore.kernels.fused._surrogate import surrogate

#: Rows and candidates of a tile of the gradient.
TILE_ROWS, TILE_CANDIDATES = 16, 64


@on_tensor_device
def row_losses(scores: Tensor, unary_scores: Tensor | None, gathered: Gathered, rows: SampledRows) -> tuple[Tensor, Tensor]:
    """Returns the losses (N,), float32, and numbers (levels, 3, N) that the gradients need.

    Args:
        scores: (N, K) products of rows and candidates, without bias, start and end.
        unary_scores: the same without the edges, if the loss has a second term.
        gathered: from `gather_rows`.
        rows: the rows.
    """
    size, num_candidates = scores.shape
    losses = torch.empty(size, dtype=torch.float32, device=scores.device)
    stats = torch.empty(1 if unary_scores is None else 2, 3, size, dtype=torch.float32, device=scores.device)
    if size:
        block = min(BLOCK, triton.next_power_of_2(num_candidates))
        _losses[(size,)](
            scores, scores if unary_scores is None else unary_scores, rows.log_weight, *rows.log_weight.stride(),
            rows.target, gathered.index, *vectors(rows), *neighbours(rows)[2:], gathered.label_scores, losses, stats,
            size, num_candidates, rows.weight.shape[0], rows.ignore_index, rows.width, rows.unary, rows.scale,
            *rows.code.surrogate[1:], BASE=rows.code.surrogate.base, FORM=int(rows.code.form),
            HAS_UNARY=unary_scores is not None, **flags(rows), BLOCK=block, num_warps=warps(block),
        )  # fmt: skip
    return losses, stats


@on_tensor_device
def score_gradient(
    grad_output: Tensor, stats: Tensor, scores: Tensor, unary_scores: Tensor | None, gathered: Gathered, rows: SampledRows,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Returns the gradients (N, K) by products with the weight and with the edges, which are the same without second term.

    The third result (1 or 3, tiles, K), float32, has sums over the rows of a tile, for bias, start and end.
    """
    size, num_candidates = scores.shape
    gradient = torch.empty(size, num_candidates, dtype=dtype, device=scores.device)
    edge_gradient = gradient if unary_scores is None else torch.empty_like(gradient)
    num_tiles = triton.cdiv(size, TILE_ROWS)
    sums = torch.empty(len(gathered.index) * 2 - 1, num_tiles, num_candidates, dtype=torch.float32, device=scores.device)
    if size:
        _score_gradient[(num_tiles, triton.cdiv(num_candidates, TILE_CANDIDATES))](
            grad_output, grad_output.stride(0), stats, scores, scores if unary_scores is None else unary_scores,
            rows.log_weight, *rows.log_weight.stride(), gathered.index, *vectors(rows), *neighbours(rows)[2:],
            gradient, edge_gradient, sums, size, num_candidates, num_tiles, rows.width, rows.unary,
            *rows.code.surrogate[1:], BASE=rows.code.surrogate.base, FORM=int(rows.code.form),
            HAS_UNARY=unary_scores is not None, **flags(rows), TILE_ROWS=TILE_ROWS, TILE_CANDIDATES=TILE_CANDIDATES,
        )  # fmt: skip
    return gradient, edge_gradient, sums


@triton.jit
def _offsets(
    index, inside, bias, bias_stride, start, end, is_first, is_last,
    HAS_BIAS: tl.constexpr, HAS_EDGES: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Returns bias, and bias + start + end where they apply, of candidates; broadcast over rows (…, 1)."""
    offset = tl.zeros_like(index).to(tl.float32)
    if HAS_BIAS:
        offset += tl.load(bias + index * bias_stride, mask=inside, other=0.0).to(tl.float32)
    total = offset
    if HAS_EDGES:
        first_score = tl.load(start + index, mask=inside, other=0.0)
        last_score = tl.load(end + index, mask=inside, other=0.0)
        total = total + tl.where(is_first, first_score, 0.0) + tl.where(is_last, last_score, 0.0)
    return offset, total


@triton.jit
def _add_block(
    score, log_weight, inside, label_score, top, total, slopes,
    tau, span, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE: tl.constexpr, FORM: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Adds a block of candidates to running sums: a logsumexp (top, total), or Σ weight·φ and Σ weight·(−φ')."""
    if FORM == 0:
        weighted = tl.where(inside, score + log_weight, -float("inf"))
        # NaN must stay: tl.maximum returns the other number.
        new_top = tl.where(weighted > top, weighted, top)
        total = total * tl.exp(top - new_top) + tl.exp(weighted - new_top)
        top = new_top
    else:
        is_used = inside & (log_weight != -float("inf")) & (score != -float("inf"))
        value, slope = surrogate(
            tl.where(is_used, label_score, 0.0), tl.where(is_used, score, 0.0),
            tau, span, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE,
        )  # fmt: skip
        share = tl.where(is_used, tl.exp(log_weight), 0.0)
        total += share * value
        slopes += share * slope
    return top, total, slopes


@triton.jit
def _finish(
    label_score, top, total, slopes, scale,
    tau, span, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE: tl.constexpr, FORM: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Returns the loss, its centre and factor for the gradient of the candidates, and its derivative by the label score."""
    if FORM == 0:
        peak = tl.max(top, 0)
        sum_exp = tl.sum(total * tl.exp(top - peak), 0)
        is_alone = (peak < -3.4e38) & (sum_exp == 0.0)
        margin = tl.where(is_alone, float("inf"), (label_score - peak) - tl.log(tl.where(is_alone, 1.0, sum_exp)))
        loss, slope = surrogate(margin, 0.0, tau, span, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE)
        center, share, derivative = peak, tl.where(is_alone, 0.0, slope / tl.where(is_alone, 1.0, sum_exp)), -slope
    else:
        loss, derivative = tl.sum(total, 0) * scale, -tl.sum(slopes, 0) * scale
        center, share = label_score, tl.zeros_like(loss) + scale
    # A masked label: an infinite loss without gradient. An infinite one: NaN.
    is_masked = label_score == -float("inf")
    loss = tl.where(is_masked, float("inf"), loss)
    share, derivative = tl.where(is_masked, 0.0, share), tl.where(is_masked, 0.0, derivative)
    is_infinite = label_score == float("inf")
    nan = float("nan")
    return (
        tl.where(is_infinite, nan, loss), center, tl.where(is_infinite, nan, share), tl.where(is_infinite, nan, derivative)
    )  # fmt: skip


@triton.jit(do_not_specialize=["size", "num_classes", "ignore_index", "width"])
def _losses(
    scores, unary_scores, log_weight, weight_stride, weight_step, target, class_index, bias, bias_stride, start, end,
    first, last, label_scores, losses, stats, size, num_candidates, num_classes, ignore_index, width, unary, scale,
    tau, span, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE: tl.constexpr, FORM: tl.constexpr,  # noqa: N803
    HAS_UNARY: tl.constexpr, HAS_BIAS: tl.constexpr, HAS_EDGES: tl.constexpr, IS_FULL: tl.constexpr,  # noqa: N803
    BLOCK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    is_first, is_last = ends(first, last, row, size, width, HAS_EDGES, IS_FULL)
    lanes = tl.arange(0, BLOCK)
    label_score = tl.load(label_scores + row)
    unary_label = label_score
    if HAS_EDGES:
        label_score = tl.load(label_scores + size + row)
        class_index += size
    label = tl.load(class_index + row)
    class_index += size  # Labels come before the candidates.
    # The lowest float instead of −inf, since −inf − (−inf) is NaN.
    top = tl.full((BLOCK,), -3.4028234663852886e38, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    slopes, unary_top, unary_total, unary_slopes = total, top, total, total
    for begin in range(0, num_candidates, BLOCK):
        k = begin + lanes
        inside = k < num_candidates
        index = tl.load(class_index + k, mask=inside, other=0)
        offset, full_offset = _offsets(
            index, inside, bias, bias_stride, start, end, is_first, is_last, HAS_BIAS, HAS_EDGES
        )  # fmt: skip
        weight = tl.load(log_weight + row * weight_stride + k * weight_step, mask=inside, other=-float("inf")).to(tl.float32)
        weight = tl.where(index == label, -float("inf"), weight)
        score = tl.load(scores + row * num_candidates + k, mask=inside, other=0.0).to(tl.float32) + full_offset
        top, total, slopes = _add_block(
            score, weight, inside, label_score, top, total, slopes,
            tau, span, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE, FORM,
        )  # fmt: skip
        if HAS_UNARY:
            score = tl.load(unary_scores + row * num_candidates + k, mask=inside, other=0.0).to(tl.float32) + offset
            unary_top, unary_total, unary_slopes = _add_block(
                score, weight, inside, unary_label, unary_top, unary_total, unary_slopes,
                tau, span, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE, FORM,
            )  # fmt: skip
    loss, center, share, derivative = _finish(
        label_score, top, total, slopes, scale,
        tau, span, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE, FORM,
    )  # fmt: skip
    given = tl.load(target + row)
    is_counted = given != ignore_index
    is_invalid = is_counted & ((given < 0) | (given >= num_classes))
    if HAS_UNARY:
        unary_loss, unary_center, unary_share, unary_derivative = _finish(
            unary_label, unary_top, unary_total, unary_slopes, scale,
            tau, span, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE, FORM,
        )  # fmt: skip
        loss = (1.0 - unary) * loss + unary * unary_loss
        _store_stats(stats + 3 * size, row, size, unary_center, unary_share, unary_derivative, is_counted, is_invalid)
    _store_stats(stats, row, size, center, share, derivative, is_counted, is_invalid)
    tl.store(losses + row, tl.where(is_counted, tl.where(is_invalid, float("nan"), loss), 0.0))


@triton.jit
def _store_stats(stats, row, size, center, share, derivative, is_counted, is_invalid):
    nan = float("nan")
    share = tl.where(is_counted, tl.where(is_invalid, nan, share), 0.0)
    derivative = tl.where(is_counted, tl.where(is_invalid, nan, derivative), 0.0)
    tl.store(stats + row, center)
    tl.store(stats + size + row, share)
    tl.store(stats + 2 * size + row, derivative)


@triton.jit
def _tile_gradient(
    stats, row, in_rows, size, score, log_weight, upstream, inside,
    tau, span, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE: tl.constexpr, FORM: tl.constexpr,  # noqa: N803
):  # fmt: skip
    center = tl.load(stats + row, mask=in_rows, other=0.0)
    share = tl.load(stats + size + row, mask=in_rows, other=0.0)
    if FORM == 0:
        result = share * tl.exp(score + log_weight - center)
    else:
        is_used = inside & (log_weight != -float("inf")) & (score != -float("inf"))
        _, slope = surrogate(
            tl.where(is_used, center, 0.0), tl.where(is_used, score, 0.0),
            tau, span, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE,
        )  # fmt: skip
        result = share * tl.where(is_used, tl.exp(log_weight) * slope, tl.where(share == share, 0.0, share))
    # Rows without gradient: their scores may be NaN.
    return tl.where(inside & (share != 0.0), upstream * result, 0.0)


@triton.jit(do_not_specialize=["grad_stride", "size", "num_tiles", "width"])
def _score_gradient(
    grad_output, grad_stride, stats, scores, unary_scores, log_weight, weight_stride, weight_step, class_index,
    bias, bias_stride, start, end, first, last, gradient, edge_gradient, sums,
    size, num_candidates, num_tiles, width, unary,
    tau, span, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE: tl.constexpr, FORM: tl.constexpr,  # noqa: N803
    HAS_UNARY: tl.constexpr, HAS_BIAS: tl.constexpr, HAS_EDGES: tl.constexpr,  # noqa: N803
    IS_FULL: tl.constexpr, TILE_ROWS: tl.constexpr, TILE_CANDIDATES: tl.constexpr,  # noqa: N803
):  # fmt: skip
    tile = tl.program_id(0).to(tl.int64)
    row = (tile * TILE_ROWS + tl.arange(0, TILE_ROWS))[:, None]
    k = (tl.program_id(1) * TILE_CANDIDATES + tl.arange(0, TILE_CANDIDATES))[None, :]
    in_rows, in_candidates = row < size, k < num_candidates
    inside = in_rows & in_candidates
    is_first, is_last = ends(first, last, row, size, width, HAS_EDGES, IS_FULL)
    if HAS_EDGES:
        class_index += size
    label = tl.load(class_index + row, mask=in_rows, other=-1)
    class_index += size  # Labels come before the candidates.
    index = tl.load(class_index + k, mask=in_candidates, other=0)
    offset, full_offset = _offsets(
        index, in_candidates, bias, bias_stride, start, end, is_first, is_last, HAS_BIAS, HAS_EDGES
    )  # fmt: skip
    place = row * num_candidates + k
    weight = tl.load(log_weight + row * weight_stride + k * weight_step, mask=inside, other=-float("inf")).to(tl.float32)
    weight = tl.where(index == label, -float("inf"), weight)
    upstream = tl.load(grad_output + row * grad_stride, mask=in_rows, other=0.0).to(tl.float32)
    score = tl.load(scores + place, mask=inside, other=0.0).to(tl.float32) + full_offset
    part = upstream
    if HAS_UNARY:
        part = upstream * (1.0 - unary)
    result = _tile_gradient(
        stats, row, in_rows, size, score, weight, part, inside,
        tau, span, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE, FORM,
    )  # fmt: skip
    total = result
    if HAS_UNARY:
        score = tl.load(unary_scores + place, mask=inside, other=0.0).to(tl.float32) + offset
        total += _tile_gradient(
            stats + 3 * size, row, in_rows, size, score, weight, upstream * unary, inside,
            tau, span, sharpness, tail_scale, factor, parameter_1, parameter_2, BASE, FORM,
        )  # fmt: skip
    tl.store(gradient + place, total.to(gradient.dtype.element_ty), mask=inside)
    if HAS_UNARY:
        tl.store(edge_gradient + place, result.to(gradient.dtype.element_ty), mask=inside)
    tl.store(sums + tile * num_candidates + k, tl.sum(total, 0)[None, :], mask=in_candidates)
    if HAS_EDGES:
        place = (num_tiles + tile) * num_candidates + k
        tl.store(sums + place, tl.sum(tl.where(is_first, result, 0.0), 0)[None, :], mask=in_candidates)
        place += tl.full((), num_tiles, tl.int64) * num_candidates
        tl.store(sums + place, tl.sum(tl.where(is_last, result, 0.0), 0)[None, :], mask=in_candidates)
