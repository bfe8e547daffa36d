"""Heads: modules for the end of a network. A chain head computes a loss from the emissions and decodes tag sequences.

All chain heads have torchcrf's interface plus additional methods. They differ in the loss:

    head = LinearCoreChain(num_tags)     margins to all sequences with one tag changed, O(L·|Y|)
    head = ChainCRF(num_tags)            log-likelihood, O(L·|Y|²), with marginals
    head = ChainSSVM(num_tags)           structured hinge loss, O(L·|Y|²)

`NormedScores` normalises the scores of a classifier. It has no parameters and works with any loss.

Heads check inputs, convert layouts and reduce losses. The computation is in `forms` and `kernels`.
"""

from linearcore.heads._chain import ChainHead
from linearcore.heads._crf import ChainCRF
from linearcore.heads._linear_core import LinearCoreChain
from linearcore.heads._minimum_risk import CANDIDATES, SAMPLES, RiskOptions, check_risk_options
from linearcore.heads._normed_scores import NormedScores, NormedStack
from linearcore.heads._ssvm import ChainSSVM

__all__ = [
    "CANDIDATES",
    "SAMPLES",
    "ChainCRF",
    "ChainHead",
    "ChainSSVM",
    "LinearCoreChain",
    "NormedScores",
    "NormedStack",
    "RiskOptions",
    "check_risk_options",
]
