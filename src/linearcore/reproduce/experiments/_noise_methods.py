"""The rows of the table of `noise`: a loss with the paper's settings, or with those that did best on noisy labels."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

from linearcore.reproduce.experiments._noise_losses import LOSSES


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
    """

    label: str
    loss: str
    configs: tuple[Config, ...]

    @property
    def is_tuned(self) -> bool:
        """Whether there is a choice."""
        return len(self.configs) > 1


def _grid(scales: Sequence[float], options: Sequence[Mapping[str, float]] = ({},)) -> tuple[Config, ...]:
    return tuple(Config(scale, decay, dict(option)) for option, scale, decay in product(options, scales, (5e-4, 2e-3)))


_PAPERS = (Config(),)
#: Eight each. A loss that is small against the weight decay keeps weights small: for losses whose gradient does not fade
#: this is what decides how much of the noise is learned.
_SCALES = (1.0, 0.1, 0.02, 0.005)
#: The unhinged loss has no floor: with 0.1 and with 1 it grows out of all bounds within four epochs.
_UNHINGED_SCALES = (0.02, 0.01, 0.005, 0.002)

#: In the order of the table.
METHODS: Mapping[str, Method] = {
    "ce": Method("CE as in the paper", "ce", _PAPERS),
    "ce-tuned": Method("tuned CE", "ce", _grid(_SCALES)),
    "gce-tuned": Method("tuned GCE", "gce", _grid((1.0, 0.2), ({"q": 0.5}, {"q": 0.7}))),
    "lc": Method("LC as in the paper", "lc", _PAPERS),
    "logodds": Method("tuned LC, default form", "logodds", _grid(_SCALES)),
    "unhinged-tuned": Method("tuned unhinged", "unhinged", _grid(_UNHINGED_SCALES)),
    "robust": Method(LOSSES["robust"].label, "robust", _grid(_SCALES)),
}
#: What seconds are enough for.
SMALL_METHODS: Mapping[str, Method] = {
    **{key: METHODS[key] for key in ("ce", "lc")},
    "robust": Method(METHODS["robust"].label, "robust", (Config(1.0), Config(0.1))),
}


def ranked(tuned: Sequence[Mapping[str, Any]]) -> list[int]:
    """Places of the runs that tuned a method, best first by the noisy labels that were held out; who failed comes last.

    Example:
        >>> ranked([{"failed": "…"}, {"noisy_validation_accuracy": 41.0}, {"noisy_validation_accuracy": 41.5}])
        [2, 1, 0]
    """
    known = [-1.0 if "failed" in run else float(run["noisy_validation_accuracy"]) for run in tuned]
    return sorted(range(len(known)), key=lambda place: -known[place])
