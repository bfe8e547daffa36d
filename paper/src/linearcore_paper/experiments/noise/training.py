"""One run of `noise`: trains a network on wrong labels and measures what it has learned."""

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
    """Training size for a data set.

    Attributes:
        recipe: recipe of all runs. Scale, weight decay and seed are filled in.
        held_out: number of images with noisy labels on which tuning runs are evaluated.
        look_every: epochs between two evaluations on the test images in final runs.
    """

    recipe: Recipe
    held_out: int
    look_every: int


SIZES: Mapping[str, Size] = {
    # The paper's recipe: SGD with momentum 0.9, batch size 128, learning rate 0.1 with a cosine schedule over 50 epochs.
    "cifar10": Size(Recipe("resnet18", epochs=50, batch=128, lr=0.1, momentum=0.9), 5000, look_every=5),
    "made-up": Size(Recipe("small", width=4, epochs=3, batch=24, lr=0.08, momentum=0.5), 80, look_every=2),
}


@dataclass(frozen=True)
class Plan:
    """All settings of a run.

    Attributes:
        source: "cifar10" or "made-up".
        loss: a key of `LOSSES`.
        config: scale, weight decay and options of the loss.
        law: a key of `LAWS`.
        rate: noise rate.
        seed: random seed of the wrong labels, the weights and the order.
        tunes: whether this is a tuning run.
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
        """Training size for the source."""
        return SIZES[self.source]

    def make_loss(self) -> Loss:
        """Returns the loss, a function of scores (B, C) and labels (B,) with values (B,)."""
        return LOSSES[self.loss].make(self.config.options)

    def recipe(self, device: str) -> Recipe:
        """Returns the recipe. On a GPU the network is compiled, which changes only the speed."""
        base, config, is_cuda = self.size.recipe, self.config, torch.device(device).type == "cuda"
        network = "-".join(filter(None, (base.network, LOSSES[self.loss].ending)))
        return replace(
            base, network=network, weight_decay=config.decay, loss_scale=config.scale, seed=self.seed, compiled=is_cuda
        )

    def to_json(self, folder: Path | None) -> dict[str, Any]:
        """Returns JSON values without the device, which is in the environment of the result."""
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
    """Trains on most of the noisy labels and evaluates on the held-out ones, which are equally noisy."""
    noisy = draw_labels(plan.source, folder, plan.law, plan.rate, plan.seed)
    data = read_images(plan.source, folder).train.with_labels(noisy.labels)
    rest, held = hold_out(data, plan.size.held_out, plan.seed)
    recipe = plan.recipe(device)
    # Only the last epoch is evaluated.
    run = Run(rest, plan.make_loss(), recipe, validation=held, device=device, evaluate_every=recipe.epochs)
    trained = train_all_epochs(run)
    result = label_facts(noisy) | {"seconds": _seconds(trained)}
    if trained.failed is not None:
        return result | {"failed": trained.failed}
    return result | {"noisy_validation_accuracy": round(trained.history[-1]["validation_accuracy"], 3)}


def train_run(plan: Plan, folder: Path | None, device: str) -> dict[str, Any]:
    """Trains on all noisy labels and evaluates on the clean test images; the result is the last evaluation."""
    noisy = draw_labels(plan.source, folder, plan.law, plan.rate, plan.seed)
    sets = read_images(plan.source, folder)
    data = sets.train.with_labels(noisy.labels)
    every = plan.size.look_every
    trained = train_all_epochs(
        Run(data, plan.make_loss(), plan.recipe(device), test=sets.test, device=device, evaluate_every=every)
    )
    result = label_facts(noisy) | {"seconds": _seconds(trained)}
    if trained.failed is not None:
        return result | {"failed": trained.failed}
    scores = trained.scores(data.images).cpu()
    if not bool(scores.isfinite().all()):
        return result | {"failed": "scores are not finite"}
    curve = {row["epoch"]: round(row["test_accuracy"], 2) for row in trained.history if row["test_accuracy"] is not None}
    best = max(curve, key=lambda epoch: curve[epoch])
    return result | {
        "best_accuracy": curve[best],
        "best_epoch": best,
        "curve": [list(pair) for pair in curve.items()],
        "test_accuracy": curve[max(curve)],
        **label_metrics(scores, data, sets.train.labels, plan.make_loss()),
    }


def label_metrics(scores: Tensor, data: Images, clean: Tensor, loss: Loss) -> dict[str, Any]:
    """Compares the predictions for the training images with their noisy and true labels.

    Args:
        scores: (N, C) scores of the training images.
        data: the training images with their noisy labels.
        clean: (N,) true labels.
        loss: the training loss.

    Returns:
        Per cent of predictions equal to the noisy label, over all images and over wrong labels; per cent equal to the true
        label; area under the ROC curve for detecting wrong labels by margin and by loss. None if no label is wrong.
    """
    noisy, prediction = data.labels, scores.argmax(1)
    is_wrong = noisy != clean
    metrics: dict[str, Any] = {"agreement": _percent(prediction == noisy), "train_accuracy": _percent(prediction == clean)}
    if not bool(is_wrong.any()):
        return metrics | {"wrong_learned": None, "auc_margin": None, "auc_loss": None}
    with torch.no_grad():
        losses = loss(scores, noisy)
    return metrics | {
        "wrong_learned": _percent((prediction == noisy)[is_wrong]),
        "auc_margin": round(flagging_auc(suspects(scores, noisy).suspicion, is_wrong), 4),
        "auc_loss": round(flagging_auc(suspects(scores, noisy, measure=losses).suspicion, is_wrong), 4),
    }


def train_all_epochs(run: Run) -> Trained:
    """Trains all epochs of a run without progress output; the caller shows the progress."""
    while not run.is_done:
        run.epoch()
    return run.result()


def label_facts(noisy: NoisyLabels) -> dict[str, Any]:
    """Returns the hash and the noise rate of the drawn labels."""
    return {"noisy_labels": noisy.hash, "realised_rate": round(noisy.realised_rate, 6)}


def _seconds(trained: Trained) -> float:
    return round(sum(float(row["seconds"]) for row in trained.history), 2)


def _percent(marks: Tensor) -> float:
    return round(100 * float(marks.double().mean()), 3)
