"""Losses by the short names that the command line and `out_of_fold_scores` take."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from torch import Tensor

from linearcore._checks import complaint, one_of
from linearcore.losses import multiclass_loss, robust_loss
from linearcore.losses.baselines import BASELINES

#: Takes scores (B, C) and class indices (B,), gives losses (B,).
RowLoss = Callable[[Tensor, Tensor], Tensor]

_SHORT_NAMES = {
    "ce": "cross_entropy",
    "gce": "generalized_cross_entropy",
    "sce": "symmetric_cross_entropy",
    "mae": "mean_absolute_error",
    "nce+rce": "active_passive_cross_entropy",
    "unhinged": "unhinged",
}

#: The linear-core loss in its three forms, the robust ones, and the baselines that are used most.
LOSSES: Mapping[str, RowLoss] = MappingProxyType(
    {
        "lc": partial(multiclass_loss, form="logodds", reduction="none"),
        "lc-pairwise": partial(multiclass_loss, form="pairwise", reduction="none"),
        "lc-centered": partial(multiclass_loss, form="centered", reduction="none"),
        "robust": partial(robust_loss, reduction="none"),
        "balanced": partial(robust_loss, norm="class", reduction="none"),
        **{short: partial(BASELINES[name], reduction="none") for short, name in _SHORT_NAMES.items()},
    }
)
#: Losses whose networks norm their scores: one has no least value, so that they would grow; one is about that.
BEHIND: Mapping[str, str] = MappingProxyType({"unhinged": "normed", "balanced": "balanced"})


def row_loss(loss: str | RowLoss, num_classes: int) -> RowLoss:
    """The loss of that name; a function is taken as it is."""
    if not isinstance(loss, str):
        return loss
    one_of("loss", loss, LOSSES, "choose one of these, or pass a function")
    if loss in ("robust", "balanced") and num_classes == 2:
        advice = "on its sphere two classes have no gradient; choose 'lc' or 'gce'"
        raise ValueError(complaint("loss", "be another one where there are two classes", repr(loss), advice))
    return LOSSES[loss]
