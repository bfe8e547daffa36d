"""Proposals: which terms of a sum over competitors are visited, and with what probability.

A loss over thousands of competitors need not look at all of them. A proposal picks a few and says how likely that was, and a
weight of one over that probability makes the sum over the few an unbiased estimate of the sum over all:

    Uniform()                        all alike; the baseline
    Unigram(counts=…), LogUniform()  by frequency
    InBatch(rest=…)                  the classes of the batch for sure, draws for the rest
    Hard(table=…, rest=…)            known confusions for sure, draws for the rest
    Mixture(parts=…)                 of any of these

What is unbiased is the *sum*, so losses that are sums over competitors (`pairwise`) are, and their gradients. `logodds` is a
function of the logarithm of a sum, so that its estimate is biased: less with more draws, and least with those that have
the largest terms for sure (`InBatch`, `Hard`).

`proposals.sequences` has laws over whole tag sequences, for the paper's sums over pairs of outputs.
"""

from linearcore.proposals._base import Candidates, Proposal, check_num_samples
from linearcore.proposals._hard import Hard, hardest
from linearcore.proposals._in_batch import InBatch
from linearcore.proposals._log_uniform import LogUniform
from linearcore.proposals._mixture import Mixture
from linearcore.proposals._uniform import Uniform
from linearcore.proposals._unigram import Unigram

__all__ = [
    "Candidates",
    "Hard",
    "InBatch",
    "LogUniform",
    "Mixture",
    "Proposal",
    "Uniform",
    "Unigram",
    "check_num_samples",
    "hardest",
]
