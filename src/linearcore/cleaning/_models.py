"""The models of `model_scores`: each is trained once per fold, on the other folds, and scores the rows of that fold."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._extras import require
from linearcore.cleaning._folds import OutOfFoldScores, out_of_fold_scores
from linearcore.cleaning._inputs import as_dense
from linearcore.cleaning._losses import RowLoss
from linearcore.runtime import Progress
from linearcore.tables import Matrix, is_sparse

#: Largest N · C for which "auto" includes boosting, whose time grows with both.
MAX_BOOSTED = 1_500_000
#: Networks use the larger batch size from this number of rows. `calibrated` uses every k-th row, so that fewer than twice
#: this number remain.
_MANY_ROWS = 20_000
_SMALL_BATCH, _LARGE_BATCH = 64, 256
_MIN_PROBABILITY = 1e-12


@dataclass(frozen=True)
class NetworkSettings:
    """Options of the network; see `out_of_fold_scores`."""

    loss: str | RowLoss = "gce"
    epochs: int = 30
    learning_rate: float = 0.003


@dataclass(frozen=True, eq=False)
class Task:
    """Features, labels and folds, all checked, with the settings that a model may use.

    Attributes:
        features: (N, D), an array or a CSR array.
        targets: (N,) int64.
        fold: (N,) int64, the fold of each row.
        num_classes: C.
        network: options of the network.
        folds: number of folds.
        groups, seed: as in `model_scores`; `fold` was drawn with them.
        progress: progress display.
    """

    features: Matrix
    targets: Tensor
    fold: Tensor
    num_classes: int
    network: NetworkSettings
    folds: int
    groups: Any
    seed: int
    progress: Progress

    @cached_property
    def dense(self) -> Matrix:
        """The features as an array."""
        return as_dense("features", self.features, self.seed)


#: Scores (N, C), and the network's own result if there is one.
Scored = tuple[Tensor, OutOfFoldScores | None]


@dataclass(frozen=True)
class Model:
    """A model of `model_scores`.

    Attributes:
        description: what it is, in a few words.
        scores: function from a task to the out-of-fold scores.
        has_network: whether it uses the options of the network.
    """

    description: str
    scores: Callable[[Task], Scored]
    has_network: bool = False


def calibrated(scores: Tensor, targets: Tensor) -> Tensor:
    """Temperature scaling: log_softmax(factor · scores) with the factor that maximises the likelihood of the labels."""
    sample = torch.arange(len(scores))[:: max(1, len(scores) // _MANY_ROWS)]
    chosen, index = scores[sample], targets[sample].unsqueeze(1)
    # A class that is absent from the training folds has a very low score. The clamp keeps one row with such a label from
    # determining the factor.
    factors = torch.logspace(-2, 2, 81, dtype=torch.float64)
    loss = torch.stack([-(chosen * factor).log_softmax(1).gather(1, index).clamp(min=-20).mean() for factor in factors])
    best: Tensor = (scores * factors[loss.argmin()]).log_softmax(1)
    return best


def _linear(task: Task) -> Scored:
    require("sklearn", extra="cleaning")
    from sklearn.linear_model import RidgeClassifier
    from sklearn.naive_bayes import ComplementNB

    solver = "sparse_cg" if is_sparse(task.features) else "auto"
    ridge = _by_folds(task, task.features, lambda: RidgeClassifier(3.0, solver=solver), "ridge regression")
    if not is_sparse(task.features) or (task.features.data < 0).any():
        return ridge, None
    bayes = _by_folds(task, task.features, ComplementNB, "naive Bayes")
    return _mean(task, ridge, bayes), None


def _boosting(task: Task) -> Scored:
    require("sklearn", extra="cleaning")
    from sklearn.ensemble import HistGradientBoostingClassifier

    def make() -> Any:
        return HistGradientBoostingClassifier(
            max_iter=60, max_leaf_nodes=15, l2_regularization=1.0, early_stopping=False, random_state=task.seed
        )

    return _by_folds(task, task.dense, make, "boosting"), None


def _network(task: Task) -> Scored:
    result = out_of_fold_scores(
        task.dense,
        task.targets,
        num_classes=task.num_classes,
        loss=task.network.loss,
        epochs=task.network.epochs,
        learning_rate=task.network.learning_rate,
        batch_size=_SMALL_BATCH if len(task.targets) < _MANY_ROWS else _LARGE_BATCH,
        folds=task.folds,
        groups=task.groups,
        seed=task.seed,
        progress=task.progress,
    )
    return result.scores.double(), result


def _ensemble(task: Task) -> Scored:
    scores, network = _network(task)
    return _mean(task, scores, _boosting(task)[0]), network


#: Models by name; "auto" chooses among them.
MODELS: Mapping[str, Model] = MappingProxyType(
    {
        "linear": Model(
            "ridge regression; if features are sparse and nonnegative, averaged with complement naive Bayes", _linear
        ),
        "boosting": Model("histogram gradient boosting of trees", _boosting),
        "network": Model("one hidden layer", _network, has_network=True),
        "ensemble": Model("mean of the calibrated log-probabilities of network and boosting", _ensemble, has_network=True),
    }
)


def choose_model(features: Matrix, num_classes: int) -> str:
    """Returns the model that "auto" stands for."""
    if is_sparse(features):
        return "linear"
    return "ensemble" if len(features) * num_classes <= MAX_BOOSTED else "network"


def _mean(task: Task, *parts: Tensor) -> Tensor:
    return torch.stack([calibrated(part, task.targets) for part in parts]).mean(0)


def _by_folds(task: Task, features: Matrix, make: Callable[[], Any], name: str) -> Tensor:
    """Returns the scores of every row by a model that was trained on the other folds.

    A class that is absent from these folds gets the smallest of all scores minus 1.
    """
    folds, labels = task.fold.numpy(), task.targets.numpy()
    scores = np.full((len(labels), task.num_classes), np.nan)
    with task.progress.part(name, int(folds.max()) + 1, "folds") as part:
        for number in range(int(folds.max()) + 1):
            held = np.flatnonzero(folds == number)
            rest = np.flatnonzero(folds != number)
            present = np.unique(labels[rest])
            if len(present) > 1:
                scores[np.ix_(held, present)] = _scores_of(make().fit(features[rest], labels[rest]), features[held])
            else:
                scores[np.ix_(held, present)] = 0.0
            part.advance()
    return torch.from_numpy(np.where(np.isnan(scores), np.nanmin(scores) - 1.0, scores))


def _scores_of(model: Any, features: Matrix) -> npt.NDArray[np.float64]:
    if hasattr(model, "predict_proba"):
        probabilities: npt.NDArray[np.float64] = model.predict_proba(features)
        return np.log(np.maximum(probabilities, _MIN_PROBABILITY))
    scores: npt.NDArray[np.float64] = model.decision_function(features)
    return np.stack([-scores, scores], 1) / 2 if scores.ndim == 1 else scores
