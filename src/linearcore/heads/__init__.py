"""Heads: modules behind a network. Those of chains turn its emissions into a loss over structures, and decode.

All chain heads have one interface, torchcrf's and more; the loss is the word that changes:

    head = LinearCoreChain(num_tags)     margins to all single-site changes, O(L·|Y|)
    head = ChainCRF(num_tags)            log-likelihood, O(L·|Y|²), with posteriors
    head = ChainSSVM(num_tags)           hinge of the most violated sequence, O(L·|Y|²)

A classifier can end in `NormedScores`, which has no parameters and whose scores any loss can take.

This layer checks, lays out and reduces; the computation is in `forms` and `kernels`.
"""

from linearcore.heads._chain import ChainHead
from linearcore.heads._crf import ChainCRF
from linearcore.heads._linear_core import LinearCoreChain
from linearcore.heads._normed_scores import NormedScores, NormedStack
from linearcore.heads._ssvm import ChainSSVM

__all__ = ["ChainCRF", "ChainHead", "ChainSSVM", "LinearCoreChain", "NormedScores", "NormedStack"]
