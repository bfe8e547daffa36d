"""Losses that `noise` and `gradient-histogram` compare, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from linearcore.losses import multiclass_loss, robust_loss
from linearcore.losses.baselines import cross_entropy, generalized_cross_entropy, unhinged
from linearcore.surrogates import LinearCore
from linearcore_paper.vision import Loss

#: The paper's surrogate: Eq. (2) with τ = 1 with the logistic base, "strictly affine for all margins u ≤ 1".
PAPER_CORE = LinearCore(base="logistic", tau=1.0, sides=1)
#: Scores on a unit sphere differ by at most √2, so every margin is in this core.
WIDE_CORE = LinearCore(base="logistic", tau=2.0, sides=1)
#: Margins of normed scores stay below about 4, so the pairwise loss equals the unhinged loss plus a constant.
NORMED_CORE = LinearCore(base="logistic", tau=5.0, sides=1)


@dataclass(frozen=True)
class NoiseLoss:
    """A loss of the table.

    Attributes:
        label: name in figures.
        make: maps options to the loss, a function of scores (B, C) and labels (B,) that returns losses (B,).
        ending: suffix of the network's name; "" for the paper's network. "normed" adds `NormedScores` at the end, which a
            loss without a minimum needs.
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


def _pairwise(surrogate: LinearCore = PAPER_CORE, *, normalize: bool = True) -> Callable[[Mapping[str, Any]], Loss]:
    """Returns the pairwise form. The paper uses the sum over competing classes, nine times the mean for ten classes."""
    arguments: dict[str, Any] = {"surrogate": surrogate, "form": "pairwise", "normalize": normalize, "reduction": "none"}

    def make(options: Mapping[str, Any]) -> Loss:
        return partial(multiclass_loss, **arguments, **options)

    return make


def _unhinged(options: Mapping[str, Any]) -> Loss:
    return partial(unhinged, reduction="none", **options)


def _robust(options: Mapping[str, Any]) -> Loss:
    return partial(robust_loss, radius=1.0, surrogate=WIDE_CORE, reduction="none", **options)


LOSSES: Mapping[str, NoiseLoss] = {
    "ce": NoiseLoss("CE", _cross_entropy),
    "gce": NoiseLoss("GCE", _generalized),
    "gce-normed": NoiseLoss("GCE, normed", _generalized, ending="normed"),
    "lc": NoiseLoss("LC", _pairwise()),
    "lc-sum": NoiseLoss("LC, sum", _pairwise(normalize=False)),
    "lc-normed": NoiseLoss("LC, normed", _pairwise(), ending="normed"),
    "lc-wide": NoiseLoss("LC, wide core, normed", _pairwise(NORMED_CORE), ending="normed"),
    "logodds": NoiseLoss("LC log-odds", _logodds),
    "unhinged": NoiseLoss("unhinged", _unhinged, ending="normed"),
    "robust": NoiseLoss("robust", _robust),
}


def name_of(loss: Loss) -> str:
    """Returns the name of a loss in result files: its function with all options.

    Example:
        >>> name_of(LOSSES["gce"].make({"q": 0.5}))
        "generalized_cross_entropy(q=0.5, reduction='none')"
    """
    assert isinstance(loss, partial)
    return f"{loss.func.__name__}({', '.join(f'{name}={value!r}' for name, value in sorted(loss.keywords.items()))})"
