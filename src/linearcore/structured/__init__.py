"""Monte Carlo estimates of losses over whole tag sequences: the paper's Algorithm 1, corrected.

`structured_loss` computes the estimated loss for a chain and a cost; `LinearCoreChain.structured` does the same for a head.
Use the other functions to measure bias and variance, or to try other weights:

    structured_estimate   the loss with its importance weights and their effective sample size
    STRUCTURED_FORMS      the paper's double sum and the centered sum, by name
    *_log_weight          log importance weights of the samples
    *_estimate            weighted mean over the samples
    controlled_estimate   the same, with the linear part of the surrogate computed exactly
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
)
from linearcore.structured._forms import STRUCTURED_FORMS, StructuredForm
from linearcore.structured._loss import StructuredEstimate, structured_estimate, structured_loss
from linearcore.structures import sequence_scores

__all__ = [
    "OBJECTIVES",
    "STRUCTURED_FORMS",
    "Draws",
    "RunningSlope",
    "StructuredEstimate",
    "StructuredForm",
    "centered_estimate",
    "centered_log_weight",
    "controlled_estimate",
    "log_similarity_mass",
    "mean_score",
    "pair_estimate",
    "pair_log_weight",
    "sequence_scores",
    "structured_estimate",
    "structured_loss",
]
