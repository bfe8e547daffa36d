"""The demo: one small network, several losses, digits whose training labels are partly wrong.

What is held equal: for each seed, every loss gets the same split, the same wrong labels, the same initial weights and the
same batches; the unhinged loss alone has batch norm behind its scores. What is chosen: for each loss and
rate one learning rate from one grid, the one with the best mean accuracy over the seeds on a validation part whose labels
are as wrong as the training labels. Test labels are clean and play no part in the choice.
"""

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

import linearcore as lc
from linearcore.losses import robust_loss
from linearcore.losses.baselines import generalized_cross_entropy, unhinged
from linearcore.runtime import Progress, complaint, one_thread
from linearcore_paper.demo._digits import NUM_CLASSES, Digits, noisy_digits
from linearcore_paper.demo._networks import Loss, Networks, train

#: What the demo compares, in the order of the table: two usual losses, two robust rivals, the linear-core loss in its three
#: forms, and the robust one. Hinge and linear-core losses are the same call with another φ.
LOSSES: dict[str, Loss] = {
    "cross-entropy": partial(F.cross_entropy, reduction="none"),
    "hinge": partial(lc.multiclass_loss, surrogate=lc.Hinge(), form="pairwise", reduction="none"),
    "GCE": partial(generalized_cross_entropy, q=0.7, reduction="none"),
    "unhinged, normed": partial(unhinged, reduction="none"),
    "LC pairwise": partial(lc.multiclass_loss, surrogate=lc.LinearCore(), form="pairwise", reduction="none"),
    "LC centered": partial(lc.multiclass_loss, surrogate=lc.LinearCore(), form="centered", reduction="none"),
    "LC logodds": partial(lc.multiclass_loss, surrogate=lc.LinearCore(), form="logodds", reduction="none"),
    "LC robust": partial(robust_loss, reduction="none"),
}
#: Losses whose scores are normalised over the batch: without a minimum they would diverge.
NORMED = ("unhinged, normed",)


@dataclass(frozen=True)
class DemoSettings:
    """What decides the demo's numbers.

    Args:
        seeds: how many seeds; each has its own split, noise, start and batches.
        rates: shares of wrong labels, each at least 0 and below 0.9, where the right digit stops being the likeliest.
        epochs: passes over the training part.
        seed: the first seed; the others follow it.
        learning_rates: the grid that each loss and rate chooses from.
        hidden: units in the hidden layer.
        batch_size: examples in a step.

    Raises:
        ValueError: if one of them is out of range.
    """

    seeds: int = 5
    rates: tuple[float, ...] = (0.0, 0.2, 0.4)
    epochs: int = 30
    seed: int = 0
    # Wide enough: at 0.00003 and at 0.1 the losses have a lower validation accuracy, at every default rate.
    learning_rates: tuple[float, ...] = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03)
    hidden: int = 128
    batch_size: int = 64

    def __post_init__(self) -> None:
        for name in ("seeds", "epochs", "hidden", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(complaint(name, "be at least 1", getattr(self, name), "raise it"))
        if not 0 <= self.seed < 2**31:
            raise ValueError(complaint("seed", "be a non-negative integer below 2**31", self.seed, "pass 0, for example"))
        limit = 1 - 1 / NUM_CLASSES
        wrong = [rate for rate in self.rates if not 0 <= rate < limit]
        if wrong or not self.rates:
            got = f"{wrong[0]:g}" if wrong else "none"
            raise ValueError(complaint("rates", f"be at least 0 and below {limit:g}", got, "pass 0,0.2,0.4 for example"))
        if len(set(self.rates)) < len(self.rates):
            raise ValueError(complaint("rates", "be distinct", f"{self.rates}", "name each rate once"))
        if not self.learning_rates or min(self.learning_rates) <= 0:
            raise ValueError(complaint("learning_rates", "be positive", self.learning_rates, "pass 0.001,0.01 for example"))

    @property
    def all_seeds(self) -> range:
        """The seeds themselves."""
        return range(self.seed, self.seed + self.seeds)


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What the demo measured.

    Attributes:
        settings: with what.
        accuracy: for each loss (rates, seeds), on clean test labels, at the chosen learning rate.
        learning_rates: for each loss the choice at each rate.
        hashes: (seeds, rates) names of the draws of wrong labels.
    """

    settings: DemoSettings
    accuracy: dict[str, npt.NDArray[np.float64]]
    learning_rates: dict[str, tuple[float, ...]]
    hashes: tuple[tuple[str, ...], ...]

    def spread(self, loss: str) -> npt.NDArray[np.float64]:
        """Standard deviation over the seeds at each rate; zero for a single seed, which shows none."""
        accuracy = self.accuracy[loss]
        return accuracy.std(1, ddof=1) if accuracy.shape[1] > 1 else np.zeros(len(accuracy))

    def as_json(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Settings and results as JSON values for a record."""
        results = {
            "losses": {
                name: {
                    "accuracy": [[round(value, 6) for value in row] for row in accuracy.tolist()],
                    "learning_rate": list(self.learning_rates[name]),
                    "mean": [round(value, 6) for value in accuracy.mean(1).tolist()],
                    "sd": [round(value, 6) for value in self.spread(name).tolist()],
                }
                for name, accuracy in self.accuracy.items()
            },
            "noise": [[name[:16] for name in of_seed] for of_seed in self.hashes],
        }
        return asdict(self.settings) | {"threads": 1}, results


def run(settings: DemoSettings, progress: Progress) -> DemoResult:
    """Trains every loss at every learning rate, chooses, and tests.

    Cost: losses × learning rates trainings of seeds × rates networks side by side; a minute or two on one core with the
    default settings.
    """
    digits = noisy_digits(settings.all_seeds, settings.rates)
    accuracy, chosen = {}, {}
    with one_thread():
        for name in progress.track(LOSSES, f"{len(LOSSES)} losses"):
            accuracy[name], chosen[name] = _measure(name, digits, settings, progress)
    return DemoResult(settings, accuracy, chosen, digits.hashes)


def _measure(
    name: str, digits: Digits, settings: DemoSettings, progress: Progress
) -> tuple[npt.NDArray[np.float64], tuple[float, ...]]:
    """Accuracy (rates, seeds) of one loss on the test part, and the learning rates that were chosen for it."""
    validation, test = [], []
    with progress.part(name, len(settings.learning_rates) * settings.epochs) as part:
        for learning_rate in settings.learning_rates:
            sizes = (64, settings.hidden, NUM_CLASSES)
            networks = Networks(settings.all_seeds, len(settings.rates), sizes, is_normed=name in NORMED)
            for _ in train(
                networks,
                digits.train_inputs,
                digits.train_labels,
                LOSSES[name],
                learning_rate=learning_rate,
                epochs=settings.epochs,
                batch_size=settings.batch_size,
            ):
                part.advance()
            validation.append(networks.accuracy(digits.validation_inputs, digits.validation_labels))
            test.append(networks.accuracy(digits.test_inputs, digits.test_labels.unsqueeze(1)))
    choice = torch.stack(validation).mean(1).argmax(0)  # (learning rates, seeds, rates) → one index for each rate
    at_choice = torch.stack(test)[choice, :, torch.arange(len(settings.rates))]
    return at_choice.numpy(), tuple(settings.learning_rates[index] for index in choice.tolist())
