"""Rows of the tables of a sampled loss: look-ups with the scores of the labels, and gradients; one launch each."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels._sampled_types import Gathered, SampledRows, TableGradients
from linearcore.kernels.fused._device import on_tensor_device
from linearcore.kernels.fused._sampled_arguments import BLOCK, ends, factors, flags, neighbours, vectors, warps


@on_tensor_device
def gather_rows(hidden: Tensor, rows: SampledRows, dtype: torch.dtype) -> Gathered:
    """Looks up rows, in `dtype`, and computes the scores of the labels, float32."""
    size, num_candidates, rank, columns = rows.size, rows.num_candidates, rows.rank, hidden.shape[1]
    has_edges, device, weight = rows.edges is not None, hidden.device, rows.weight
    width = columns + 2 * rank
    packed = torch.empty(size, width, dtype=dtype, device=device) if has_edges else hidden.to(dtype)
    candidate_rows = torch.empty(num_candidates, width, dtype=dtype, device=device)
    label_scores = torch.empty(2 if has_edges else 1, size, dtype=torch.float32, device=device)
    lead = size if has_edges else 0
    index = torch.empty(len(label_scores), lead + size + num_candidates, dtype=torch.int64, device=device)
    if size + num_candidates:
        block = min(BLOCK, triton.next_power_of_2(max(1, columns)))
        _gather[(size + num_candidates,)](
            hidden, *hidden.stride(), weight, *weight.stride(), *vectors(rows), *factors(rows), rows.target, rows.candidates,
            *neighbours(rows), packed, candidate_rows, label_scores, index, size, num_candidates, weight.shape[0], columns,
            rank, rows.ignore_index, rows.width,
            **flags(rows), BLOCK=block, BLOCK_RANK=triton.next_power_of_2(max(1, rank)), num_warps=warps(block),
        )  # fmt: skip
    return Gathered(packed, candidate_rows, label_scores, index)


@on_tensor_device
def table_gradients(
    grad_output: Tensor, stats: Tensor, grad_rows: Tensor, grad_candidates: Tensor, sums: Tensor, gathered: Gathered,
    hidden: Tensor, rows: SampledRows, needs: tuple[bool, ...],
) -> TableGradients:  # fmt: skip
    """Adds the gradients of the label scores, and writes all gradients to where they belong.

    Args:
        grad_output: (N,) gradients of the losses.
        stats: from `row_losses`.
        grad_rows, grad_candidates: gradients of `gathered.rows` and `gathered.candidate_rows` by the candidates' scores.
        sums: from `score_gradient`.
        gathered, hidden, rows: as in `gather_rows`.
        needs: for hidden, weight, bias, start, end, sources and targets: whether the gradient is needed.
    """
    (size, columns), num_candidates, device = hidden.shape, rows.num_candidates, hidden.device
    length = size + num_candidates
    grad_hidden = torch.empty(size, columns, dtype=hidden.dtype, device=device) if needs[0] else None
    weight_values = torch.empty(length, columns, dtype=rows.weight.dtype, device=device) if needs[1] else None
    has_edges = needs[5] or needs[6]
    edge_values = torch.empty(2, size + length, rows.rank, dtype=torch.float32, device=device) if has_edges else None
    vector_values = torch.empty(len(sums), length, dtype=torch.float32, device=device)
    if length:
        block = min(BLOCK, triton.next_power_of_2(max(1, columns)))
        unused = vector_values
        _row_gradient[(length,)](
            grad_output, *grad_output.stride(), stats, hidden, *hidden.stride(), rows.weight, *rows.weight.stride(),
            *factors(rows), *neighbours(rows)[2:], gathered.rows, gathered.index, grad_rows, grad_candidates, sums,
            unused if grad_hidden is None else grad_hidden, unused if weight_values is None else weight_values,
            unused if edge_values is None else edge_values, vector_values,
            size, num_candidates, columns, rows.rank, sums.shape[1], rows.width, rows.unary,
            HAS_UNARY=len(stats) == 2, HAS_HIDDEN=needs[0], HAS_WEIGHT=needs[1], HAS_FACTORS=has_edges, **flags(rows),
            BLOCK=block, BLOCK_RANK=triton.next_power_of_2(max(1, rows.rank)), num_warps=warps(block),
        )  # fmt: skip
    return TableGradients(grad_hidden, weight_values, vector_values, edge_values)


@triton.jit(do_not_specialize=["size", "num_candidates", "num_classes", "ignore_index", "width"])
def _gather(
    hidden, hidden_stride, hidden_step, weight, weight_stride, weight_step, bias, bias_stride, start, end, sources, targets,
    target, candidates, before, after, first, last, packed, candidate_rows, label_scores, index,
    size, num_candidates, num_classes, columns, rank, ignore_index, width,
    HAS_BIAS: tl.constexpr, HAS_EDGES: tl.constexpr, IS_FULL: tl.constexpr,  # noqa: N803
    BLOCK: tl.constexpr, BLOCK_RANK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    length, packed_width = size + num_candidates, columns + 2 * rank
    if HAS_EDGES:
        length += size
    dtype = candidate_rows.dtype.element_ty
    if row < size:
        label = tl.load(target + row)
        label = tl.where(label == ignore_index, 0, label)
        label = tl.minimum(tl.maximum(label, 0), num_classes - 1)
        products = tl.zeros((BLOCK,), tl.float32)
        for begin in range(0, columns, BLOCK):
            column = begin + tl.arange(0, BLOCK)
            inside = column < columns
            x = tl.load(hidden + row * hidden_stride + column * hidden_step, mask=inside, other=0.0)
            w = tl.load(weight + label * weight_stride + column * weight_step, mask=inside, other=0.0)
            products += x.to(tl.float32) * w.to(tl.float32)
            if HAS_EDGES:
                tl.store(packed + row * packed_width + column, x.to(dtype), mask=inside)
        score = tl.sum(products, 0)
        if HAS_BIAS:
            score += tl.load(bias + label * bias_stride).to(tl.float32)
        tl.store(label_scores + row, score)
        if HAS_EDGES:
            is_first, is_last = ends(first, last, row, size, width, HAS_EDGES, IS_FULL)
            if IS_FULL:
                previous = tl.load(target + row - width, mask=row >= width, other=0)
                following = tl.load(target + row + width, mask=row < size - width, other=0)
                previous = tl.minimum(tl.maximum(previous, 0), num_classes - 1)
                following = tl.minimum(tl.maximum(following, 0), num_classes - 1)
            else:
                previous, following = tl.load(before + row), tl.load(after + row)
            score += tl.load(start + label, mask=is_first, other=0.0) + tl.load(end + label, mask=is_last, other=0.0)
            score += _gather_edges(
                label, previous, following, is_first, is_last, sources, targets,
                packed + row * packed_width + columns, rank, BLOCK_RANK,
            )  # fmt: skip
            tl.store(label_scores + size + row, score)
            tl.store(index + row, following)
            tl.store(index + length + row, previous)
            tl.store(index + size + row, label)
            tl.store(index + length + size + row, label)
        else:
            tl.store(index + row, label)
    else:
        _gather_candidate(
            row - size, weight, weight_stride, weight_step, sources, targets, candidates, candidate_rows, index,
            size, num_classes, columns, rank, length, HAS_EDGES, BLOCK, BLOCK_RANK,
        )  # fmt: skip


@triton.jit
def _gather_candidate(
    k, weight, weight_stride, weight_step, sources, targets, candidates, candidate_rows, index,
    size, num_classes, columns, rank, length, HAS_EDGES: tl.constexpr,  # noqa: N803
    BLOCK: tl.constexpr, BLOCK_RANK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    dtype = candidate_rows.dtype.element_ty
    place = candidate_rows + k * (columns + 2 * rank)
    label = tl.load(candidates + k)
    is_class = (label >= 0) & (label < num_classes)
    label = tl.where(is_class, label, 0)
    for begin in range(0, columns, BLOCK):
        column = begin + tl.arange(0, BLOCK)
        inside = column < columns
        w = tl.load(weight + label * weight_stride + column * weight_step, mask=inside, other=0.0)
        # A proposal must not return other classes; if it does, the loss is NaN.
        tl.store(place + column, tl.where(is_class, w, float("nan")).to(dtype), mask=inside)
    if HAS_EDGES:
        factor = tl.arange(0, BLOCK_RANK)
        in_rank = factor < rank
        place += columns + factor
        tl.store(place, tl.load(targets + label * rank + factor, mask=in_rank, other=0.0).to(dtype), mask=in_rank)
        tl.store(place + rank, tl.load(sources + label * rank + factor, mask=in_rank, other=0.0).to(dtype), mask=in_rank)
        tl.store(index + 2 * size + k, label)
        tl.store(index + length + 2 * size + k, label)
    else:
        tl.store(index + size + k, label)


@triton.jit
def _gather_edges(
    label, previous, following, is_first, is_last, sources, targets, place, rank, BLOCK_RANK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Writes the factors of a row's neighbours to `place`, and returns the scores of the transitions to and from `label`."""
    factor = tl.arange(0, BLOCK_RANK)
    in_rank = factor < rank
    dtype = place.dtype.element_ty
    left = tl.where(is_first, 0.0, tl.load(sources + previous * rank + factor, mask=in_rank, other=0.0))
    right = tl.where(is_last, 0.0, tl.load(targets + following * rank + factor, mask=in_rank, other=0.0))
    tl.store(place + factor, left.to(dtype), mask=in_rank)
    tl.store(place + rank + factor, right.to(dtype), mask=in_rank)
    left *= tl.load(targets + label * rank + factor, mask=in_rank, other=0.0)
    right *= tl.load(sources + label * rank + factor, mask=in_rank, other=0.0)
    return tl.sum(left, 0) + tl.sum(right, 0)


