"""Cross-validated scores of small networks."""

import io
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from linearcore._arrays import Features, Numbers, check_num_classes, check_one_per_row
from linearcore._checks import complaint, holds, positive
from linearcore._streams import check_seed, stream_for
from linearcore.cleaning._inputs import as_dense, as_tensor, given_labels, shared_index
from linearcore.cleaning._losses import RowLoss, named_loss
from linearcore.cleaning._networks import FoldNetworks, train_epochs
from linearcore.runtime import Progress, one_thread


@dataclass(frozen=True, eq=False)
class OutOfFoldScores:
    """Scores of each row by a network that was not trained on it.

    Attributes:
        scores: (N, C) float32, at the best epoch.
        fold: (N,) int64, the fold of each row.
        agreement: accuracy against the given labels, for every epoch.
        epoch: the best epoch, from 1: the earliest with the highest agreement.
    """

    scores: Tensor
    fold: Tensor
    agreement: tuple[float, ...]
    epoch: int


def out_of_fold_scores(
    features: Any,
    labels: Any,
    *,
    num_classes: int,
    loss: str | RowLoss = "gce",
    folds: int = 5,
    epochs: int = 30,
    learning_rate: float = 0.003,
    hidden: int = 128,
    batch_size: int = 64,
    seed: int = 0,
    groups: Any = None,
    progress: Progress | None = None,
) -> OutOfFoldScores:
    """Scores each fold of the data by a small network that was trained on the other folds.

    Features are normalised. A network has one hidden layer of ReLU units and is trained with Adam. All rows are scored after
    every epoch, and the scores of the epoch with the highest accuracy against the given labels are returned, because later
    epochs memorise wrong labels. No clean labels are needed. Folds are stratified by class. If a class has a single row, the
    network that scores the row has never seen the class.

    Use it for tables, and `model_scores` for text. For images, cross-validate your own model and pass its scores to
    `suspects`.

    Args:
        features: (N, D) finite numbers: a DataFrame, array, tensor, or sparse matrix, which is made dense.
        labels: (N,) given labels in 0..C−1.
        num_classes: C ≥ 2.
        loss: a key of `LOSSES` ("robust" needs C ≥ 3), a `Baseline`, or a function of scores (B, C) and labels
            (B,) that returns losses (B,). Baselines without a minimum use batch-normalised scores.
        folds: number of folds, from 2 to N.
        epochs: number of training epochs.
        learning_rate: learning rate of Adam.
        hidden: number of hidden units.
        batch_size: rows per step and network.
        seed: random seed of the folds, initial weights and batches.
        groups: (N,) integers; rows of a group are in the same fold. `repeats(features).group` keeps equal rows together.
        progress: progress display.

    Raises:
        TypeError: if `labels` are not integers or `features` not numbers.
        ValueError: if an argument is out of range, or scores are not finite because the learning rate is too large.

    Example:
        >>> from linearcore.cleaning import flagging_auc, suspects
        >>> from linearcore.noise import symmetric
        >>> clean = torch.arange(200) % 2
        >>> points = 6 * clean.unsqueeze(1) + torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
        >>> noisy = symmetric(clean, 0.1, num_classes=2, seed=0)
        >>> result = out_of_fold_scores(points, noisy.labels, num_classes=2)
        >>> flagging_auc(suspects(result.scores, noisy.labels).suspicion, noisy.labels != clean) > 0.98
        True

    Cost: `epochs` passes over folds − 1 times the data, on one CPU core: about 1 s for 2,000 rows and 10 s for 20,000 rows
    with the default settings. Runs on the same machine give identical results.
    """
    _check_settings(num_classes, learning_rate, seed, epochs=epochs, hidden=hidden, batch_size=batch_size)
    criterion = named_loss(loss, num_classes)
    shared_index(features, labels, "features", "labels")
    inputs = normalised(as_dense("features", features, seed))
    targets = given_labels(labels, num_classes, None).cpu()
    check_one_per_row(targets, len(inputs), "features")
    generator = stream_for("folds", seed)
    fold = stratified_folds(targets, folds, generator, groups)
    networks = FoldNetworks(folds, (inputs.shape[1], hidden, num_classes), generator, criterion.is_normed)
    training_rows = [(fold != index).nonzero().squeeze(1) for index in range(folds)]
    best_scores, agreement = torch.empty(0), []
    display = Progress(io.StringIO()) if progress is None else progress
    with one_thread(), display.part(f"{folds} networks", epochs, "epochs") as part:
        for _ in train_epochs(
            networks,
            inputs,
            targets,
            training_rows,
            criterion,
            learning_rate=learning_rate,
            epochs=epochs,
            batch_size=batch_size,
            generator=generator,
        ):
            scores = _held_out(networks, inputs, fold)
            agreement.append(float((scores.argmax(1) == targets).double().mean()))
            # Ties go to the earliest epoch, which has memorised the fewest wrong labels.
            if agreement[-1] > max(agreement[:-1], default=-1.0):
                best_scores = scores
            part.advance()
    return OutOfFoldScores(best_scores, fold, tuple(agreement), 1 + agreement.index(max(agreement)))


