"""CPU kernels in C, called through ctypes. They are compiled when the package is built (`hatch_build.py`).

common.h, threads.c     instruction sets, threads, elementary functions
dense.c                 multi-class losses of rows with index targets; `surrogate.h` is φ, `rows.h` the forms
chain.h, crf.c          log-partition function and likelihood of a linear-chain CRF; `crf.h` is the recursion
search.c                Viterbi and k-best decoding; `search.h` is the search in one sequence
local.c                 losses of positions given the neighbouring tags; `local.h` are the losses of one sequence
"""

from linearcore.kernels.compiled._crf import can_compile_crf, compiled_crf
from linearcore.kernels.compiled._dense import FormCode, LossCode, compiled_loss, compiled_rows
from linearcore.kernels.compiled._library import has_compiled_kernels
from linearcore.kernels.compiled._local import can_compile_local, compiled_local
from linearcore.kernels.compiled._search import compiled_search

__all__ = [
    "FormCode",
    "LossCode",
    "can_compile_crf",
    "can_compile_local",
    "compiled_crf",
    "compiled_local",
    "compiled_loss",
    "compiled_rows",
    "compiled_search",
    "has_compiled_kernels",
]
