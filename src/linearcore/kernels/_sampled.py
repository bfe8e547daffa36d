"""Losses of rows with sampled candidate classes that all rows share, without a tensor of size rows × classes.

    s[n, k] = hidden[n] · weight[c_k] + bias[c_k]

In a chain the scores of transitions are added: sources[before_n] · targets[c_k], or start[c_k] at a first position, and
targets[after_n] · sources[c_k], or end[c_k] at a last position. before_n and after_n are the tags before and after position
n; `edges` are these four tables of the chain. The score of the label is computed by the same formula with c_k = label. The
loss of a row is a form over these scores. A *table* is a parameter with one row or entry per class: weight, bias, start,
end, sources or targets.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from linearcore.kernels import compiled
from linearcore.kernels._backend import compute_gradients
from linearcore.kernels._fused import fused_kernels_for
from linearcore.kernels._products import has_unrounded_product
from linearcore.kernels._sampled_types import Gathered, SampledRows, TableGradients
from linearcore.kernels.compiled import NotCompiledError

#: Returns the losses of hidden, weight, bias, start, end, sources and targets with plain autograd.
Reference = Callable[..., Tensor]


def sampled_rows(
    hidden: Tensor, rows: SampledRows, kernels: ModuleType, reference: Reference, *, sparse: bool, dtype: torch.dtype
) -> Tensor:
    """Returns the losses (N,), float32, or float64 for hidden states in float64.

    Args:
        hidden: (N, H).
        rows: labels, candidates and tables (`SampledRows`).
        kernels: `kernels.fused` or `kernels.compiled`: `gather_rows`, `row_losses`, `score_gradient`, `table_gradients`.
        reference: the same losses with plain autograd, for second derivatives.
        sparse: sparse gradients for all tables.
        dtype: dtype of the products with `weight`.

    Time O(N·K·(H + r)); memory O(N·K + (N + K)·(H + r)).
    """
    edges = rows.edges or (None,) * 4
    tables = rows.weight, rows.bias, *edges
    try:
        losses: Tensor = _SampledRows.apply(hidden, *tables, rows, kernels, reference, sparse, dtype)  # type: ignore[no-untyped-call]
    except NotCompiledError:
        return reference(hidden, *tables)
    return losses


def sampled_kernels(backend: str, *tensors: Tensor) -> ModuleType | None:
    """Returns the kernels of a resolved backend for `sampled_rows`, or None for the reference."""
    if backend == "compiled":
        return compiled
    return fused_kernels_for(*tensors) if backend == "fused" else None


class _SampledRows(torch.autograd.Function):
    """Double backward uses the reference."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, start: Tensor | None, end: Tensor | None,
        sources: Tensor | None, targets: Tensor | None, rows: SampledRows, kernels: ModuleType, reference: Reference,
        sparse: bool, dtype: torch.dtype,
    ) -> Tensor:  # fmt: skip
        gathered = kernels.gather_rows(hidden, rows, dtype)
        width = hidden.shape[1]
        with torch.autocast(hidden.device.type, enabled=False):
            scores, unary_scores = gathered.rows @ gathered.candidate_rows.t(), None
            if rows.unary:
                unary_scores = gathered.rows[:, :width] @ gathered.candidate_rows[:, :width].t()
        losses, stats = kernels.row_losses(scores, unary_scores, gathered, rows)
        ctx.save_for_backward(
            hidden, weight, bias, start, end, sources, targets, rows.target, rows.candidates, rows.log_weight,
            scores, unary_scores, stats, *gathered,
        )  # fmt: skip
        ctx.options = rows, kernels, reference, sparse, dtype
        return losses  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        inputs = ctx.saved_tensors[:7]
        rows, kernels, reference, sparse, dtype = ctx.options
        needs = ctx.needs_input_grad[:7]
        if torch.is_grad_enabled():
            present = [tensor for tensor in inputs if tensor is not None]
            needs_grad = [need for need, tensor in zip(needs, inputs, strict=True) if tensor is not None]
            results = compute_gradients(reference(*inputs), present, grad_output, needs_grad, create_graph=True)
            remaining = iter(results)
            return *(None if tensor is None else next(remaining) for tensor in inputs), *(None,) * 5
        scores, unary_scores, stats, *parts = ctx.saved_tensors[10:]
        gathered = Gathered(*parts)
        gradient, edge_gradient, sums = kernels.score_gradient(
            grad_output, stats, scores, unary_scores, gathered, rows, dtype
        )
        with torch.autocast(gradient.device.type, enabled=False):
            products = _products(gradient, edge_gradient, gathered, inputs[0].shape[1])
        gradients = kernels.table_gradients(grad_output, stats, *products, sums, gathered, inputs[0], rows, needs)
        return *_as_tensors(gradients, gathered.index, inputs, needs, sparse=sparse), *(None,) * 5


def _products(gradient: Tensor, edge_gradient: Tensor, gathered: Gathered, width: int) -> tuple[Tensor, Tensor]:
    """Back-propagates the gradient of the candidates' scores to `gathered.rows` and `gathered.candidate_rows`.

    The first `width` columns, the hidden states, use `gradient`; the others, the transitions, use `edge_gradient`. The first
    result is float32 for half precisions: the gradient of the label, which nearly cancels it, is added before it is rounded.
    """
    rows, candidates = gathered.rows, gathered.candidate_rows
    if edge_gradient is gradient:
        return _unrounded_product(gradient, candidates), gradient.t() @ rows
    parts = (gradient, slice(width)), (edge_gradient, slice(width, None))
    grad_rows = torch.cat([_unrounded_product(part, candidates[:, columns]) for part, columns in parts], 1)
    return grad_rows, torch.cat([part.t() @ rows[:, columns] for part, columns in parts], 1)


def _unrounded_product(left: Tensor, right: Tensor) -> Tensor:
    if left.dtype in (torch.float32, torch.float64):
        return left @ right
    if has_unrounded_product(left, right):
        return torch.mm(left, right, out_dtype=torch.float32)
    return left.float() @ right.float()


def _as_tensors(
    gradients: TableGradients, index: Tensor, inputs: tuple[Tensor | None, ...], needs: tuple[bool, ...], *, sparse: bool
) -> list[Tensor | None]:
    """Returns the gradients of hidden, weight, bias, start, end, sources and targets."""
    own = index[:1, -gradients.vectors.shape[1] :]  # Labels and candidates.
    values = [(own, gradients.weight), (own, gradients.vectors[0])]
    if len(index) == 2:
        values += [(own, gradients.vectors[1]), (own, gradients.vectors[2])]
        edges = (None, None) if gradients.edges is None else gradients.edges
        values += [(index[1:], edges[1]), (index[:1], edges[0])]
    results: list[Tensor | None] = [gradients.hidden, *(None,) * 6]
    for place, (rows, part) in enumerate(values, 1):
        table = inputs[place]
        if needs[place] and table is not None and part is not None:
            results[place] = _table_gradient(table, rows, part, sparse=sparse)
    return results


def _table_gradient(table: Tensor, index: Tensor, values: Tensor, *, sparse: bool) -> Tensor:
    """Returns the gradient of a table with `values` at the rows `index` (1, M), which may repeat."""
    if values.dtype != table.dtype:
        values = values.to(table.dtype)
    if sparse:
        return torch.sparse_coo_tensor(index, values, table.shape, check_invariants=False)
    return torch.zeros_like(table, memory_format=torch.contiguous_format).index_put_((index[0],), values, accumulate=True)
