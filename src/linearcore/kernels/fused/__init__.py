"""Fused Triton kernels. Importing this package imports triton; use `kernels._fused.fused_kernels_for` instead.

Each kernel has a reference implementation in `kernels` or `forms`. On a CPU the tests run Triton's interpreter.
"""

from linearcore.kernels.fused._adamw import sparse_adamw
from linearcore.kernels.fused._binary import fused_binary_loss
from linearcore.kernels.fused._crf import MAX_TAGS, crf_gradient, crf_messages
from linearcore.kernels.fused._dense_loss import fused_loss, fused_rows, rows_backward, rows_forward
from linearcore.kernels.fused._exact import add_exact_gradient, exact_messages
from linearcore.kernels.fused._label_rows import add_to_hidden, add_to_rows, add_to_weight, label_scores, scale_by
from linearcore.kernels.fused._layout import Layout, chain_layout
from linearcore.kernels.fused._linear import competitor_losses, log_odds_losses, num_parts
from linearcore.kernels.fused._local import MAX_LOCAL_TAGS, LocalLoss, local_losses, scale_local_gradient
from linearcore.kernels.fused._log_odds import log_odds, log_odds_gradient
from linearcore.kernels.fused._low_rank import low_rank_factors, low_rank_gradients
from linearcore.kernels.fused._max_product import best_scores, trace_back
from linearcore.kernels.fused._positions import Positions
from linearcore.kernels.fused._recursion import recursions
from linearcore.kernels.fused._sampled_losses import row_losses, score_gradient
from linearcore.kernels.fused._sampled_rows import gather_rows, table_gradients
from linearcore.kernels.fused._viterbi import best_sequences

__all__ = [
    "MAX_LOCAL_TAGS",
    "MAX_TAGS",
    "Layout",
    "LocalLoss",
    "Positions",
    "add_exact_gradient",
    "add_to_hidden",
    "add_to_rows",
    "add_to_weight",
    "best_scores",
    "best_sequences",
    "chain_layout",
    "competitor_losses",
    "crf_gradient",
    "crf_messages",
    "exact_messages",
    "fused_binary_loss",
    "fused_loss",
    "fused_rows",
    "gather_rows",
    "label_scores",
    "local_losses",
    "log_odds",
    "log_odds_gradient",
    "log_odds_losses",
    "low_rank_factors",
    "low_rank_gradients",
    "num_parts",
    "recursions",
    "row_losses",
    "rows_backward",
    "rows_forward",
    "scale_by",
    "scale_local_gradient",
    "score_gradient",
    "sparse_adamw",
    "table_gradients",
    "trace_back",
]
