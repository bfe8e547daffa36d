"""Cross-validated scores of models for tables and for text."""

import io
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from linearcore._arrays import check_num_classes, check_one_per_row
from linearcore._checks import complaint, one_of
from linearcore._streams import check_seed, stream_for
from linearcore.cleaning._folds import OutOfFoldScores, stratified_folds
from linearcore.cleaning._inputs import check_features, given_labels, shared_index
from linearcore.cleaning._models import MODELS, NetworkSettings, Task, choose_model
from linearcore.runtime import Progress
from linearcore.tables import as_matrix


@dataclass(frozen=True, eq=False)
class ModelScores:
    """Scores of each row by a model that was not trained on it.

    Attributes:
        model: the model, a key of `MODELS`.
        scores: (N, C) float64. For "boosting" and means of two models these are log-probabilities plus a constant for each
            row, otherwise raw scores.
        fold: (N,) int64, the fold of each row.
        agreement: accuracy against the given labels.
        network: the network's own scores, if it is the model or a part of it.
    """

    model: str
    scores: Tensor
    fold: Tensor
    agreement: float
    network: OutOfFoldScores | None = None


def model_scores(
    features: Any,
    labels: Any,
    *,
    num_classes: int,
    model: str = "auto",
    network: NetworkSettings | None = None,
    folds: int = 5,
    seed: int = 0,
    groups: Any = None,
    progress: Progress | None = None,
) -> ModelScores:
    """Scores each fold of the data by a model that was trained on the other folds.

    Args:
        features: (N, D) finite numbers: a DataFrame, array, tensor or sparse matrix. Boosting and networks project large
            sparse matrices on 128 singular vectors. "linear" takes features as they are: scale them first.
        labels: (N,) given labels in 0..C−1.
        num_classes: C ≥ 2.
        model: "auto" or a key of `MODELS`. "auto" is "linear" for sparse matrices, "network" if N · C > 1,500,000, and
            "ensemble" otherwise.
        network: options of the network.
        folds: number of folds, from 2 to N.
        seed: random seed.
        groups: (N,) integers; rows of a group are in the same fold.
        progress: progress display.

    Returns:
        `ModelScores`, with `scores` (N, C), `fold` (N,) and `agreement`, the accuracy against the given labels.

    Raises:
        MissingExtraError: if scikit-learn is not installed and the model needs it.
        ValueError: if an argument is out of range.

    Example:
        >>> import torch
        >>> labels = torch.arange(200) % 2
        >>> points = 4 * labels.unsqueeze(1) + torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
        >>> model_scores(points, labels, num_classes=2, model="linear").agreement > 0.95
        True

    Cost: with "auto", about 30 s on one CPU core for 100,000 rows, 20 columns and 5 classes.
    """
    one_of("model", model, ("auto", *MODELS))
    check_num_classes(num_classes)
    check_seed(seed)
    shared_index(features, labels, "features", "labels")
    matrix = as_matrix("features", features)
    check_features("features", matrix)
    targets = given_labels(labels, num_classes, None).cpu()
    check_one_per_row(targets, matrix.shape[0], "features")
    name = choose_model(matrix, num_classes) if model == "auto" else model
    if network is not None and not MODELS[name].has_network:
        must = "be a model with a network, because options of the network are given"
        advice = f"choose {' or '.join(key for key, item in MODELS.items() if item.has_network)}"
        raise ValueError(complaint("model", must, repr(name), advice))
    display = Progress(io.StringIO()) if progress is None else progress
    fold = stratified_folds(targets, folds, stream_for("folds", seed), groups)
    task = Task(matrix, targets, fold, num_classes, network or NetworkSettings(), folds, groups, seed, display)
    scores, own = MODELS[name].scores(task)
    return ModelScores(name, scores, fold, float((scores.argmax(1) == targets).double().mean()), own)
