"""Arguments that the kernels of sampled losses share; see `kernels._sampled`."""

import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels._sampled_types import SampledRows

#: Columns that a program processes at a time.
BLOCK = 1024
_FEW_COLUMNS = 128


def warps(block: int) -> int:
    return 1 if block <= _FEW_COLUMNS else 4


def flags(rows: SampledRows) -> dict[str, bool]:
    edges = rows.edges is not None
    return {"HAS_BIAS": rows.bias is not None, "HAS_EDGES": edges, "IS_FULL": edges and rows.neighbours is None}


def vectors(rows: SampledRows) -> tuple[Tensor | int, ...]:
    """Returns bias, its stride, start and end; the weight stands for what there is not, here and below."""
    bias = (rows.weight, 1) if rows.bias is None else (rows.bias, rows.bias.stride(0))
    edges = (rows.weight, rows.weight) if rows.edges is None else (rows.edges.start, rows.edges.end)
    return *bias, *edges


def factors(rows: SampledRows) -> tuple[Tensor, Tensor]:
    """Returns sources and targets."""
    return (rows.weight, rows.weight) if rows.edges is None else (rows.edges.sources, rows.edges.targets)


def neighbours(rows: SampledRows) -> tuple[Tensor, ...]:
    """Returns previous tags, next tags, and whether rows are first and last."""
    return (rows.target,) * 4 if rows.neighbours is None else rows.neighbours


@triton.jit
def ends(first, last, row, size, width, HAS_EDGES: tl.constexpr, IS_FULL: tl.constexpr):  # noqa: N803
    """Returns whether rows are the first and the last of their sequence."""
    if IS_FULL:
        is_first, is_last = row < width, row >= size - width
    elif HAS_EDGES:
        inside = row < size
        is_first = tl.load(first + row, mask=inside, other=0) != 0
        is_last = tl.load(last + row, mask=inside, other=0) != 0
    else:
        is_first, is_last = row < 0, row < 0
    return is_first, is_last
