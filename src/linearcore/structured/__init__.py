"""Monte Carlo estimates of losses over whole tag sequences: the paper's Algorithm 1, corrected.

`LinearCoreChain.structured` computes the estimated loss. Use the functions here to measure bias and variance, or to try
other weights:

    STRUCTURED_FORMS      the paper's double sum and the centered sum, by name
    Sampler               samples sequences and estimates a structured form
    *_log_weight          log importance weights of the samples
    *_estimate            weighted mean over the samples
    controlled_estimate   the same, with the linear part of the surrogate computed exactly

`PathDistribution` is the distribution over the paths of an acyclic automaton: sums, best paths and samples.
"""

from linearcore.structured._control_variate import RunningSlope, controlled_estimate
from linearcore.structured._estimates import (
    OBJECTIVES,
    Draws,
    centered_estimate,
    centered_log_weight,
    log_similarity_mass,
    mean_score,
    pair_estimate,
    pair_log_weight,
    sequence_scores,
)
from linearcore.structured._forms import STRUCTURED_FORMS, StructuredForm
from linearcore.structured._paths import PathDistribution, Paths
from linearcore.structured._sampler import Sampler

__all__ = [
    "OBJECTIVES",
    "STRUCTURED_FORMS",
    "Draws",
    "PathDistribution",
    "Paths",
    "RunningSlope",
    "Sampler",
    "StructuredForm",
    "centered_estimate",
    "centered_log_weight",
    "controlled_estimate",
    "log_similarity_mass",
    "mean_score",
    "pair_estimate",
    "pair_log_weight",
    "sequence_scores",
]
