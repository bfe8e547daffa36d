"""Losses of rows with sampled candidates on a CPU (`sampled.c`): the kernels that `kernels.sampled_rows` calls."""

import struct

import torch
from torch import Tensor

from linearcore._torch import is_plain
from linearcore.kernels._fused import fused_kernels_for
from linearcore.kernels._sampled_types import Gathered, SampledRows, TableGradients
from linearcore.kernels.compiled._chain import NotCompiledError, call_kernel
from linearcore.kernels.compiled._dense import packed_loss
from linearcore.kernels.compiled._library import entry

_ROWS = struct.Struct("=9q2d7Q2q3Q2q4Q4Q4QqQq9Q")
_GRADIENTS = (
    "gradient", "edge_gradient", "sums", "grad_rows", "grad_candidates", "grad_hidden", "weight_values", "edge_values",
    "vector_values",
)  # fmt: skip
_NO_TENSORS = (None,) * 4
_DTYPES = (torch.float32, torch.float64)


def can_compile_sampled(hidden: Tensor, tables: tuple[Tensor | None, ...]) -> bool:
    """Whether the kernels support hidden states (N, H) and tables: one dtype, float32 or float64, contiguous rows.

    False under autocast, and where Triton's interpreter is active, which is for tests of the fused kernels.
    """
    if hidden.dtype not in _DTYPES or not is_plain(hidden) or hidden.shape[1] == 0 or entry("lc_sampled_gather") is None:
        return False
    if fused_kernels_for(hidden) is not None or torch.is_autocast_enabled("cpu"):
        return False
    given = [table for table in tables if table is not None]
    return all(table.dtype == hidden.dtype and is_plain(table) and table.stride(-1) == 1 for table in given)


def gather_rows(hidden: Tensor, rows: SampledRows, dtype: torch.dtype) -> Gathered:
    """See `kernels.fused.gather_rows`; raises NotCompiledError if a class is out of range."""
    inputs = rows.target, rows.candidates, rows.log_weight, *(rows.neighbours or ())
    if not all(map(is_plain, inputs)):
        raise NotCompiledError
    size, count, has_edges = rows.size, rows.num_candidates, rows.edges is not None
    width = hidden.shape[1] + 2 * rows.rank
    gathered = Gathered(
        hidden.new_empty(size, width) if has_edges else hidden, hidden.new_empty(count, width),
        hidden.new_empty(2 if has_edges else 1, size),
        rows.target.new_empty(2 if has_edges else 1, (2 * size if has_edges else size) + count),
    )  # fmt: skip
    _call("lc_sampled_gather", hidden, rows, gathered)
    return gathered


def row_losses(scores: Tensor, unary_scores: Tensor | None, gathered: Gathered, rows: SampledRows) -> tuple[Tensor, Tensor]:
    """See `kernels.fused.row_losses`; raises NotCompiledError if a score or a loss is infinite or NaN."""
    losses = scores.new_empty(rows.size)
    stats = scores.new_empty(1 if unary_scores is None else 2, 3, rows.size)
    _call("lc_sampled_losses", None, rows, gathered, scores=scores, unary_scores=unary_scores, losses=losses, stats=stats)
    return losses, stats


def score_gradient(
    grad_output: Tensor, stats: Tensor, scores: Tensor, unary_scores: Tensor | None, gathered: Gathered, rows: SampledRows,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """See `kernels.fused.score_gradient`; there is one tile."""
    gradient = torch.empty_like(scores)
    edge_gradient = gradient if unary_scores is None else torch.empty_like(scores)
    sums = scores.new_empty(2 * len(gathered.index) - 1, 1, rows.num_candidates)
    _call(
        "lc_sampled_score_gradient", None, rows, gathered, scores=scores, unary_scores=unary_scores, stats=stats,
        grad_output=grad_output, gradient=gradient, edge_gradient=edge_gradient, sums=sums,
    )  # fmt: skip
    return gradient, edge_gradient, sums


def table_gradients(
    grad_output: Tensor, stats: Tensor, grad_rows: Tensor, grad_candidates: Tensor, sums: Tensor, gathered: Gathered,
    hidden: Tensor, rows: SampledRows, needs: tuple[bool, ...],
) -> TableGradients:  # fmt: skip
    """See `kernels.fused.table_gradients`."""
    length = rows.size + rows.num_candidates
    has_edges = needs[5] or needs[6]
    gradients = TableGradients(
        torch.empty_like(hidden, memory_format=torch.contiguous_format) if needs[0] else None,
        hidden.new_empty(length, hidden.shape[1]) if needs[1] else None,
        hidden.new_empty(len(sums), length),
        hidden.new_empty(2, rows.size + length, rows.rank) if has_edges else None,
    )
    _call(
        "lc_sampled_table_gradients", hidden, rows, gathered, stats=stats, grad_output=grad_output, sums=sums,
        grad_rows=grad_rows, grad_candidates=grad_candidates, grad_hidden=gradients.hidden, weight_values=gradients.weight,
        edge_values=gradients.edges, vector_values=gradients.vectors,
    )  # fmt: skip
    return gradients


def _call(name: str, hidden: Tensor | None, rows: SampledRows, gathered: Gathered, **others: Tensor | None) -> None:
    """Packs the rows, and the other tensors by their names in `sampled.c`; those not given are NULL."""
    hidden = gathered.rows if hidden is None else hidden  # Any tensor of the dtype, where it is not read.
    hidden = hidden if hidden.stride(1) == 1 else hidden.contiguous()
    log_weight = rows.log_weight.to(hidden.dtype)
    stats, grad_output = others.get("stats"), others.get("grad_output")
    packed = _ROWS.pack(
        rows.size, rows.num_candidates, rows.weight.shape[0], rows.weight.shape[1], rows.rank, rows.width,
        rows.ignore_index, hidden.dtype == torch.float64, torch.get_num_threads(), rows.unary, rows.scale,
        *map(_address, (hidden, rows.weight, rows.bias, *(rows.edges or _NO_TENSORS))),
        hidden.stride(0), rows.weight.stride(0),
        *map(_address, (rows.target, rows.candidates, log_weight)), *log_weight.stride(),
        *map(_address, rows.neighbours or _NO_TENSORS), *map(_address, gathered),
        *(_address(others.get(name)) for name in ("scores", "unary_scores", "losses", "stats")),
        stats is not None and len(stats) == 2, _address(grad_output), 0 if grad_output is None else grad_output.stride(0),
        *(_address(others.get(name)) for name in _GRADIENTS),
    )  # fmt: skip
    call_kernel(name, packed_loss(rows.code) + packed)


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()
