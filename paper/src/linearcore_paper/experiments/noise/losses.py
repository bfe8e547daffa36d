"""The losses that `noise` and `gradient-histogram` compare, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from linearcore.losses import multiclass_loss, robust_loss
from linearcore.losses.baselines import cross_entropy, generalized_cross_entropy, unhinged
from linearcore.surrogates import LinearCore
from linearcore_paper.vision import Loss

#: The paper's: Eq. (2) at τ = 1 with the logistic base, "strictly affine for all margins u ≤ 1".
PAPER_CORE = LinearCore(base="logistic", tau=1.0, sides=1)
#: Scores on a unit sphere differ by at most √2, so that every margin lies in this core; with other norms, most do.
WIDE_CORE = LinearCore(base="logistic", tau=2.0, sides=1)


@dataclass(frozen=True)
class NoiseLoss:
    """A loss of the table.

    Attributes:
        label: what a reader calls it.
        make: its own options ↦ the loss, which takes scores (B, C) and labels (B,) and gives (B,) losses.
        ending: of the network's name; "" for the paper's as it is. "normed" keeps scores from growing, which a loss that has
            no least value needs; "balanced" has the sphere before that.
    """

    label: str
    make: Callable[[Mapping[str, Any]], Loss]
    ending: str = ""


def _cross_entropy(options: Mapping[str, Any]) -> Loss:
    return partial(cross_entropy, reduction="none", **options)


def _generalized(options: Mapping[str, Any]) -> Loss:
    return partial(generalized_cross_entropy, reduction="none", **options)


def _logodds(options: Mapping[str, Any]) -> Loss:
    return partial(multiclass_loss, surrogate=PAPER_CORE, form="logodds", reduction="none", **options)


def _linear_core(options: Mapping[str, Any]) -> Loss:
    # The mean over competitors: at the same step the sum of nine would be another learning rate, and did worse.
    how: dict[str, Any] = {"surrogate": PAPER_CORE, "form": "pairwise", "normalize": True, "reduction": "none"}
    return partial(multiclass_loss, **how, **options)


def _unhinged(options: Mapping[str, Any]) -> Loss:
    return partial(unhinged, reduction="none", **options)


def _robust(**norm: Any) -> Callable[[Mapping[str, Any]], Loss]:
    def make(options: Mapping[str, Any]) -> Loss:
        return partial(robust_loss, **norm, radius=1.0, surrogate=WIDE_CORE, reduction="none", **options)

    return make


LOSSES: Mapping[str, NoiseLoss] = {
    "ce": NoiseLoss("CE", _cross_entropy),
    "gce": NoiseLoss("GCE", _generalized),
    "gce-normed": NoiseLoss("GCE, normed", _generalized, ending="normed"),
    "lc": NoiseLoss("LC", _linear_core),
    "logodds": NoiseLoss("LC log-odds", _logodds),
    "unhinged": NoiseLoss("unhinged", _unhinged, ending="normed"),
    "robust": NoiseLoss("robust", _robust()),
    "shared": NoiseLoss("robust, shared length", _robust(norm="batch")),
    "balanced": NoiseLoss("robust, balanced", _robust(norm="class"), ending="balanced"),
}


def name_of(loss: Loss) -> str:
    """What records call a loss of this table: its function with all options.

    Example:
        >>> name_of(LOSSES["gce"].make({"q": 0.5}))
        "generalized_cross_entropy(q=0.5, reduction='none')"
    """
    assert isinstance(loss, partial)
    return f"{loss.func.__name__}({', '.join(f'{name}={value!r}' for name, value in sorted(loss.keywords.items()))})"
