"""Rivals: robust losses from the literature under `multiclass_loss`'s signature, so that a table is a loop over names.

    for name, loss in RIVALS.items():
        loss(scores, target, reduction="none")

They are losses ℓ(s, y) of scores and a label; for probability targets and label smoothing every one of them is the
expectation over y. Most look at p = softmax(s), at log p_y alone:

    cross_entropy                         −log p_y
    mean_absolute_error                   2 (1 − p_y)                             symmetric
    generalized_cross_entropy             (1 − p_y^q) / q
    asymmetric_generalized_cross_entropy  ((a + 1)^q − (a + p_y)^q) / q
    reverse_cross_entropy                 −A (1 − p_y)                            symmetric
    symmetric_cross_entropy               −α log p_y − β A (1 − p_y)
    normalized_cross_entropy              log p_y / Σ_v log p_v                   symmetric
    active_passive_cross_entropy          α NCE + β RCE                           symmetric
    unhinged                              mean_{v≠y} (1 − (s_y − s_v))            symmetric
    weston_watkins                        Σ_{v≠y} (1 − (s_y − s_v))₊
    crammer_singer                        (1 − (s_y − max_{v≠y} s_v))₊

Symmetric: Σ_y ℓ(s, y) does not depend on s. Early-learning regularisation needs to know what it saw before and stands apart:
`early_learning_loss` takes and returns its history, `EarlyLearning` keeps one. A score of −inf is a class that is not there.
"""

from linearcore.losses.rivals._asymmetric import asymmetric_generalized_cross_entropy
from linearcore.losses.rivals._cross_entropy import cross_entropy
from linearcore.losses.rivals._early_learning import early_learning_loss
from linearcore.losses.rivals._generalized import generalized_cross_entropy
from linearcore.losses.rivals._hinges import crammer_singer, weston_watkins
from linearcore.losses.rivals._mean_absolute_error import mean_absolute_error
from linearcore.losses.rivals._memory import EarlyLearning
from linearcore.losses.rivals._module import RivalLoss
from linearcore.losses.rivals._normalized import active_passive_cross_entropy, normalized_cross_entropy
from linearcore.losses.rivals._registry import RIVALS, Rival
from linearcore.losses.rivals._reverse import reverse_cross_entropy, symmetric_cross_entropy
from linearcore.losses.rivals._unhinged import unhinged

__all__ = [
    "RIVALS",
    "EarlyLearning",
    "Rival",
    "RivalLoss",
    "active_passive_cross_entropy",
    "asymmetric_generalized_cross_entropy",
    "crammer_singer",
    "cross_entropy",
    "early_learning_loss",
    "generalized_cross_entropy",
    "mean_absolute_error",
    "normalized_cross_entropy",
    "reverse_cross_entropy",
    "symmetric_cross_entropy",
    "unhinged",
    "weston_watkins",
]
