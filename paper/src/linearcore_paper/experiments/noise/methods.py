"""The rows of the table of `noise`: a loss with the paper's settings, or with those that did best on noisy labels."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

from linearcore_paper.experiments.noise.losses import LOSSES


@dataclass(frozen=True)
class Config:
    """What is tuned.

    Attributes:
        scale: the mean loss of a batch is multiplied by it.
        decay: weight decay.
        options: of the loss itself.
    """

    scale: float = 1.0
    decay: float = 5e-4
    options: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @property
    def words(self) -> str:
        """Short enough for a table."""
        return ", ".join(
            [
                f"scale {self.scale:g}",
                f"decay {self.decay:g}",
                *(f"{name} {value:g}" for name, value in self.options.items()),
            ]
        )


@dataclass(frozen=True)
class Method:
    """A row of the table.

    Attributes:
        label: what a reader calls it.
        loss: a key of `LOSSES`.
        configs: what is tried. One is taken as it is; of several the best on noisy labels that were held out.
        is_beside: whether it only stands beside what the paper is about, so that one seed is enough.
    """

    label: str
    loss: str
    configs: tuple[Config, ...]
    is_beside: bool = False

    @property
    def is_tuned(self) -> bool:
        """Whether there is a choice."""
        return len(self.configs) > 1


def _grid(scales: Sequence[float]) -> tuple[Config, ...]:
    return tuple(Config(scale, decay) for scale, decay in product(scales, (5e-4, 2e-3)))


_PAPERS = (Config(),)
#: Six each. A loss that is small against the weight decay keeps weights small: for losses whose gradient does not fade
#: this is what decides how much of the noise is learned.
_SCALES = (1.0, 0.1, 0.02)


def _gce(pairs: Sequence[tuple[float, float]]) -> tuple[Config, ...]:
    """It has a shape to tune as well, so fewer scales and decays."""
    return tuple(Config(scale, decay, {"q": q}) for q, (scale, decay) in product((0.5, 0.7), pairs))


_GCE = _gce(((1.0, 5e-4), (1.0, 2e-3), (0.2, 2e-3)))
#: Normed scores do not grow, so that its gradient fades as little as that of the losses above.
_NORMED_GCE = _gce(((1.0, 5e-4), (0.1, 5e-4), (0.1, 2e-3)))

#: In the order of the table.
METHODS: Mapping[str, Method] = {
    "ce": Method("CE as in the paper", "ce", _PAPERS),
    "ce-tuned": Method("tuned CE", "ce", _grid(_SCALES), is_beside=True),
    "gce-tuned": Method("tuned GCE", "gce", _GCE),
    "gce-normed": Method("tuned GCE, normed scores", "gce-normed", _NORMED_GCE, is_beside=True),
    "lc": Method("LC as in the paper", "lc", _PAPERS),
    "logodds": Method("tuned LC, default form", "logodds", _grid(_SCALES), is_beside=True),
    "unhinged-tuned": Method("tuned unhinged, normed scores", "unhinged", _grid(_SCALES)),
    "robust": Method(LOSSES["robust"].label, "robust", _grid(_SCALES)),
}
#: Rows that are not in the table yet, since some of their runs are missing; finished ones lie in results.jsonl under these
#: keys. A row that is complete moves to `METHODS`.
INCOMPLETE_METHODS: Mapping[str, Method] = {
    "gce": Method("GCE, q = 0.7", "gce", (Config(options={"q": 0.7}),)),
    "lc-sum": Method("LC as in the paper, sum", "lc-sum", _PAPERS),
    "lc-tuned": Method("tuned LC, pairwise", "lc", _grid(_SCALES)),
    "lc-normed": Method("tuned LC, pairwise, normed scores", "lc-normed", _grid(_SCALES)),
    # The settings that the unhinged loss chose: on these scores it is the same loss.
    "lc-wide": Method("LC, wide core, normed scores", "lc-wide", (Config(0.02, 2e-3),)),
}
#: What seconds are enough for.
SMALL_METHODS: Mapping[str, Method] = {
    **{key: METHODS[key] for key in ("ce", "lc")},
    "robust": Method(METHODS["robust"].label, "robust", (Config(1.0), Config(0.1))),
}


def best_of(tuned: Sequence[Mapping[str, Any]]) -> int:
    """The place of the run that agreed with most of the noisy labels that were held out; the first of equals.

    Example:
        >>> best_of([{"failed": "…"}, {"noisy_validation_accuracy": 41.0}, {"noisy_validation_accuracy": 41.5}])
        2
    """
    known = [-1.0 if "failed" in run else float(run["noisy_validation_accuracy"]) for run in tuned]
    return known.index(max(known))
