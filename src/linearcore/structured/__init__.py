"""Losses over whole outputs, estimated from draws: the paper's Algorithm 1, corrected, and the estimators behind it.

`LinearCoreChain.structured` is what to call for training. What is here are its parts, for whoever wants to measure bias and
variance, or to try other weights:

    STRUCTURED_FORMS      the paper's double sum and its centered counterpart, by name
    Sampler               draws sequences for chains and estimates one of these forms from them
    *_log_weight          what a draw counts over how likely it was, as a logarithm
    *_estimate            the weighted mean over the draws
    controlled_estimate   the same with the linear part of the surrogate computed exactly
"""

from linearcore.structured._control_variate import RunningSlope, controlled_estimate
from linearcore.structured._estimates import (
    OBJECTIVES,
    Draws,
    centered_estimate,
    centered_log_weight,
    draw_scores,
    log_similarity_mass,
    mean_score,
    pair_estimate,
    pair_log_weight,
)
from linearcore.structured._forms import STRUCTURED_FORMS, StructuredForm
from linearcore.structured._sampler import Sampler

__all__ = [
    "OBJECTIVES",
    "STRUCTURED_FORMS",
    "Draws",
    "RunningSlope",
    "Sampler",
    "StructuredForm",
    "centered_estimate",
    "centered_log_weight",
    "controlled_estimate",
    "draw_scores",
    "log_similarity_mass",
    "mean_score",
    "pair_estimate",
    "pair_log_weight",
]
