"""Rows of the table of `noise`: a loss with the paper's settings or with those that were best on noisy labels."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

from linearcore_paper.experiments.noise.losses import LOSSES


@dataclass(frozen=True)
class Config:
    """Hyper-parameters that are tuned.

    Attributes:
        scale: factor of the mean loss of a batch.
        decay: weight decay.
        options: options of the loss.
    """

    scale: float = 1.0
    decay: float = 5e-4
    options: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns JSON values."""
        return asdict(self)

    @property
    def words(self) -> str:
        """Short text for a table."""
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
        label: name in tables and figures.
        loss: a key of `LOSSES`.
        configs: configurations to try. If there are several, the best on held-out noisy labels is used.
        is_secondary: whether the method is only for comparison and runs with one seed.
    """

    label: str
    loss: str
    configs: tuple[Config, ...]
    is_secondary: bool = False

    @property
    def is_tuned(self) -> bool:
        """Whether there are several configurations."""
        return len(self.configs) > 1


def _grid(scales: Sequence[float]) -> tuple[Config, ...]:
    return tuple(Config(scale, decay) for scale, decay in product(scales, (5e-4, 2e-3)))


_PAPERS = (Config(),)
#: Six configurations for each method. A small scale relative to the weight decay keeps the weights small. For losses whose
#: gradient does not vanish this determines how much of the noise is learned.
_SCALES = (1.0, 0.1, 0.02)


def _gce(pairs: Sequence[tuple[float, float]]) -> tuple[Config, ...]:
    """Returns configurations of GCE: fewer scales and decays, since q is tuned as well."""
    return tuple(Config(scale, decay, {"q": q}) for q, (scale, decay) in product((0.5, 0.7), pairs))


_GCE = _gce(((1.0, 5e-4), (1.0, 2e-3), (0.2, 2e-3)))
#: Normed scores do not grow, so the gradient of GCE does not vanish either.
_NORMED_GCE = _gce(((1.0, 5e-4), (0.1, 5e-4), (0.1, 2e-3)))

#: In the order of the table.
METHODS: Mapping[str, Method] = {
    "ce": Method("CE as in the paper", "ce", _PAPERS),
    "ce-tuned": Method("tuned CE", "ce", _grid(_SCALES), is_secondary=True),
    "gce-tuned": Method("tuned GCE", "gce", _GCE),
    "gce-normed": Method("tuned GCE, normed scores", "gce-normed", _NORMED_GCE, is_secondary=True),
    "lc": Method("LC as in the paper", "lc", _PAPERS),
    "logodds": Method("tuned LC, default form", "logodds", _grid(_SCALES), is_secondary=True),
    "unhinged-tuned": Method("tuned unhinged, normed scores", "unhinged", _grid(_SCALES)),
    "robust": Method(LOSSES["robust"].label, "robust", _grid(_SCALES)),
}
#: Rows that are not in the table because some of their runs are missing. Finished runs are in results.jsonl under these
#: keys. Move a complete row to `METHODS`.
INCOMPLETE_METHODS: Mapping[str, Method] = {
    "gce": Method("GCE, q = 0.7", "gce", (Config(options={"q": 0.7}),)),
    "lc-sum": Method("LC as in the paper, sum", "lc-sum", _PAPERS),
    "lc-tuned": Method("tuned LC, pairwise", "lc", _grid(_SCALES)),
    "lc-normed": Method("tuned LC, pairwise, normed scores", "lc-normed", _grid(_SCALES)),
    # The best settings of the unhinged loss, which is the same loss on these scores.
    "lc-wide": Method("LC, wide core, normed scores", "lc-wide", (Config(0.02, 2e-3),)),
}
#: Methods at smoke scale.
SMALL_METHODS: Mapping[str, Method] = {
    **{key: METHODS[key] for key in ("ce", "lc")},
    "robust": Method(METHODS["robust"].label, "robust", (Config(1.0), Config(0.1))),
}


def best_of(tuned: Sequence[Mapping[str, Any]]) -> int:
    """Returns the index of the run with the highest accuracy on held-out noisy labels; the first one on ties.

    Example:
        >>> best_of([{"failed": "…"}, {"noisy_validation_accuracy": 41.0}, {"noisy_validation_accuracy": 41.5}])
        2
    """
    accuracies = [-1.0 if "failed" in run else float(run["noisy_validation_accuracy"]) for run in tuned]
    return accuracies.index(max(accuracies))
