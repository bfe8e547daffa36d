"""Scores for every row by a network that was not trained on it."""

import io
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._arrays import Features, Labels, Numbers, as_labels, check_num_classes, one_per_row
from linearcore._checks import complaint, holds, positive
from linearcore._streams import check_seed, stream_for
from linearcore.cleaning._losses import RowLoss, named_loss
from linearcore.cleaning._networks import FoldNetworks, train_epochs
from linearcore.runtime import Progress, one_thread


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Scores by networks that did not see the row.

    Attributes:
        scores: (N, C) float32, of the epoch below.
        fold: (N,) int64, the part that a row is in.
        agreement: for every epoch the share of given labels that are also the best score.
        epoch: the one with the greatest agreement, from 1; the earliest of equals.
    """

    scores: Tensor
    fold: Tensor
    agreement: tuple[float, ...]
    epoch: int


def out_of_fold_scores(
    features: Numbers,
    labels: Labels,
    *,
    num_classes: int,
    loss: str | RowLoss = "gce",
    folds: int = 5,
    epochs: int = 30,
    learning_rate: float = 0.003,
    hidden: int = 128,
    batch_size: int = 64,
    seed: int = 0,
    progress: Progress | None = None,
) -> OutOfFold:
    """Splits the rows into `folds` parts and scores each part by a small network that was trained on all the others.

    Features are normalised; a network has one hidden layer of rectified units and is trained with Adam. After every epoch
    all rows are scored, and the scores of the epoch that agrees with most given labels are kept: later ones have begun to
    memorise wrong labels. Agreement is with the given labels, so that no clean labels are needed.
    Every part has its share of every class. A class with a single row is unknown to the network that scores it.

    For tables. For images and text train your own model in the same way, and give its scores to `suspects`.

    Args:
        features: (N, D) finite numbers.
        labels: (N,) given labels in 0..C−1.
        num_classes: C ≥ 2.
        loss: a key of `LOSSES` ("robust" needs C ≥ 3), a `Baseline`, or a function of scores (B, C) and labels
            (B,) that gives losses (B,). Scores are normalised over the batch for baselines without a minimum.
        folds: parts, at least 2 and at most N.
        epochs: passes over the other parts, at most.
        learning_rate: Adam's step size.
        hidden: units of the hidden layer.
        batch_size: rows in a step.
        seed: of parts, starts and order.
        progress: where to show how far it is.

    Raises:
        TypeError: if `labels` are no integers or `features` no numbers.
        ValueError: if an argument is out of range, or scores are not finite because the learning rate is too large.

    Example:
        >>> from linearcore.cleaning import flagging_auc, suspects
        >>> from linearcore.noise import symmetric
        >>> clean = torch.arange(200) % 2
        >>> points = 6 * clean.unsqueeze(1) + torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
        >>> noisy = symmetric(clean, 0.1, num_classes=2, seed=0)
        >>> found = out_of_fold_scores(points, noisy.labels, num_classes=2)
        >>> flagging_auc(suspects(found.scores, noisy.labels).suspicion, noisy.labels != clean) > 0.98
        True

    Cost: `epochs` passes over folds − 1 times the data, on one CPU core; about a second for 2,000 rows and ten for 20,000
    with the default settings. The same numbers on every run on a machine.
    """
    _check_settings(num_classes, learning_rate, seed, epochs=epochs, hidden=hidden, batch_size=batch_size)
    criterion = named_loss(loss, num_classes)
    inputs = normalised(features)
    given = as_labels(labels, num_classes).cpu()
    one_per_row(given, len(inputs), "features")
    if isinstance(folds, bool) or not isinstance(folds, int) or not 2 <= folds <= len(inputs):
        must = f"be an integer from 2 to the number of rows, {len(inputs)}"
        raise ValueError(complaint("folds", must, repr(folds), "5 or 10 are usual"))
    generator = stream_for("folds", seed)
    fold = _split(given, folds, generator)
    networks = FoldNetworks(folds, (inputs.shape[1], hidden, num_classes), generator, criterion.is_normed)
    others = [(fold != number).nonzero().squeeze(1) for number in range(folds)]
    best, agreement = torch.empty(0), []
    shown = Progress(io.StringIO()) if progress is None else progress
    with one_thread(), shown.part(f"{folds} networks", epochs, "epochs") as part:
        for _ in train_epochs(
            networks,
            inputs,
            given,
            others,
            criterion,
            learning_rate=learning_rate,
            epochs=epochs,
            batch_size=batch_size,
            generator=generator,
        ):
            scores = _held_out(networks, inputs, fold)
            agreement.append(float((scores.argmax(1) == given).double().mean()))
            # The earliest of equals: it has had less time to memorise wrong labels.
            if agreement[-1] > max(agreement[:-1], default=-1.0):
                best = scores
            part.advance()
    return OutOfFold(best, fold, tuple(agreement), 1 + agreement.index(max(agreement)))


def _split(given: Tensor, folds: int, generator: torch.Generator) -> Tensor:
    """(N,) the part of every row: sizes differ by one at most, and so do those of a class in each of them."""
    shuffled = torch.randperm(len(given), generator=generator)
    by_class = shuffled[given[shuffled].sort(stable=True).indices]
    fold = torch.empty_like(given)
    fold[by_class] = torch.arange(len(given)) % folds
    return fold


@torch.no_grad()
def _held_out(networks: FoldNetworks, inputs: Tensor, fold: Tensor) -> Tensor:
    """(N, C): every row scored by the network of its own part."""
    scores = torch.empty(len(inputs), networks.parameters[-1].shape[-1])
    for number in range(len(networks.parameters[0])):
        rows = (fold == number).nonzero().squeeze(1)
        scores[rows] = networks.scores_of(number, inputs[rows])
    holds("scores", scores.isfinite(), "stay finite while networks are trained", "lower the learning rate")
    return scores


def normalised(features: Numbers) -> Tensor:
    """(N, D) float32 with mean 0 and spread 1 in every column."""
    rows = Features.prepared(features, "normalised")
    return torch.cat([part.float() for part in rows.chunks()]) if len(features) else torch.empty(0, rows.width)


def _check_settings(num_classes: int, learning_rate: float, seed: int, **counts: int) -> None:
    """Raises unless all of them are in range."""
    check_num_classes(num_classes)
    check_seed(seed)
    positive("learning_rate", learning_rate, "pass Adam's step size, 0.003 for example")
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(complaint(name, "be an integer of at least 1", repr(count), "raise it"))
