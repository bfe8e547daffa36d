"""Baselines: robust losses from the literature with the signature of `multiclass_loss`, for comparison.

    for name, loss in BASELINES.items():
        loss(scores, target, reduction="none")

Each is a loss ℓ(s, y) of scores and a label, with the arguments weight, sample_weight, ignore_index, label_smoothing,
reduction and validate of `multiclass_loss`. Probability targets and label smoothing give the expectation over y. Scores
of ±inf and NaN have the rules of `multiclass_loss`. With p = softmax(s):

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

Symmetric: Σ_y ℓ(s, y) does not depend on s. Cost: O(C) time per row and a few N×C tensors, unless documented otherwise.

To add a baseline, write a function of `LabelledRows` with the decorator `baseline` in its own file, and list it below.
Early-learning regularisation needs earlier predictions, so its signature differs: `early_learning_loss`, `EarlyLearning`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from linearcore.losses.baselines._active_passive_cross_entropy import active_passive_cross_entropy
from linearcore.losses.baselines._asymmetric_generalized_cross_entropy import asymmetric_generalized_cross_entropy
from linearcore.losses.baselines._baseline import Baseline, LabelledRows, Range, baseline
from linearcore.losses.baselines._crammer_singer import crammer_singer
from linearcore.losses.baselines._cross_entropy import cross_entropy
from linearcore.losses.baselines._early_learning import EarlyLearning, early_learning_loss
from linearcore.losses.baselines._generalized_cross_entropy import generalized_cross_entropy
from linearcore.losses.baselines._mean_absolute_error import mean_absolute_error
from linearcore.losses.baselines._module import BaselineLoss
from linearcore.losses.baselines._normalized_cross_entropy import normalized_cross_entropy
from linearcore.losses.baselines._reverse_cross_entropy import reverse_cross_entropy
from linearcore.losses.baselines._symmetric_cross_entropy import symmetric_cross_entropy
from linearcore.losses.baselines._unhinged import unhinged
from linearcore.losses.baselines._weston_watkins import weston_watkins

#: All baselines that depend on scores and target only, by name.
BASELINES: Mapping[str, Baseline] = MappingProxyType(
    {name: loss for name, loss in sorted(globals().items()) if isinstance(loss, Baseline)}
)

__all__ = [
    "BASELINES",
    "Baseline",
    "BaselineLoss",
    "EarlyLearning",
    "LabelledRows",
    "Range",
    "active_passive_cross_entropy",
    "asymmetric_generalized_cross_entropy",
    "baseline",
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
