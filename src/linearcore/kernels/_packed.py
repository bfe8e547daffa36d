"""Products of thin matrices with one square matrix, many times over."""

import torch
from torch import Tensor

from linearcore._torch import linear, packed_linear

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
        if times >= WORTH_PACKING and rows > 1:
            self._packed = packed_linear(matrix, rows)

    def __call__(self, x: Tensor, out: Tensor) -> Tensor:
        """x @ matrix, written to `out` (B, N)."""
        if self._packed is None:
            return torch.mm(x, self._matrix, out=out)
        return out.copy_(linear(x, self._packed))
