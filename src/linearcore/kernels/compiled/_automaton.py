"""Log-partition function and best path of an acyclic automaton (`automaton.c`)."""

import struct
from collections.abc import Callable

import torch
from torch import Tensor

from linearcore._torch import is_plain
from linearcore.kernels.compiled._chain import NotCompiledError, call_kernel
from linearcore.kernels.compiled._gradient import with_gradient
from linearcore.kernels.compiled._library import has_compiled_kernels
from linearcore.structures.automata import Plan

_DTYPES = (torch.float32, torch.float64)
#: Arcs have numbers of 4 bytes.
_MAX_ARCS = 2**30
_CALL = struct.Struct("=4Q7q3Q2q")


def can_compile_automaton(scores: Tensor) -> bool:
    """Whether the kernels support scores (B, A): ordinary float32 or float64 tensors on a CPU that are not empty."""
    is_supported = scores.dtype in _DTYPES and 0 < scores.shape[-1] <= _MAX_ARCS and scores.shape[0] > 0
    return is_supported and is_plain(scores) and has_compiled_kernels()


def compiled_path_logsumexp(scores: Tensor, plan: Plan, reference: Callable[[Tensor], Tensor]) -> Tensor | None:
    """Returns log Z (B,), or None if a score or a sum of scores is +inf or NaN: the caller then uses another backend.

    Args:
        scores: (B, A), with `can_compile_automaton(scores)`.
        plan: order of the arcs.
        reference: the same values with plain autograd, for second derivatives.

    Time O(B·A). Memory: 4 or 8 rows of scores for each thread. If a gradient is needed, it is computed with the values.
    """

    def kernel(scores: Tensor, _: Tensor, gradient: Tensor | None) -> Tensor | None:
        # The kernel writes rows; an empty tensor like strided scores has their order.
        is_contiguous = gradient is None or gradient.is_contiguous()
        rows = gradient if is_contiguous else torch.empty_like(scores, memory_format=torch.contiguous_format)
        values = _call(scores, plan, rows, None)
        if values is not None and gradient is not None and rows is not None and not is_contiguous:
            gradient.copy_(rows)
        return values

    return with_gradient(kernel, lambda leaf, _: reference(leaf), scores, plan.incoming.arc)


def compiled_best_path(scores: Tensor, plan: Plan) -> tuple[Tensor, Tensor] | None:
    """Returns the arcs (B, M) of a path with the highest score, −100 after its end, and its score (B,); no gradient.

    None if the kernels do not support the scores, or if a score or a sum of scores is +inf or NaN. Scores and arcs are
    equal to those of the other implementation, also if several paths have the highest score.

    Args:
        scores: (B, A).
        plan: order of the arcs.

    Time O(B·A). Memory: 4 or 8 rows of scores for each thread.
    """
    if not can_compile_automaton(scores):
        return None
    arcs = scores.new_empty((scores.shape[0], plan.max_length), dtype=torch.int64)
    values = _call(scores.detach(), plan, None, arcs)
    return None if values is None else (arcs, values)


def _call(scores: Tensor, plan: Plan, gradient: Tensor | None, path: Tensor | None) -> Tensor | None:
    """Returns log Z, or the best scores with `path`, and fills `gradient` or `path`. None if that is not possible."""
    scores = scores if scores.stride(1) == 1 else scores.contiguous()
    values, incoming = scores.new_empty(scores.shape[0]), plan.incoming
    packed = _CALL.pack(
        scores.data_ptr(),
        *(part.data_ptr() for part in incoming),
        *scores.shape,
        len(incoming.arc),
        len(incoming.first) - 1,
        plan.max_length,
        scores.stride(0),
        scores.dtype == torch.float64,
        values.data_ptr(),
        0 if gradient is None else gradient.data_ptr(),
        0 if path is None else path.data_ptr(),
        torch.get_num_threads(),
        0,
    )
    try:
        call_kernel("lc_automaton", packed)
    except NotCompiledError:
        return None
    return values
