"""Losses: surrogate × form, with torch's rules for targets, weights and reductions.

A loss is never a class per combination. What is trained is chosen by two words:

    multiclass_loss(scores, target, surrogate=LinearCore(), form="pairwise")     the paper's loss
    multiclass_loss(scores, target, surrogate=Hinge(), form="pairwise")          Weston–Watkins
    multiclass_loss(scores, target, surrogate=Logistic(), form="logodds")        cross-entropy
    multiclass_loss(scores, target, surrogate=LinearCore(), form="centered")     the one with a linear bound

One preset has a name of its own, for labels of which some are wrong: `robust_loss`, the pairwise form of scores on a sphere.

This layer checks, reshapes, reduces and dispatches; the computation is in `forms` and `kernels`. Losses of other papers
that are no surrogate × form (GCE, NCE, ELR…) have the same signature: `linearcore.losses.baselines`.
"""

from linearcore.forms import FORMS, Centered, Form, LogOdds, Pairwise
from linearcore.losses._binary import binary_loss
from linearcore.losses._modules import BinaryLinearCoreLoss, LinearCoreLoss, RobustLinearCoreLoss
from linearcore.losses._multiclass import DEFAULT_SURROGATE, check_surrogate, checked_form, multiclass_loss
from linearcore.losses._robust import robust_loss
from linearcore.losses._sampled import class_scores, sampled_multiclass_loss
from linearcore.losses._targets import to_rows

__all__ = [
    "DEFAULT_SURROGATE",
    "FORMS",
    "BinaryLinearCoreLoss",
    "Centered",
    "Form",
    "LinearCoreLoss",
    "LogOdds",
    "Pairwise",
    "RobustLinearCoreLoss",
    "binary_loss",
    "check_surrogate",
    "checked_form",
    "class_scores",
    "multiclass_loss",
    "robust_loss",
    "sampled_multiclass_loss",
    "to_rows",
]
