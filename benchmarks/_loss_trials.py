"""Losses, label noise and tries of `which_loss.py`, and one cell: three seeds and six tries of one loss in one case."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

import linearcore as lc
from _label_sets import PARTS, LabelSet, Pool
from _network_stack import NetworkStack, RowLosses, Steps, train
from linearcore import noise
from linearcore.losses.baselines import (
    cross_entropy,
    early_learning_loss,
    generalized_cross_entropy,
    symmetric_cross_entropy,
)

Probabilities = Callable[[Tensor], Tensor]
#: Bins of the expected calibration error, and the smallest probability of the negative log-likelihood.
BINS, FLOOR = 15, 1e-8


@dataclass(frozen=True)
class Loss:
    """A loss of the comparison.

    Attributes:
        title: name in tables.
        make: function from the numbers of networks × rows and of classes to the losses of rows.
        probabilities: function from scores to probabilities; None if the loss does not estimate them.
        is_normed: whether the network ends in `linearcore.NormedScores`.
        is_ours: whether it is a linear-core loss.
        fits_two_classes: False if the loss raises for two classes, or equals another loss of the comparison.
    """

    title: str
    make: Callable[[int, int], RowLosses]
    probabilities: Probabilities | None = None
    is_normed: bool = False
    is_ours: bool = False
    fits_two_classes: bool = True


def stateless(loss: Callable[..., Tensor], **options: Any) -> Callable[[int, int], RowLosses]:
    """Makes the losses of rows from a function of scores and labels."""

    def losses(scores: Tensor, labels: Tensor, positions: Tensor) -> Tensor:
        return loss(scores, labels, reduction="none", **options)

    return lambda rows, classes: losses


def early_learning(rows: int, classes: int) -> RowLosses:
    """Makes the losses of rows of early-learning regularisation, with the predictions of all rows of all networks."""
    history = torch.zeros(rows, classes)

    def losses(scores: Tensor, labels: Tensor, positions: Tensor) -> Tensor:
        found, new = early_learning_loss(scores, labels, history[positions], reduction="none")
        history[positions] = new
        return found

    return losses


softmax: Probabilities = partial(torch.softmax, dim=-1)
_DEFAULT, _WIDE = lc.LinearCoreLoss(), lc.LinearCore(tau=5.0)

LOSSES: dict[str, Loss] = {
    "ce": Loss("cross-entropy", stateless(cross_entropy), softmax),
    "smoothed": Loss("label smoothing 0.1", stateless(cross_entropy, label_smoothing=0.1), softmax),
    "gce": Loss("GCE", stateless(generalized_cross_entropy), softmax),
    "sce": Loss("symmetric CE", stateless(symmetric_cross_entropy), softmax),
    "elr": Loss("ELR", early_learning, softmax),
    "lc": Loss("LC default", stateless(lc.multiclass_loss), _DEFAULT.probabilities, is_ours=True),
    "pairwise": Loss("LC pairwise", stateless(lc.multiclass_loss, form="pairwise"), is_ours=True, fits_two_classes=False),
    "robust": Loss("LC robust", stateless(lc.losses.robust_loss), is_ours=True, fits_two_classes=False),
    "wide": Loss(
        "LC wide core, normed", stateless(lc.multiclass_loss, form="pairwise", surrogate=_WIDE), is_normed=True, is_ours=True
    ),
    "gce-normed": Loss("GCE, normed", stateless(generalized_cross_entropy), softmax, is_normed=True),
}

#: Label noise by name: law and rate. A law for three or more classes, and another for two where it would be the same.
NOISES: dict[str, tuple[str, float]] = {
    "clean": ("clean", 0.0),
    "symmetric 40 %": ("symmetric", 0.4),
    "pair flip 40 %": ("pair_flip", 0.4),
    "symmetric 20 %": ("symmetric", 0.2),
    "pair flip 20 %": ("pair_flip", 0.2),
    "class-conditional 40 %": ("class_conditional", 0.4),
    "instance-dependent 40 %": ("instance_dependent", 0.4),
    "class-conditional 20 %": ("class_conditional", 0.2),
    "instance-dependent 20 %": ("instance_dependent", 0.2),
}
#: With two classes pair flip and instance-dependent noise are the symmetric noise.
TWO_CLASS_LAWS = ("clean", "symmetric", "class_conditional")

#: The six tries: two numbers of epochs of the data set, with three learning rates of Adam each, or three scales of the loss
#: at one learning rate of SGD, whose weight decay makes the scale matter. A linear layer gets larger ones.
ADAM_LRS = {True: (0.001, 0.005, 0.025), False: (0.002, 0.01, 0.05)}
SGD_LR, SGD_SCALES = 0.1, {True: (0.1, 1.0, 10.0), False: (0.3, 3.0, 30.0)}


def steps_of(case: LabelSet, optimizer: str) -> list[Steps]:
    """Returns the training settings of the two numbers of epochs."""
    has_hidden = case.hidden > 0
    lrs, scales = ADAM_LRS[has_hidden], (1.0, 1.0, 1.0)
    if optimizer == "sgd":
        lrs, scales = (SGD_LR,) * 3, SGD_SCALES[has_hidden]
    return [Steps(optimizer, lrs, scales, epochs, case.batch) for epochs in case.epochs]


def tries_of(case: LabelSet, optimizer: str) -> list[tuple[float, float, int]]:
    """Returns learning rate, scale and epochs of the six tries."""
    return [
        (lr, scale, steps.epochs)
        for steps in steps_of(case, optimizer)
        for lr, scale in zip(steps.lrs, steps.scales, strict=True)
    ]


def noisy_labels(pool: Pool, name: str, seed: int) -> Tensor:
    """Draws the labels of all rows."""
    law, rate = NOISES[name]
    if law == "clean":
        return pool.labels
    if law == "class_conditional":
        return noise.class_conditional(pool.labels, confusions(pool.num_classes, rate, seed), seed=seed).labels
    options = {"inputs": "normalised"} if law == "instance_dependent" else {}
    how: dict[str, Any] = {"features": pool.features, "num_classes": pool.num_classes, "seed": seed, **options}
    return noise.draw(law, pool.labels, rate, **how).labels


def confusions(num_classes: int, rate: float, seed: int) -> Tensor:
    """Returns a transition matrix: a class is wrong at 0.8 to 1.2 times the rate, mostly in favour of a few classes."""
    stream = torch.Generator().manual_seed(3000 + seed)
    rates = rate * torch.linspace(0.8, 1.2, num_classes, dtype=torch.float64)
    rates = rates[torch.randperm(num_classes, generator=stream)]
    preference = 2 * torch.randn(num_classes, num_classes, generator=stream, dtype=torch.float64)
    others = preference.fill_diagonal_(-math.inf).softmax(1)
    return torch.diag(1 - rates) + rates.unsqueeze(1) * others


def one_cell(
    pool: Pool, case: LabelSet, noise_name: str, loss: Loss, optimizer: str, seeds: Sequence[int], *, has_test: bool = True
) -> dict[str, list[Any]]:
    """Trains all tries and seeds of a loss; returns measures as lists over seeds, or over seeds and tries.

    `validation` is the accuracy on noisy labels and `test` on true ones, by seed and try; `chosen` is the try with the best
    validation accuracy, the earlier one in a tie. The other measures are those of the chosen try on true labels. Without
    `has_test` there are only `validation` and `chosen`.
    """
    count = len(pool.labels)
    orders = [torch.randperm(count, generator=torch.Generator().manual_seed(seed)) for seed in seeds]
    sizes = [int(part * count) for part in PARTS[:2]]
    train_rows, held, test = torch.stack(orders).split([*sizes, count - sum(sizes)], dim=1)
    labels = torch.stack([noisy_labels(pool, noise_name, seed) for seed in seeds])
    widths = [pool.features.shape[1], *([case.hidden] if case.hidden else []), pool.num_classes]
    blocks: list[dict[str, Tensor]] = []
    for steps in steps_of(case, optimizer):
        tries = len(steps.lrs)
        networks = NetworkStack(widths, seeds, tries, is_normed=loss.is_normed)
        row_losses = loss.make(len(seeds) * tries * train_rows.shape[1], pool.num_classes)
        train(networks, pool.features, labels, train_rows, row_losses, steps, seeds)
        on_held = networks.evaluate(pool.features, held)
        wanted = labels.gather(1, held).repeat_interleave(tries, 0)
        measures = {"validation": hits(on_held, wanted).double().mean(1)}
        if has_test:
            on_test = networks.evaluate(pool.features, test)
            measures |= test_measures(on_test, pool.labels[test].repeat_interleave(tries, 0), loss.probabilities)
        blocks.append({name: values.view(len(seeds), tries) for name, values in measures.items()})
    found = {name: torch.cat([block[name] for block in blocks], 1) for name in blocks[0]}
    chosen = found["validation"].argmax(1, keepdim=True)
    results = {name: rounded(100 * found.pop(name), 2) for name in ("validation", "test") if name in found}
    results["chosen"] = chosen.flatten().tolist()
    return results | {name: rounded(values.gather(1, chosen).flatten(), 4) for name, values in found.items()}


def hits(scores: Tensor, labels: Tensor) -> Tensor:
    """Returns where the class with the highest score is the label (K, R); infinite or NaN scores are errors."""
    return (scores.argmax(-1) == labels) & scores.isfinite().all(-1)


def test_measures(scores: Tensor, labels: Tensor, probabilities: Probabilities | None) -> dict[str, Tensor]:
    """Returns the measures (K,) of scores (K, R, C): `test`, `balanced`, and `ece` and `nll` of the probabilities."""
    right = hits(scores, labels)
    found = {"test": right.double().mean(1), "balanced": balanced_accuracy(right, labels, scores.shape[-1])}
    if probabilities is not None:
        p = probabilities(scores.flatten(0, 1)).double().view(scores.shape).nan_to_num(0.0)
        found["ece"] = calibration_error(p.amax(-1), right)
        found["nll"] = -p.gather(2, labels.unsqueeze(2)).squeeze(2).clamp(min=FLOOR).log().mean(1)
    return found


def balanced_accuracy(right: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """Returns the mean recall (K,) of the classes that occur, from hits (K, R)."""
    counts = torch.zeros(len(labels), num_classes, dtype=torch.float64)
    recalled = counts.clone().scatter_add_(1, labels, right.double())
    counts.scatter_add_(1, labels, torch.ones_like(labels, dtype=torch.float64))
    return (recalled / counts.clamp(min=1)).sum(1) / (counts > 0).sum(1)


def calibration_error(confidence: Tensor, right: Tensor) -> Tensor:
    """Returns the expected calibration error (K,): |mean confidence − accuracy| in bins of equal width, by their rows."""
    bins = (confidence * BINS).long().clamp(0, BINS - 1)
    gaps = torch.zeros(len(confidence), BINS, dtype=torch.float64).scatter_add_(1, bins, confidence - right.double())
    return gaps.abs().sum(1) / confidence.shape[1]


def rounded(values: Tensor, digits: int) -> list[Any]:
    """Returns nested lists of rounded numbers."""
    return (values.double() * 10**digits).round().div(10**digits).tolist()
