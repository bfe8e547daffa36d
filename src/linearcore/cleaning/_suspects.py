"""Ranks given labels by suspicion, from the scores of a model."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from linearcore._arrays import CHUNK, check_one_per_row
from linearcore._checks import between, complaint, holds, one_of
from linearcore._extras import require
from linearcore.cleaning._estimate import WrongLabels, estimate_wrong
from linearcore.cleaning._inputs import as_tensor, given_labels, log_probabilities, shared_index
from linearcore.tables import as_values, is_frame

if TYPE_CHECKING:
    import pandas as pd

#: Real numbers: a tensor, an array, a list, a sparse matrix, a Series or a DataFrame.
Scores = Any

#: Measures of suspicion and their meaning.
MEASURES: Mapping[str, str] = MappingProxyType(
    {
        "margin": "score of the best other label minus score of the given label; negative if the given label is preferred",
        "log_odds": "log-odds against the given label; negative if it is more likely than all other labels together",
    }
)


@dataclass(frozen=True, eq=False, repr=False)
class Suspects:
    """A ranking of the given labels by suspicion.

    Attributes:
        suspicion: (N,) float64, larger is more suspicious; may be ±inf if a score is −inf.
        given: (N,) int64, the given classes.
        best_other: (N,) int64, the best class other than the given one; the given class if all others are masked out.
        margin: (N,) float64, max_{v≠y} s_v − s_y: positive if the model prefers another label. It has the opposite sign to
            the margin of the losses.
        gap: (N,) float64, best minus second-best score: how sure the model is.
        classes: names of the classes; None if they are numbers 0..C−1.
        index: index of the pandas object that was passed; None for arrays and tensors.
        suggested: (N,) int64, the class that the model prefers: the given one unless `margin` is positive.
        order: (N,) int64, row positions, the most suspicious first; ties keep the order of the data.
    """

    suspicion: Tensor
    given: Tensor
    best_other: Tensor
    margin: Tensor
    gap: Tensor
    classes: tuple[Any, ...] | None = None
    index: Any = None
    suggested: Tensor = field(init=False)
    order: Tensor = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", self.suspicion.sort(descending=True, stable=True).indices)
        object.__setattr__(self, "suggested", torch.where(self.margin > 0, self.best_other, self.given))

    def __len__(self) -> int:
        return len(self.suspicion)

    @cached_property
    def estimate(self) -> WrongLabels:
        """The estimated number of wrong labels, with an interval; see `WrongLabels`."""
        return estimate_wrong(self.margin, self.gap)

    def __repr__(self) -> str:
        return f"<Suspects of {len(self.given):,} rows, about {self.estimate.count:,} of them with a wrong label>"

    @property
    def threshold(self) -> float:
        """Suspicion of the row with rank `estimate.count`; inf if the estimate is 0."""
        count = self.estimate.count
        return float(self.suspicion[self.order[count - 1]]) if count else math.inf

    def flag(self, *, fraction: float | None = None, count: int | None = None) -> Tensor:
        """Returns a mask of the most suspicious rows: by default as many as there are wrong labels by the estimate.

        Args:
            fraction: fraction of the rows to flag, rounded to whole rows.
            count: number of rows to flag; pass at most one of the two.

        Returns:
            (N,) bool, True for flagged rows. A larger number flags the same rows and more.

        Raises:
            ValueError: if both are given, or there are fewer rows than `count`.
        """
        if fraction is not None and count is not None:
            advice = "pass fraction=0.1 or count=50 for example"
            raise ValueError(complaint("fraction", "not be given together with `count`", "both", advice))
        rows = len(self)
        if fraction is not None:
            count = int(between("fraction", fraction, 0, 1, "pass 0.1 for a tenth of the rows") * rows + 0.5)
        elif count is None:
            count = self.estimate.count
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= rows:
            raise ValueError(complaint("count", f"be an integer in 0..{rows}", repr(count), "there are no more rows"))
        is_flagged = torch.zeros(rows, dtype=torch.bool, device=self.order.device)
        is_flagged[self.order[:count]] = True
        return is_flagged

    def names(self, labels: Tensor) -> list[Any]:
        """Returns the names of class indices."""
        return [label if self.classes is None else self.classes[label] for label in labels.tolist()]

    def to_frame(self) -> "pd.DataFrame":
        """Returns a DataFrame with the index that was passed, the most suspicious row first.

        `Findings.to_frame` keeps the order of the data instead. Columns: given_label, suggested_label, suspicion,
        is_suspicious (among the estimated number of wrong labels).

        Raises:
            MissingExtraError: if pandas is not installed.
        """
        require("pandas", extra="tables")
        import pandas as pd

        columns = {
            "given_label": self.names(self.given),
            "suggested_label": self.names(self.suggested),
            "suspicion": self.suspicion.cpu().numpy(),
            "is_suspicious": self.flag().cpu().numpy(),
        }
        return pd.DataFrame(columns, index=self.index).iloc[self.order.cpu().numpy()]


def suspects(
    scores: Scores,
    labels: object,
    *,
    measure: str | Scores = "margin",
    classes: Sequence[Any] | None = None,
    probabilities: bool | None = None,
) -> Suspects:
    """Ranks given labels by how strongly a model's scores disagree with them.

    A model agrees with labels that it has memorised. So use scores of a model that was not trained on the row
    (`out_of_fold_scores`, or scikit-learn's `cross_val_predict`). With scores s, given label y and p = softmax(s):

        margin     max_{v≠y} s_v − s_y
        log_odds   logsumexp_{v≠y} s_v − s_y = log((1 − p_y)/p_y)

    The ranking by `margin` does not change if all scores are multiplied by a constant, so it suits losses whose scores are
    not log-probabilities. `log_odds` gives the same ranking as 1 − p_y ("self-confidence") and as the cross-entropy. For
    two classes both measures are equal. Probabilities are replaced by their logarithms.

    Args:
        scores: (N, C), C ≥ 2: logits, log-probabilities or probabilities, as an array, tensor, sparse matrix or DataFrame.
            Classes with score −inf are masked out.
        labels: (N,) given labels: names among `classes`, otherwise class indices in 0..C−1. A Series must have the index of
            a DataFrame.
        measure: "margin", "log_odds", or your own numbers (N,), larger is more suspicious, such as mean losses.
        classes: names of the columns of `scores`, as in `model.classes_`; by default the columns of a DataFrame.
        probabilities: True takes the logarithm of `scores`, False does not. None: rows that are nonnegative and sum to 1 are
            treated as probabilities.

    Returns:
        A `Suspects`. Its tensors are on the device of `scores`, or on the CPU if `scores` is not a tensor.

    Raises:
        TypeError: if `scores` are not real numbers or `labels` neither integers nor names among `classes`.
        ValueError: if shapes or indices do not match, a label is not among the classes, a score is NaN or +inf, or a row is
            fully masked out.

    Example:
        >>> scores = torch.tensor([[4.0, 1.0, 0.0], [0.0, 3.0, 0.5], [1.0, 0.5, 1.5]])
        >>> ranking = suspects(scores, [0, 2, 0])
        >>> ranking.order, ranking.suggested, ranking.margin
        (tensor([1, 2, 0]), tensor([0, 1, 2]), tensor([-3.0000,  2.5000,  0.5000], dtype=torch.float64))
    """
    index = shared_index(scores, labels, "scores", "labels")
    if classes is None and is_frame(scores):
        classes = list(scores.columns)
    numbers = log_probabilities(_checked_scores(scores), probabilities)
    targets = given_labels(labels, numbers.shape[1], classes)
    check_one_per_row(targets, len(numbers), "scores")
    targets = targets.to(numbers.device)
    if isinstance(measure, str):
        one_of("measure", measure, MEASURES, "or pass one number for every row")
    rows = [_measure(chunk, chunk_targets) for chunk, chunk_targets in _chunks(numbers, targets)]
    margin, log_odds, best_other, gap = (torch.cat(parts) for parts in zip(*rows, strict=True))
    if isinstance(measure, str):
        suspicion = margin if measure == "margin" else log_odds
    else:
        suspicion = one_number_per_row("measure", measure, len(numbers)).to(numbers.device)
    return Suspects(suspicion, targets, best_other, margin, gap, None if classes is None else tuple(classes), index)


def one_number_per_row(name: str, numbers: Scores, rows: int | None = None) -> Tensor:
    """Returns `numbers` as a float64 vector; raises unless they are real, not NaN, and one for each of the `rows`."""
    tensor = _real(name, numbers).detach().double()
    if tensor.ndim != 1 or rows not in (None, len(tensor)):
        must = f"have shape ({'N' if rows is None else rows},)"
        raise ValueError(complaint(name, must, tuple(tensor.shape), "pass one number for every row"))
    holds(name, ~tensor.isnan(), "be numbers", "find out where NaN comes from")
    return tensor


def _checked_scores(scores: Scores) -> Tensor:
    """Returns `scores` as a tensor; raises unless it has two dimensions and at least two columns."""
    tensor = _real("scores", scores).detach()
    if tensor.ndim != 2 or tensor.shape[1] < 2:
        advice = "pass one row for every label and one column for every class"
        raise ValueError(complaint("scores", "have shape (N, C) with C ≥ 2", tuple(tensor.shape), advice))
    return tensor


def _real(name: str, numbers: Scores) -> Tensor:
    """Returns `numbers` as a tensor; raises unless they are real."""
    values = numbers if isinstance(numbers, Tensor) else as_values(name, numbers)
    try:
        tensor = as_tensor(name, values)
    except (TypeError, ValueError, RuntimeError):
        got = type(numbers).__name__
        raise TypeError(complaint(name, "be real numbers", got, "pass a tensor or an array of floats")) from None
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(complaint(name, "be real numbers", tensor.dtype, "pass a tensor or an array of floats"))
    return tensor


def _chunks(scores: Tensor, targets: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields chunks of rows in float64; one empty chunk if there are no rows."""
    step = max(1, CHUNK // scores.shape[1])
    for start in range(0, max(1, len(scores)), step):
        yield scores[start : start + step].double(), targets[start : start + step]


def _measure(scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns margin, log-odds, best other class and gap of each row, in float64."""
    holds("scores", ~scores.isnan() & (scores < torch.inf), "be numbers below +inf", "find out where NaN or inf comes from")
    is_fully_masked = (scores == -torch.inf).all(1)
    holds("scores", ~is_fully_masked, "have a finite entry in every row", "remove rows that are −inf only")
    index = targets.unsqueeze(1)
    target_score = scores.gather(1, index).squeeze(1)
    other_scores = scores.scatter(1, index, -torch.inf)
    best_score, best_other = other_scores.max(1)
    # If all other classes are masked out, the index of the maximum is arbitrary.
    best_other = torch.where(best_score == -torch.inf, targets, best_other)
    first, second = scores.topk(2, dim=1).values.unbind(1)
    return best_score - target_score, other_scores.logsumexp(1) - target_score, best_other, first - second
