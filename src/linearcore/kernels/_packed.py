"""Products of thin matrices with one square matrix, many times over."""

import torch
from torch import Tensor

#: Fewer products than this do not pay for packing the matrix (measured with 1000 and 4000 columns).
WORTH_PACKING = 20


class Multiplier:
    """x ↦ x @ matrix for x (B, K), to be called `times` times.

    On a CPU a product of a few rows is bound by reading the matrix, and the BLAS behind torch.mm lays it out anew for every
    call. oneDNN can do that once: half the time with 1000 columns, a third with 4000. Used for float32, where torch has it.

    Args:
        matrix: (K, N).
        rows: B, which the layout is made for.
        times: how often it will be called.
    """

    def __init__(self, matrix: Tensor, rows: int, times: int) -> None:
        self._matrix = matrix
        self._packed: Tensor | None = None
        if times >= WORTH_PACKING and _can_pack(matrix) and rows > 1:
            self._packed = torch.ops.mkldnn._reorder_linear_weight(matrix.t().contiguous(), rows)

    def __call__(self, x: Tensor, out: Tensor) -> Tensor:
        """x @ matrix, written to `out` (B, N)."""
        if self._packed is None:
            return torch.mm(x, self._matrix, out=out)
        return out.copy_(torch.ops.mkldnn._linear_pointwise(x, self._packed, None, "none", [], ""))


def _can_pack(matrix: Tensor) -> bool:
    # The two operators are torch's own way to pack weights (its compiler uses them), but no documented interface: where
    # they are missing or renamed, torch.mm does the work.
    is_there = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    return (
        is_there
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
        and (matrix.device.type == "cpu" and matrix.dtype == torch.float32 and matrix.numel() > 0)
    )
