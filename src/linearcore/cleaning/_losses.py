"""Short names of losses, for `out_of_fold_scores` and the command line."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from torch import Tensor

from linearcore._checks import complaint, one_of
from linearcore.losses import FORMS, multiclass_loss, robust_loss
from linearcore.losses.baselines import BASELINES, Baseline

#: Function of scores (B, C) and class indices (B,) that returns losses (B,).
RowLoss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class NamedLoss:
    """A `RowLoss` with its requirements on the network.

    Attributes:
        function: the loss.
        is_normed: whether the network needs a last layer `NormedScores`: the loss has no minimum, so scores would diverge.
        min_classes: smallest number of classes that the loss supports.
    """

    function: RowLoss
    is_normed: bool = False
    min_classes: int = 2

    def __call__(self, scores: Tensor, labels: Tensor) -> Tensor:
        return self.function(scores, labels)


def _from_baseline(loss: Baseline) -> NamedLoss:
    return NamedLoss(partial(loss, reduction="none"), is_normed=not loss.has_minimum)


#: Losses by name: the linear-core loss in its default form and in every form, the robust loss, and all baselines.
LOSSES: Mapping[str, NamedLoss] = MappingProxyType(
    {
        "lc": NamedLoss(partial(multiclass_loss, reduction="none")),
        **{f"lc-{form}": NamedLoss(partial(multiclass_loss, form=form, reduction="none")) for form in FORMS},
        "robust": NamedLoss(partial(robust_loss, reduction="none"), min_classes=3),
        **{loss.title.lower().replace("–", "-"): _from_baseline(loss) for loss in BASELINES.values()},
    }
)


def named_loss(loss: str | RowLoss, num_classes: int) -> NamedLoss:
    """Returns a `NamedLoss` for a name, a `Baseline` or a function.

    Raises:
        ValueError: if the name is unknown, or the loss needs more classes.
    """
    if isinstance(loss, str):
        one_of("loss", loss, LOSSES, "choose one of these, or pass a function")
        named = LOSSES[loss]
    else:
        named = (
            loss if isinstance(loss, NamedLoss) else _from_baseline(loss) if isinstance(loss, Baseline) else NamedLoss(loss)
        )
    if num_classes < named.min_classes:
        got = f"{loss!r}, which needs {named.min_classes}" if isinstance(loss, str) else f"one for {named.min_classes}"
        advice = "its gradient is zero for two classes; choose 'lc' or 'gce'"
        raise ValueError(complaint("loss", f"support {num_classes} classes", got, advice))
    return named