@triton.jit(do_not_specialize=["grad_stride", "size", "num_candidates", "num_tiles", "width"])
def _row_gradient(
    grad_output, grad_stride, stats, hidden, hidden_stride, hidden_step, weight, weight_stride, weight_step,
    sources, targets, first, last, packed, index, grad_rows, grad_candidates, sums,
    grad_hidden, weight_values, edge_values, vector_values, size, num_candidates, columns, rank, num_tiles, width, unary,
    HAS_UNARY: tl.constexpr, HAS_HIDDEN: tl.constexpr, HAS_WEIGHT: tl.constexpr, HAS_FACTORS: tl.constexpr,  # noqa: N803
    HAS_BIAS: tl.constexpr, HAS_EDGES: tl.constexpr, IS_FULL: tl.constexpr,  # noqa: N803
    BLOCK: tl.constexpr, BLOCK_RANK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    length, packed_width = size + num_candidates, columns + 2 * rank
    if row < size:
        upstream = tl.load(grad_output + row * grad_stride).to(tl.float32)
        slope = upstream * tl.load(stats + 2 * size + row)
        total = slope
        if HAS_UNARY:
            slope *= 1.0 - unary
            total = slope + unary * upstream * tl.load(stats + 5 * size + row)
        labels = index
        if HAS_EDGES:
            labels += size
        label = tl.load(labels + row)
        for begin in range(0, columns, BLOCK):
            column = begin + tl.arange(0, BLOCK)
            inside = column < columns
            if HAS_WEIGHT:
                x = tl.load(hidden + row * hidden_stride + column * hidden_step, mask=inside, other=0.0).to(tl.float32)
                tl.store(weight_values + row * columns + column, (total * x).to(weight_values.dtype.element_ty), mask=inside)
            if HAS_HIDDEN:
                w = tl.load(weight + label * weight_stride + column * weight_step, mask=inside, other=0.0).to(tl.float32)
                x = tl.load(grad_rows + row * packed_width + column, mask=inside, other=0.0).to(tl.float32) + total * w
                tl.store(grad_hidden + row * columns + column, x.to(grad_hidden.dtype.element_ty), mask=inside)
        tl.store(vector_values + row, total)
        if HAS_EDGES:
            is_first, is_last = ends(first, last, row, size, width, HAS_EDGES, IS_FULL)
            tl.store(vector_values + length + row, tl.where(is_first, slope, 0.0))
            tl.store(vector_values + 2 * length + row, tl.where(is_last, slope, 0.0))
            if HAS_FACTORS:
                _row_edges(
                    row, slope, label, is_first, is_last, sources, targets, packed + row * packed_width + columns,
                    grad_rows + row * packed_width + columns, edge_values, size, length + size, rank, BLOCK_RANK,
                )  # fmt: skip
    else:
        _candidate_gradient(
            grad_candidates, sums, weight_values, edge_values, vector_values, row, row - size, size, num_candidates, columns,
            rank, num_tiles, HAS_WEIGHT, HAS_FACTORS, HAS_EDGES, BLOCK, BLOCK_RANK,
        )  # fmt: skip


@triton.jit
def _candidate_gradient(
    grad_candidates, sums, weight_values, edge_values, vector_values, row, k, size, num_candidates, columns, rank, num_tiles,
    HAS_WEIGHT: tl.constexpr, HAS_FACTORS: tl.constexpr, HAS_EDGES: tl.constexpr,  # noqa: N803
    BLOCK: tl.constexpr, BLOCK_RANK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Writes the gradients of candidate k, which has the values `row`."""
    length = size + num_candidates
    grad_candidates += k * (columns + 2 * rank)
    if HAS_WEIGHT:
        for begin in range(0, columns, BLOCK):
            column = begin + tl.arange(0, BLOCK)
            x = tl.load(grad_candidates + column, mask=column < columns, other=0.0)
            place = weight_values + row * columns + column
            tl.store(place, x.to(weight_values.dtype.element_ty), mask=column < columns)
    if HAS_FACTORS:
        factor = tl.arange(0, BLOCK_RANK)
        in_rank = factor < rank
        for part in tl.static_range(2):
            x = tl.load(grad_candidates + columns + part * rank + factor, mask=in_rank, other=0.0)
            place = (part * (length + size) + size + row) * rank + factor
            tl.store(edge_values + place, x.to(tl.float32), mask=in_rank)
    _sum_tiles(sums, vector_values, row, k, num_tiles, num_candidates, length)
    if HAS_EDGES:
        # Not `num_tiles.to(…)`: Triton passes 1 as a Python int.
        stride = tl.full((), num_tiles, tl.int64) * num_candidates
        _sum_tiles(sums + stride, vector_values + length, row, k, num_tiles, num_candidates, length)
        _sum_tiles(sums + 2 * stride, vector_values + 2 * length, row, k, num_tiles, num_candidates, length)


@triton.jit
def _row_edges(
    row, slope, label, is_first, is_last, sources, targets, edges, grad_edges, edge_values, size, length, rank,
    BLOCK_RANK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Writes the gradients of the neighbours' rows, and those of the label's row, of targets and of sources."""
    factor = tl.arange(0, BLOCK_RANK)
    in_rank = factor < rank
    for part in tl.static_range(2):
        table = sources if part == 0 else targets
        is_end = is_last if part == 0 else is_first
        place = edge_values + (part * length + row) * rank + factor
        # `edges` and `grad_edges` have the sources of the previous tag, then the targets of the next one.
        value = tl.load(grad_edges + (1 - part) * rank + factor, mask=in_rank, other=0.0).to(tl.float32)
        value += slope * tl.load(table + label * rank + factor, mask=in_rank, other=0.0)
        tl.store(place, tl.where(is_end, 0.0, value), mask=in_rank)
        x = tl.load(edges + part * rank + factor, mask=in_rank, other=0.0).to(tl.float32)
        tl.store(place + size * rank, slope * x, mask=in_rank)


@triton.jit
def _sum_tiles(sums, vector_values, row, k, num_tiles, num_candidates, length):
    total = tl.zeros((128,), tl.float32)
    for begin in range(0, num_tiles, 128):
        tile = begin + tl.arange(0, 128)
        total += tl.load(sums + tile.to(tl.int64) * num_candidates + k, mask=tile < num_tiles, other=0.0)
    tl.store(vector_values + row, tl.sum(total, 0))
