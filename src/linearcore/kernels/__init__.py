"""The computation: for every form a plain twin and a fast path side by side, chosen by `backend`.

To add a form, subclass `FormKernel` in a file of its own and give it a face in `losses/_forms.py`.
"""

from linearcore.kernels._backend import BACKENDS
from linearcore.kernels._binary import binary_elements
from linearcore.kernels._centered import CenteredKernel
from linearcore.kernels._dense import dense_rows
from linearcore.kernels._form import FormKernel
from linearcore.kernels._fused import fused_for
from linearcore.kernels._kbest import kbest
from linearcore.kernels._labels import Labels
from linearcore.kernels._local import local_scores, low_rank_scores
from linearcore.kernels._local_losses import local_losses
from linearcore.kernels._logodds import LogOddsKernel
from linearcore.kernels._max_product import dense_search
from linearcore.kernels._pairwise import PairwiseKernel
from linearcore.kernels._partition import log_partition, posterior
from linearcore.kernels._sampled import entries, sampled_rows
from linearcore.kernels._viterbi import beam, viterbi

__all__ = [
    "BACKENDS",
    "CenteredKernel",
    "FormKernel",
    "Labels",
    "LogOddsKernel",
    "PairwiseKernel",
    "beam",
    "binary_elements",
    "dense_rows",
    "dense_search",
    "entries",
    "fused_for",
    "kbest",
    "local_losses",
    "local_scores",
    "log_partition",
    "low_rank_scores",
    "posterior",
    "sampled_rows",
    "viterbi",
]
