"""Losses by the short names that `out_of_fold_scores` and the command line take."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from torch import Tensor

from linearcore._checks import complaint, one_of
from linearcore.losses import FORMS, multiclass_loss, robust_loss
from linearcore.losses.baselines import BASELINES, Baseline

#: Takes scores (B, C) and class indices (B,), gives losses (B,).
RowLoss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class NamedLoss:
    """A `RowLoss` with what it needs.

    Attributes:
        function: the loss.
        is_normed: whether the network ends in `NormedScores`, since the loss has no minimum and scores would diverge.
        least_classes: the smallest number of classes that it can be trained with.
    """

    function: RowLoss
    is_normed: bool = False
    least_classes: int = 2

    def __call__(self, scores: Tensor, labels: Tensor) -> Tensor:
        return self.function(scores, labels)


def _of_baseline(loss: Baseline) -> NamedLoss:
    return NamedLoss(partial(loss, reduction="none"), is_normed=not loss.has_minimum)


#: The linear-core loss in the default form and in every other, the robust one, and all baselines by their short titles.
LOSSES: Mapping[str, NamedLoss] = MappingProxyType(
    {
        "lc": NamedLoss(partial(multiclass_loss, reduction="none")),
        **{f"lc-{form}": NamedLoss(partial(multiclass_loss, form=form, reduction="none")) for form in FORMS},
        "robust": NamedLoss(partial(robust_loss, reduction="none"), least_classes=3),
        **{loss.title.lower().replace("–", "-"): _of_baseline(loss) for loss in BASELINES.values()},
    }
)


def named_loss(loss: str | RowLoss, num_classes: int) -> NamedLoss:
    """The loss of that name; a baseline with what it needs; or a function as it is.

    Raises:
        ValueError: if there is no such name, or there are too few classes for the loss.
    """
    if isinstance(loss, str):
        one_of("loss", loss, LOSSES, "choose one of these, or pass a function")
        named = LOSSES[loss]
    else:
        named = (
            loss if isinstance(loss, NamedLoss) else _of_baseline(loss) if isinstance(loss, Baseline) else NamedLoss(loss)
        )
    if num_classes < named.least_classes:
        advice = "on its sphere two classes have no gradient; choose 'lc' or 'gce'"
        got = repr(loss) if isinstance(loss, str) else "one for three or more"
        raise ValueError(complaint("loss", "be another one where there are two classes", got, advice))
    return named
