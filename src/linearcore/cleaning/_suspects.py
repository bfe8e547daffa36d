"""Ranks given labels by suspicion, from the scores of a model."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import torch
from torch import Tensor

from linearcore._arrays import CHUNK, Labels, Numbers, as_labels, check_one_per_row
from linearcore._checks import between, complaint, holds, one_of

#: Measures of suspicion and their meaning.
MEASURES: Mapping[str, str] = MappingProxyType(
    {
        "margin": "score of the best other label minus score of the given label; negative if the given label is preferred",
        "log_odds": "log-odds against the given label; negative if it is more likely than all other labels together",
    }
)


@dataclass(frozen=True, eq=False)
class Suspects:
    """A ranking of the given labels by suspicion.

    Attributes:
        suspicion: (N,) float64, larger is more suspicious; may be ±inf if a score is −inf.
        order: (N,) int64, row indices, the most suspicious first; ties keep the order of the data.
        suggested: (N,) int64, the best class other than the given one, even if the model prefers the given one; the given
            class if all other classes are masked out.
        margin: (N,) float64, max_{v≠y} s_v − s_y: positive if the model prefers another label.
    """

    suspicion: Tensor
    suggested: Tensor
    margin: Tensor
    order: Tensor = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", self.suspicion.sort(descending=True, stable=True).indices)

    def __len__(self) -> int:
        return len(self.suspicion)

    def flag(self, *, fraction: float | None = None, count: int | None = None) -> Tensor:
        """Returns a mask of the most suspicious rows.

        Args:
            fraction: fraction of the rows to flag, rounded to whole rows.
            count: number of rows to flag; pass exactly one of the two.

        Returns:
            (N,) bool, True for flagged rows. A larger number flags the same rows and more.

        Raises:
            ValueError: if both or neither are given, or there are fewer rows than `count`.
        """
        if (fraction is None) == (count is None):
            got = "neither" if fraction is None else "both"
            must = "be given, or else `count`, and not both"
            raise ValueError(complaint("fraction", must, got, "pass fraction=0.1 or count=50 for example"))
        rows = len(self)
        if fraction is not None:
            count = int(between("fraction", fraction, 0, 1, "pass 0.1 for a tenth of the rows") * rows + 0.5)
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= rows:
            raise ValueError(complaint("count", f"be an integer in 0..{rows}", repr(count), "there are no more rows"))
        is_flagged = torch.zeros(rows, dtype=torch.bool, device=self.order.device)
        is_flagged[self.order[:count]] = True
        return is_flagged


def suspects(scores: Numbers, labels: Labels, *, measure: str | Numbers = "margin") -> Suspects:
    """Ranks given labels by how strongly a model's scores disagree with them.

    A model agrees with labels that it has memorised. So use scores of a model that was not trained on the row
    (`out_of_fold_scores`), that was stopped early, or that was trained with a robust loss. With scores s, given label y and
    p = softmax(s), the measures are

        margin     max_{v≠y} s_v − s_y
        log_odds   logsumexp_{v≠y} s_v − s_y = log((1 − p_y)/p_y)

    The ranking by `margin` does not change if all scores are multiplied by a constant, so it suits losses whose scores are
    not log-probabilities. `log_odds` gives the same ranking as 1 − p_y ("self-confidence") and as the cross-entropy −log
    p_y, but also ranks rows where p_y rounds to 0 or 1. For two classes both measures are equal.

    Args:
        scores: (N, C), C ≥ 2, any real dtype: logits or log-probabilities. Classes with score −inf are masked out.
        labels: (N,) given labels in 0..C−1.
        measure: "margin", "log_odds", or your own numbers (N,), larger is more suspicious, such as losses or mean losses.

    Returns:
        A `Suspects` with suspicion, order, suggested labels and margins, on the device of `scores`; on the CPU for arrays.

    Raises:
        TypeError: if `scores` are not real numbers or `labels` not integers.
        ValueError: if shapes do not match, labels are out of range, a score is NaN or +inf, or a row is fully masked out.

    Example:
        >>> scores = torch.tensor([[4.0, 1.0, 0.0], [0.0, 3.0, 0.5], [1.0, 0.5, 1.5]])
        >>> ranking = suspects(scores, [0, 2, 0])
        >>> ranking.order, ranking.suggested, ranking.margin
        (tensor([1, 2, 0]), tensor([1, 1, 2]), tensor([-3.0000,  2.5000,  0.5000], dtype=torch.float64))
        >>> ranking.flag(count=1)
        tensor([False,  True, False])

    Cost: O(N·C) time; rows are converted to float64 in chunks.
    """
    checked_scores = _checked_scores(scores)
    targets = as_labels(labels, checked_scores.shape[1])
    check_one_per_row(targets, len(checked_scores), "scores")
    targets = targets.to(checked_scores.device)
    if isinstance(measure, str):
        one_of("measure", measure, MEASURES, "or pass one number for every row")
    rows = [_measure(chunk, chunk_targets) for chunk, chunk_targets in _chunks(checked_scores, targets)]
    margin, log_odds, suggested = (torch.cat(parts) for parts in zip(*rows, strict=True))
    if isinstance(measure, str):
        return Suspects(margin if measure == "margin" else log_odds, suggested, margin)
    suspicion = one_number_per_row("measure", measure, len(checked_scores))
    return Suspects(suspicion.to(checked_scores.device), suggested, margin)


def one_number_per_row(name: str, numbers: Numbers, rows: int | None = None) -> Tensor:
    """Returns `numbers` as a float64 vector; raises unless they are real, not NaN, and one for each of the `rows`."""
    tensor = _real(name, numbers).detach().double()
    if tensor.ndim != 1 or rows not in (None, len(tensor)):
        must = f"have shape ({'N' if rows is None else rows},)"
        raise ValueError(complaint(name, must, tuple(tensor.shape), "pass one number for every row"))
    holds(name, ~tensor.isnan(), "be numbers", "find out where NaN comes from")
    return tensor


def _checked_scores(scores: Numbers) -> Tensor:
    """Returns `scores` as a tensor; raises unless it has two dimensions and at least two columns."""
    tensor = _real("scores", scores).detach()
    if tensor.ndim != 2 or tensor.shape[1] < 2:
        advice = "pass one row for every label and one column for every class"
        raise ValueError(complaint("scores", "have shape (N, C) with C ≥ 2", tuple(tensor.shape), advice))
    return tensor


def _real(name: str, numbers: Numbers) -> Tensor:
    """Returns `numbers` as a tensor; raises unless they are real."""
    try:
        tensor = torch.as_tensor(numbers)
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


def _measure(scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns margin, log-odds and best other class of each row, in float64."""
    holds("scores", ~scores.isnan() & (scores < torch.inf), "be numbers below +inf", "find out where NaN or inf comes from")
    is_fully_masked = (scores == -torch.inf).all(1)
    holds("scores", ~is_fully_masked, "have a finite entry in every row", "remove rows that are −inf only")
    index = targets.unsqueeze(1)
    target_score = scores.gather(1, index).squeeze(1)
    other_scores = scores.scatter(1, index, -torch.inf)
    best_other, suggested = other_scores.max(1)
    # If all other classes are masked out, the index of the maximum is arbitrary.
    suggested = torch.where(best_other == -torch.inf, targets, suggested)
    return best_other - target_score, other_scores.logsumexp(1) - target_score, suggested
