"""Losses by the short names that the command line and `out_of_fold_scores` take."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from torch import Tensor

from linearcore._checks import one_of
from linearcore.losses import multiclass_loss
from linearcore.losses.rivals import RIVALS

#: Takes scores (B, C) and class indices (B,), gives losses (B,).
RowLoss = Callable[[Tensor, Tensor], Tensor]

_RIVALS = {
    "ce": "cross_entropy",
    "gce": "generalized_cross_entropy",
    "sce": "symmetric_cross_entropy",
    "mae": "mean_absolute_error",
    "nce+rce": "active_passive_cross_entropy",
    "unhinged": "unhinged",
}

#: The linear-core loss in its three forms, and the rivals that are trained most.
LOSSES: Mapping[str, RowLoss] = MappingProxyType(
    {
        "lc": partial(multiclass_loss, form="logodds", reduction="none"),
        "lc-pairwise": partial(multiclass_loss, form="pairwise", reduction="none"),
        "lc-centered": partial(multiclass_loss, form="centered", reduction="none"),
        **{short: partial(RIVALS[name].function, reduction="none") for short, name in _RIVALS.items()},
    }
)


def row_loss(loss: str | RowLoss) -> RowLoss:
    """The loss of that name; a function is taken as it is."""
    if not isinstance(loss, str):
        return loss
    one_of("loss", loss, LOSSES, "choose one of these, or pass a function")
    return LOSSES[loss]
