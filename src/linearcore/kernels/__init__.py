"""Tensor routines: recursions and searches on chains and automata, look-ups, blockwise losses, compiled and fused kernels.

They do not validate arguments; the layers above do. Each fast routine has a reference implementation.
"""

from linearcore.kernels._adamw import sparse_adamw
from linearcore.kernels._adamw_types import AdamWStep
from linearcore.kernels._automaton import path_logsumexp
from linearcore.kernels._automaton_paths import best_path, best_paths, sample_paths
from linearcore.kernels._backend import BACKENDS, compute_gradients, is_differentiated, resolve_backend
from linearcore.kernels._binary import binary_elements
from linearcore.kernels._blocks import block_size, row_blocks, slices
from linearcore.kernels._consensus import consensus
from linearcore.kernels._dense import binary_call, dense_loss
from linearcore.kernels._dense_operators import can_trace_fused, traced_rows
from linearcore.kernels._entries import entries
from linearcore.kernels._fused import fused_kernels_for
from linearcore.kernels._fused_local import LocalCall, fused_local, local_kernels
from linearcore.kernels._kbest import kbest
from linearcore.kernels._local import local_scores, low_rank_scores
from linearcore.kernels._loss_code import FormCode, LossCode
from linearcore.kernels._max_product import dense_search
from linearcore.kernels._partition import crf_losses, log_partition, posterior
from linearcore.kernels._products import has_unrounded_product
from linearcore.kernels._sample import sample_chain
from linearcore.kernels._sampled import sampled_kernels, sampled_rows
from linearcore.kernels._sampled_types import EdgeFactors, SampledRows
from linearcore.kernels._viterbi import beam, viterbi
from linearcore.kernels.compiled import (
    can_compile,
    can_compile_local,
    can_compile_sampled,
    compiled_local,
    compiled_rows,
    has_compiled_kernels,
)

__all__ = [
    "BACKENDS",
    "AdamWStep",
    "EdgeFactors",
    "FormCode",
    "LocalCall",
    "LossCode",
    "SampledRows",
    "beam",
    "best_path",
    "best_paths",
    "binary_call",
    "binary_elements",
    "block_size",
    "can_compile",
    "can_compile_local",
    "can_compile_sampled",
    "can_trace_fused",
    "compiled_local",
    "compiled_rows",
    "compute_gradients",
    "consensus",
    "crf_losses",
    "dense_loss",
    "dense_search",
    "entries",
    "fused_kernels_for",
    "fused_local",
    "has_compiled_kernels",
    "has_unrounded_product",
    "is_differentiated",
    "kbest",
    "local_kernels",
    "local_scores",
    "log_partition",
    "low_rank_scores",
    "path_logsumexp",
    "posterior",
    "resolve_backend",
    "row_blocks",
    "sample_chain",
    "sample_paths",
    "sampled_kernels",
    "sampled_rows",
    "slices",
    "sparse_adamw",
    "traced_rows",
    "viterbi",
]
