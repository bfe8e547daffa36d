"""Proposal distributions for losses that sample their competing classes.

A loss over thousands of classes can be estimated from a few of them. A proposal samples classes and returns their
probabilities. Weighting each sampled term by 1/probability gives an unbiased estimate of the sum over all competing classes.

    Uniform()                        uniform samples; the baseline
    Unigram(counts=…), LogUniform()  samples by class frequency
    InBatch(rest=…)                  all target classes of the batch, plus samples of the other classes
    HardNegatives(table=…, rest=…)   a fixed list per class, plus samples of the other classes
    Mixture(parts=…)                 a mixture of proposals

Only the sum is unbiased. So losses that are sums over competitors (`pairwise`), and their gradients, are estimated without
bias. `logodds` is a function of the logarithm of a sum, and its estimate is biased. The bias falls with more samples, and is
smallest for proposals that always include the largest terms (`InBatch`, `HardNegatives`).

`proposals.sequences` has distributions over whole tag sequences, for the paper's sums over pairs of outputs.
"""

from linearcore.proposals._base import Candidates, Proposal, check_num_samples, mask_targets
from linearcore.proposals._hard_negatives import HardNegatives, hard_negatives
from linearcore.proposals._in_batch import InBatch
from linearcore.proposals._log_uniform import LogUniform
from linearcore.proposals._mixture import Mixture
from linearcore.proposals._uniform import Uniform
from linearcore.proposals._unigram import Unigram

__all__ = [
    "Candidates",
    "HardNegatives",
    "InBatch",
    "LogUniform",
    "Mixture",
    "Proposal",
    "Uniform",
    "Unigram",
    "check_num_samples",
    "hard_negatives",
    "mask_targets",
]
