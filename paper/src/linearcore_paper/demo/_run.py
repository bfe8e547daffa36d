"""The demo's settings, its measurements and their result.

The accuracy part trains the same small network with five losses on digits whose training labels are partly wrong. For each
seed, every loss gets the same split, wrong labels, initial weights and batches. For each loss and share of wrong labels, one
learning rate is chosen from one grid: the one with the best mean accuracy over the seeds on validation digits whose labels
are as wrong as the training labels. The test labels are clean and are not used for the choice.
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
from linearcore.losses.baselines import generalized_cross_entropy
from linearcore.runtime import Progress, complaint, one_thread, positive
from linearcore_paper.demo._digits import NUM_CLASSES, Digits, noisy_digits
from linearcore_paper.demo._networks import Loss, Networks, train
from linearcore_paper.demo._steps import BATCH, HIDDEN, LENGTH, StepTimes, time_steps

#: The losses of the accuracy part: two baselines, the default loss, and the two that `docs` recommend for wrong labels.
LOSSES: dict[str, Loss] = {
    "cross-entropy": partial(F.cross_entropy, reduction="none"),
    "GCE": partial(generalized_cross_entropy, q=0.7, reduction="none"),
    "LinearCoreLoss": partial(lc.multiclass_loss, reduction="none"),
    "RobustLinearCoreLoss": partial(robust_loss, reduction="none"),
    "wide core, NormedScores": partial(
        lc.multiclass_loss, surrogate=lc.LinearCore(tau=5.0), form="pairwise", reduction="none"
    ),
}
#: The losses whose networks end in `NormedScores`.
NORMED = ("wide core, NormedScores",)
#: With more tags a step of pytorch-crf needs more than 3 GB.
MOST_TAGS = 2000


@dataclass(frozen=True)
class DemoSettings:
    """What determines the demo's numbers.

    Args:
        seeds: number of seeds; each has its own split, wrong labels, initial weights and batches.
        noise_rates: fractions of wrong labels, in [0, 0.9). From 0.9 on, the right digit is not the most frequent label.
        epochs: passes over the training digits.
        seed: the first seed; the others follow it.
        tags: numbers of tags at which training steps are timed.
        seconds: how long training steps are timed, all together.
        learning_rates: the grid from which a learning rate is chosen for each loss and rate.
        hidden: units in the hidden layer.
        batch_size: digits in a step.

    Raises:
        ValueError: if one of them is out of range.
    """

    seeds: int = 5
    noise_rates: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6)
    epochs: int = 30
    seed: int = 0
    tags: tuple[int, ...] = (10, 30, 100, 300, 1000)
    seconds: float = 30.0
    learning_rates: tuple[float, ...] = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03)
    hidden: int = 128
    batch_size: int = 64

    def __post_init__(self) -> None:
        for name in ("seeds", "epochs", "hidden", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(complaint(name, "be at least 1", getattr(self, name), "raise it"))
        if not 0 <= self.seed < 2**31:
            raise ValueError(complaint("seed", "be a non-negative integer below 2**31", self.seed, "pass 0, for example"))
        positive("seconds", self.seconds, "pass 30, for example")
        limit = 1 - 1 / NUM_CLASSES
        ranges = {
            "noise_rates": (
                all(0 <= rate < limit for rate in self.noise_rates),
                f"be at least 0 and below {limit:g}",
                "0,0.2,0.4",
            ),
            "tags": (all(2 <= tags <= MOST_TAGS for tags in self.tags), f"be between 2 and {MOST_TAGS}", "10,100,1000"),
            "learning_rates": (all(rate > 0 for rate in self.learning_rates), "be positive", "0.001,0.01"),
        }
        for name, (is_inside, rule, example) in ranges.items():
            values = getattr(self, name)
            if not values or not is_inside or len(set(values)) < len(values):
                got = ",".join(f"{value:g}" for value in values) or "none"
                raise ValueError(complaint(name, f"{rule}, each given once", got, f"pass {example} for example"))

    @property
    def all_seeds(self) -> range:
        """The seeds themselves."""
        return range(self.seed, self.seed + self.seeds)


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What the demo measured.

    Attributes:
        settings: the settings.
        accuracy: for each loss (rates, seeds), on clean test labels, at the chosen learning rate.
        learning_rates: for each loss the learning rate chosen at each rate.
        hashes: (seeds, rates) hashes of the wrong labels.
        steps: for each loss and number of tags the quartiles of the CPU time of a training step, in milliseconds.
    """

    settings: DemoSettings
    accuracy: dict[str, npt.NDArray[np.float64]]
    learning_rates: dict[str, tuple[float, ...]]
    hashes: tuple[tuple[str, ...], ...]
    steps: StepTimes

    def spread(self, loss: str) -> npt.NDArray[np.float64]:
        """Standard deviation over the seeds at each rate; zero for a single seed."""
        accuracy = self.accuracy[loss]
        return accuracy.std(1, ddof=1) if accuracy.shape[1] > 1 else np.zeros(len(accuracy))

    def medians(self, loss: str) -> list[float]:
        """Median CPU time of a training step at each number of tags, in milliseconds."""
        return [median for _, median, _ in self.steps[loss]]

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
            "step_quartiles_ms": {
                name: [[round(value, 4) for value in quartiles] for quartiles in rows] for name, rows in self.steps.items()
            },
        }
        step = {"batch": BATCH, "length": LENGTH, "hidden": HIDDEN}
        return asdict(self.settings) | {"threads": 1, "step": step}, results


def run(settings: DemoSettings, progress: Progress) -> DemoResult:
    """Times the training steps, then trains with every loss at every learning rate, chooses, and tests."""
    steps = time_steps(settings.tags, settings.seconds, progress)
    digits = noisy_digits(settings.all_seeds, settings.noise_rates)
    accuracy, chosen = {}, {}
    with one_thread():
        for name in progress.track(LOSSES, f"{len(LOSSES)} losses"):
            accuracy[name], chosen[name] = _measure(name, digits, settings, progress)
    return DemoResult(settings, accuracy, chosen, digits.hashes, steps)


def _measure(
    name: str, digits: Digits, settings: DemoSettings, progress: Progress
) -> tuple[npt.NDArray[np.float64], tuple[float, ...]]:
    """Accuracy (rates, seeds) of one loss on the test digits, and the learning rates that were chosen for it."""
    validation, test = [], []
    with progress.part(name, len(settings.learning_rates) * settings.epochs, unit="epochs") as part:
        for learning_rate in settings.learning_rates:
            networks = Networks(
                settings.all_seeds, len(settings.noise_rates), (64, settings.hidden, NUM_CLASSES), is_normed=name in NORMED
            )
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
    at_choice = torch.stack(test)[choice, :, torch.arange(len(settings.noise_rates))]
    return at_choice.numpy(), tuple(settings.learning_rates[index] for index in choice.tolist())
