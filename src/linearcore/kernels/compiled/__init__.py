"""CPU kernels in C, called through ctypes. They are compiled when the package is built (`hatch_build.py`).

common.h, threads.c     instruction sets, threads, elementary functions
dense.c                 multi-class losses of rows with index targets; `surrogate.h` is φ, `rows.h` the forms
"""

from linearcore.kernels.compiled._binary import compiled_binary_loss
from linearcore.kernels.compiled._dense import FormCode, LossCode, can_compile, compiled_loss, compiled_rows
from linearcore.kernels.compiled._library import has_compiled_kernels

__all__ = [
    "FormCode",
    "LossCode",
    "can_compile",
    "compiled_binary_loss",
    "compiled_loss",
    "compiled_rows",
    "has_compiled_kernels",
]
