"""Fused kernels for accelerators, in Triton. Importing this package imports triton: go through `kernels._fused`.

Each has a reference in `kernels` or `forms`; tests compare them, on the CPU in Triton's interpreter.
"""

from linearcore.kernels.fused._local import local_gradient, local_log_odds, local_scores
from linearcore.kernels.fused._log_odds import log_odds, log_odds_gradient
from linearcore.kernels.fused._max_product import best_scores, trace_back
from linearcore.kernels.fused._recursion import backwards, forwards

__all__ = [
    "backwards",
    "best_scores",
    "forwards",
    "local_gradient",
    "local_log_odds",
    "local_scores",
    "log_odds",
    "log_odds_gradient",
    "trace_back",
]
