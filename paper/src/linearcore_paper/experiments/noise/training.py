"""One run of `noise`: a network that learns from wrong labels, and what it knows in the end."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from linearcore.cleaning import flagging_auc, suspects
from linearcore.noise import NoisyLabels
from linearcore_paper.experiments.noise.images import LAWS, draw_labels, read_images
from linearcore_paper.experiments.noise.losses import LOSSES, name_of
from linearcore_paper.experiments.noise.methods import Config
from linearcore_paper.vision import Images, Loss, Recipe, Run, Trained, hold_out


@dataclass(frozen=True)
class Size:
    """How much is done with a source.

    Attributes:
        recipe: of all runs. Scale, decay and seed are filled in.
        held_out: images with noisy labels that runs that tune are judged on.
        look_every: epochs of the runs that count between two looks at the test images, which take a while.
    """

    recipe: Recipe
    held_out: int
    look_every: int


SIZES: Mapping[str, Size] = {
    # The paper's: SGD with momentum 0.9, batches of 128, a rate of 0.1 and a cosine over 50 epochs.
    "cifar10": Size(Recipe("resnet18", epochs=50, batch=128, lr=0.1, momentum=0.9), 5000, look_every=5),
    "made-up": Size(Recipe("small", width=4, epochs=3, batch=24, lr=0.08, momentum=0.5), 80, look_every=2),
}


@dataclass(frozen=True)
class Plan:
    """Everything that decides a run.

    Attributes:
        source: "cifar10" or "made-up".
        loss: a key of `LOSSES`.
        config: its scale, decay and options.
        law: a key of `LAWS`.
        rate: of wrong labels.
        seed: of the wrong labels, the weights and the order.
        tunes: whether it is one of the runs that a configuration is chosen by.
    """

    source: str
    loss: str
    config: Config
    law: str
    rate: float
    seed: int
    tunes: bool = False

    @property
    def size(self) -> Size:
        """Of its source."""
        return SIZES[self.source]

    def make_loss(self) -> Loss:
        """Losses (B,) of scores (B, C) and labels (B,)."""
        return LOSSES[self.loss].make(self.config.options)

    def recipe(self, device: str) -> Recipe:
        """On a GPU the network is compiled, which makes it faster and nothing else."""
        own, config, is_cuda = self.size.recipe, self.config, torch.device(device).type == "cuda"
        network = "-".join(filter(None, (own.network, LOSSES[self.loss].ending)))
        return replace(
            own, network=network, weight_decay=config.decay, loss_scale=config.scale, seed=self.seed, compiled=is_cuda
        )

    def to_json(self, folder: Path | None) -> dict[str, Any]:
        """As JSON values; where it ran is told by the environment of its record."""
        recipe = self.recipe("cpu").to_json()
        del recipe["compiled"]
        data = read_images(self.source, folder)
        return {
            "config": self.config.to_json(),
            "data": {"source": self.source, "train": data.train.digest, "test": data.test.digest},
            "held_out": self.size.held_out if self.tunes else 0,
            "loss": name_of(self.make_loss()),
            "noise": LAWS[self.law].to_json() | {"rate": self.rate, "seed": self.seed},
            "recipe": recipe,
        }


def tune_run(plan: Plan, folder: Path | None, device: str) -> dict[str, Any]:
    """Trains on most of the noisy labels and looks at the others, which are as noisy: nobody has clean ones to choose by."""
    noisy = draw_labels(plan.source, folder, plan.law, plan.rate, plan.seed)
    data = read_images(plan.source, folder).train.with_labels(noisy.labels)
    rest, held = hold_out(data, plan.size.held_out, plan.seed)
    recipe = plan.recipe(device)
    # The last epoch is what counts, so no other is looked at.
    run = Run(rest, plan.make_loss(), recipe, validation=held, device=device, evaluate_every=recipe.epochs)
    trained = finished(run)
    found = draw_name(noisy) | {"seconds": _seconds(trained)}
    if trained.failed is not None:
        return found | {"failed": trained.failed}
    return found | {"noisy_validation_accuracy": round(trained.history[-1]["validation_accuracy"], 3)}


def train_run(plan: Plan, folder: Path | None, device: str) -> dict[str, Any]:
    """Trains on all noisy labels and looks at the clean test images now and then; the last look is what counts."""
    noisy = draw_labels(plan.source, folder, plan.law, plan.rate, plan.seed)
    sets = read_images(plan.source, folder)
    data = sets.train.with_labels(noisy.labels)
    every = plan.size.look_every
    trained = finished(Run(data, plan.make_loss(), plan.recipe(device), test=sets.test, device=device, evaluate_every=every))
    found = draw_name(noisy) | {"seconds": _seconds(trained)}
    if trained.failed is not None:
        return found | {"failed": trained.failed}
    scores = trained.scores(data.images).cpu()
    if not bool(scores.isfinite().all()):
        return found | {"failed": "scores are not finite"}
    curve = {row["epoch"]: round(row["test_accuracy"], 2) for row in trained.history if row["test_accuracy"] is not None}
    best = max(curve, key=lambda epoch: curve[epoch])
    return found | {
        "best_accuracy": curve[best],
        "best_epoch": best,
        "curve": [list(pair) for pair in curve.items()],
        "test_accuracy": curve[max(curve)],
        **known_about(scores, data, sets.train.labels, plan.make_loss()),
    }


def known_about(scores: Tensor, data: Images, clean: Tensor, loss: Loss) -> dict[str, Any]:
    """What training scores say about the labels that were given.

    Args:
        scores: (N, C), of the images that the network was trained on.
        data: the images with the labels that were given.
        clean: (N,) true labels.
        loss: that it was trained with.

    Returns:
        Per cent of all labels, and of the wrong ones, that the network gives itself; per cent of true labels; and how well
        wrong ones are found by margin and by loss, as areas under the curve. None where no label is wrong.
    """
    given, guess = data.labels, scores.argmax(1)
    is_wrong = given != clean
    found: dict[str, Any] = {"agreement": _percent(guess == given), "train_accuracy": _percent(guess == clean)}
    if not bool(is_wrong.any()):
        return found | {"wrong_learned": None, "auc_margin": None, "auc_loss": None}
    with torch.no_grad():
        losses = loss(scores, given)
    return found | {
        "wrong_learned": _percent((guess == given)[is_wrong]),
        "auc_margin": round(flagging_auc(suspects(scores, given).suspicion, is_wrong), 4),
        "auc_loss": round(flagging_auc(suspects(scores, given, by=losses).suspicion, is_wrong), 4),
    }


def finished(run: Run) -> Trained:
    """Drives a run to its end, without a word: whoever asked for many shows how far they are."""
    while not run.is_done:
        run.epoch()
    return run.result()


def draw_name(noisy: NoisyLabels) -> dict[str, Any]:
    """What names the wrong labels."""
    return {"noisy_labels": noisy.hash, "realised_rate": round(noisy.realised_rate, 6)}


def _seconds(trained: Trained) -> float:
    return round(sum(float(row["seconds"]) for row in trained.history), 2)


def _percent(marks: Tensor) -> float:
    return round(100 * float(marks.double().mean()), 3)
