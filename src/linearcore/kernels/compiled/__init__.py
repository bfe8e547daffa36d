"""CPU kernels in C, called through ctypes. They are compiled when the package is built (`hatch_build.py`).

common.h, threads.c     instruction sets, threads, elementary functions
as_float.h, as_double.h the type of numbers in what is included next
surrogate.h             φ
dense.c, rows.h, soft.h multi-class losses: rows with a label, and rows with a weight for each class
binary.c, elements.h    binary losses
chain.h                 masks and layout of chains
crf.c, crf.h            log-partition function and likelihood of a linear-chain CRF
search.c, search.h      Viterbi and k-best decoding
automaton.c, .h         log-partition function and best path of an acyclic automaton
local.c, local.h        losses of positions given the neighbouring tags
adamw.c, adamw.h        AdamW on the rows of a sparse gradient
sampled.c, sampled.h    losses of rows with sampled candidate classes
"""

from linearcore.kernels.compiled._adamw import compiled_adamw
from linearcore.kernels.compiled._automaton import can_compile_automaton, compiled_best_path, compiled_path_logsumexp
from linearcore.kernels.compiled._binary import compiled_binary_loss
from linearcore.kernels.compiled._chain import NotCompiledError
from linearcore.kernels.compiled._crf import can_compile_crf, compiled_crf
from linearcore.kernels.compiled._dense import can_compile, compiled_loss, compiled_rows
from linearcore.kernels.compiled._library import has_compiled_kernels
from linearcore.kernels.compiled._local import can_compile_local, compiled_local
from linearcore.kernels.compiled._sampled import (
    can_compile_sampled,
    gather_rows,
    row_losses,
    score_gradient,
    table_gradients,
)
from linearcore.kernels.compiled._search import compiled_search

__all__ = [
    "NotCompiledError",
    "can_compile",
    "can_compile_automaton",
    "can_compile_crf",
    "can_compile_local",
    "can_compile_sampled",
    "compiled_adamw",
    "compiled_best_path",
    "compiled_binary_loss",
    "compiled_crf",
    "compiled_local",
    "compiled_loss",
    "compiled_path_logsumexp",
    "compiled_rows",
    "compiled_search",
    "gather_rows",
    "has_compiled_kernels",
    "row_losses",
    "score_gradient",
    "table_gradients",
]
