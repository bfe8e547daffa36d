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

from importlib import import_module
from typing import TYPE_CHECKING

from linearcore.forms import FORMS, Centered, Form, LogOdds, Pairwise
from linearcore.losses._binary import binary_loss
from linearcore.losses._linear import (
    cast_as_autocast,
    check_chunk_bytes,
    default_chunk,
    linear_multiclass_loss,
    linear_row_loss,
)
from linearcore.losses._linear_chunks import linear_vjp, scale_gradient
from linearcore.losses._modules import BinaryLinearCoreLoss, LinearCoreLoss, RobustLinearCoreLoss
from linearcore.losses._multiclass import DEFAULT_SURROGATE, check_form, check_surrogate, multiclass_loss
from linearcore.losses._robust import robust_loss
from linearcore.losses._sampled import (
    SampledEstimate,
    effective_sample_size,
    sampled_multiclass_estimate,
    sampled_multiclass_loss,
    sampling_variance,
)
from linearcore.losses._sampled_batch import class_scores, product_dtype
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
    "SampledEstimate",
    "binary_loss",
    "cast_as_autocast",
    "check_chunk_bytes",
    "check_form",
    "check_surrogate",
    "class_scores",
    "default_chunk",
    "effective_sample_size",
    "linear_multiclass_loss",
    "linear_row_loss",
    "linear_vjp",
    "multiclass_loss",
    "product_dtype",
    "robust_loss",
    "sampled_multiclass_estimate",
    "sampled_multiclass_loss",
    "sampling_variance",
    "scale_gradient",
    "to_rows",
]

if TYPE_CHECKING:
    from linearcore.losses import baselines as baselines
else:
    # Hidden from type checkers: with a module-level __getattr__ they would accept any attribute name.
    def __getattr__(name: str) -> object:
        """Returns `baselines`, imported on first access."""
        if name == "baselines":
            return import_module(f"{__name__}.baselines")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
