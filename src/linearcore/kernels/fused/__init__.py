"""Fused Triton kernels. Importing this package imports triton; use `kernels._fused.fused_kernels_for` instead.

Each kernel has a reference implementation in `kernels` or `forms`. On a CPU the tests run Triton's interpreter.
"""

from linearcore.kernels.fused._local import local_gradient, local_log_odds, local_scores
from linearcore.kernels.fused._log_odds import log_odds, log_odds_gradient
from linearcore.kernels.fused._max_product import best_scores, trace_back
from linearcore.kernels.fused._recursion import backward_recursion, forward_recursion

__all__ = [
    "backward_recursion",
    "best_scores",
    "forward_recursion",
    "local_gradient",
    "local_log_odds",
    "local_scores",
    "log_odds",
    "log_odds_gradient",
    "trace_back",
]
