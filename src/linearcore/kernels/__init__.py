"""Tensor routines: chain recursions and searches, look-ups, blockwise losses, and fused Triton kernels.

They do not validate arguments; the layers above do. Each fast routine has a reference implementation.
"""

from linearcore.kernels._backend import BACKENDS, compute_gradients, is_differentiated, resolve_backend
from linearcore.kernels._binary import binary_elements
from linearcore.kernels._blocks import block_size, row_blocks, slices
from linearcore.kernels._entries import entries
from linearcore.kernels._fused import fused_kernels_for
from linearcore.kernels._kbest import kbest
from linearcore.kernels._local import local_scores, low_rank_scores, neighbour_tags
from linearcore.kernels._max_product import dense_search
from linearcore.kernels._partition import crf_losses, log_partition, posterior
from linearcore.kernels._viterbi import beam, viterbi
from linearcore.kernels.compiled import FormCode, LossCode, can_compile_local, compiled_local, has_compiled_kernels

__all__ = [
    "BACKENDS",
    "FormCode",
    "LossCode",
    "beam",
    "binary_elements",
    "block_size",
    "can_compile_local",
    "compiled_local",
    "compute_gradients",
    "crf_losses",
    "dense_search",
    "entries",
    "fused_kernels_for",
    "has_compiled_kernels",
    "is_differentiated",
    "kbest",
    "local_scores",
    "log_partition",
    "low_rank_scores",
    "neighbour_tags",
    "posterior",
    "resolve_backend",
    "row_blocks",
    "slices",
    "viterbi",
]
