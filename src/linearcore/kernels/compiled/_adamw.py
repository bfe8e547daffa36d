"""AdamW for sparse gradients on a CPU (`adamw.c`)."""

import struct

import torch
from torch import Tensor

from linearcore._torch import is_plain
from linearcore.kernels._adamw_types import AdamWStep
from linearcore.kernels.compiled._library import entry

_CALL = struct.Struct("=6Q6q5d")
_DTYPES = (torch.float32, torch.float64)


def compiled_adamw(
    tables: tuple[Tensor, Tensor, Tensor], last_step: Tensor | None, index: Tensor, values: Tensor, step: AdamWStep
) -> bool:
    """Updates rows in place, as `kernels.sparse_adamw`; returns False, with nothing changed, if it cannot."""
    parameter, dtype = tables[0], tables[0].dtype
    function = entry("lc_sparse_adamw") if dtype in _DTYPES and is_plain(parameter) and values.is_cpu else None
    if (
        function is None
        or values.dtype != dtype
        or any(not table.is_contiguous() or table.dtype != dtype for table in tables)
    ):
        return False
    index, values = index.contiguous(), values.contiguous()
    arguments = _CALL.pack(
        *(table.data_ptr() for table in tables), 0 if last_step is None else last_step.data_ptr(),
        index.data_ptr(), values.data_ptr(), parameter.shape[0], values.shape[1], len(index), step.number,
        dtype == torch.float64, torch.get_num_threads(), step.lr, *step.betas, step.eps, step.decay,
    )  # fmt: skip
    return function(arguments) == 0
