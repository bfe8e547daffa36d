"""Losses: combinations of a surrogate and a form, with torch's rules for targets, weights and reductions.

There is no class per combination. Two arguments define the loss:

    multiclass_loss(scores, target, surrogate=LinearCore(), form="pairwise")     the paper's loss
    multiclass_loss(scores, target, surrogate=Hinge(), form="pairwise")          Weston–Watkins
    multiclass_loss(scores, target, surrogate=Logistic(), form="logodds")        cross-entropy
    multiclass_loss(scores, target, surrogate=LinearCore(), form="centered")     has a linear consistency bound

`robust_loss` is a preset for noisy labels: the pairwise form of scores that are normalised to a sphere.

This package checks and reshapes arguments, selects a backend and reduces; `forms` and `kernels` compute. Other losses from
the literature (GCE, NCE, ELR, …) have the same signature: see `linearcore.losses.baselines`.
"""

from linearcore.forms import FORMS, Centered, Form, LogOdds, Pairwise
from linearcore.losses._binary import binary_loss
from linearcore.losses._modules import BinaryLinearCoreLoss, LinearCoreLoss, RobustLinearCoreLoss
from linearcore.losses._multiclass import DEFAULT_SURROGATE, check_form, check_surrogate, multiclass_loss
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
    "check_form",
    "check_surrogate",
    "class_scores",
    "multiclass_loss",
    "robust_loss",
    "sampled_multiclass_loss",
    "to_rows",
]