def stratified_folds(targets: Tensor, folds: int, generator: torch.Generator, groups: Any = None) -> Tensor:
    """Returns the fold (N,) of every row, with the rows of a group in the same fold.

    Without groups, sizes of folds, in total and per class, differ by at most one. A group counts as its first row.

    Raises:
        ValueError: if `folds` is not an integer from 2 to the number of groups.
    """
    first, group = torch.arange(len(targets)), torch.arange(len(targets))
    if groups is not None:
        names = as_tensor("groups", groups)
        check_one_per_row(names, len(targets), "features")
        kinds, group = names.unique(return_inverse=True)
        first = torch.full((len(kinds),), len(targets)).scatter_reduce(0, group, torch.arange(len(targets)), "amin")
    if isinstance(folds, bool) or not isinstance(folds, int) or not 2 <= folds <= len(first):
        rows = "rows" if len(first) == len(targets) else "different rows"
        raise ValueError(
            complaint(
                "folds", f"be an integer from 2 to the number of {rows}, {len(first)}", repr(folds), "5 or 10 are usual"
            )
        )
    return _split(targets[first], folds, generator)[group]


def _split(targets: Tensor, folds: int, generator: torch.Generator) -> Tensor:
    """Returns the stratified fold (N,) of every row; sizes of folds, in total and per class, differ by at most one."""
    shuffled = torch.randperm(len(targets), generator=generator)
    sorted_by_class = shuffled[targets[shuffled].sort(stable=True).indices]
    fold = torch.empty_like(targets)
    fold[sorted_by_class] = torch.arange(len(targets)) % folds
    return fold


@torch.no_grad()
def _held_out(networks: FoldNetworks, inputs: Tensor, fold: Tensor) -> Tensor:
    """Returns the scores (N, C) of every row by the network that was not trained on its fold."""
    scores = torch.empty(len(inputs), networks.parameters[-1].shape[-1])
    for index in range(len(networks.parameters[0])):
        rows = (fold == index).nonzero().squeeze(1)
        scores[rows] = networks.scores_of(index, inputs[rows])
    holds("scores", scores.isfinite(), "stay finite during training", "lower the learning rate")
    return scores


def normalised(features: Numbers) -> Tensor:
    """Returns the features (N, D) in float32, with mean 0 and standard deviation 1 in every column."""
    rows = Features.prepare(features, "normalised")
    return torch.cat([part.float() for part in rows.chunks()]) if len(features) else torch.empty(0, rows.width)


def _check_settings(num_classes: int, learning_rate: float, seed: int, **counts: int) -> None:
    """Raises unless all arguments are in range."""
    check_num_classes(num_classes)
    check_seed(seed)
    positive("learning_rate", learning_rate, "0.003 is the default")
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(complaint(name, "be an integer of at least 1", repr(count), "raise it"))
