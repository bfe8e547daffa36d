"""Which given labels look wrong, judged by the scores of a model."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import torch
from torch import Tensor

from linearcore._arrays import CHUNK, Labels, Numbers, as_labels, check_one_per_row
from linearcore._checks import between, complaint, holds, one_of

#: Measures of suspicion that are computed from scores, with what they mean.
MEASURES: Mapping[str, str] = MappingProxyType(
    {
        "margin": "how far the best other label's score is above the given one's; below 0 the given one is preferred",
        "log_odds": "log-odds against the given label; below 0 it is likelier than all others together",
    }
)


@dataclass(frozen=True, eq=False)
class Suspects:
    """Given labels, ranked by suspicion.

    Attributes:
        suspicion: (N,) float64, the larger the more suspicious. ±inf where a score is −inf.
        order: (N,) int64, row numbers, the most suspicious first; ties in the order of the data.
        suggested: (N,) int64, the best class other than the given one, whether or not the model prefers it; the given one
            where all other classes are masked out.
        margin: (N,) float64, max_{v≠y} s_v − s_y: positive where the model prefers another label to the given one.
    """

    suspicion: Tensor
    suggested: Tensor
    margin: Tensor
    order: Tensor = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", self.suspicion.sort(descending=True, stable=True).indices)

    def __len__(self) -> int:
        return len(self.suspicion)

    def flag(self, *, share: float | None = None, count: int | None = None) -> Tensor:
        """Marks the most suspicious rows.

        Args:
            share: mark this share of the rows, rounded to whole rows.
            count: mark so many rows; exactly one of the two is given.

        Returns:
            (N,) bool, True where a label should be looked at. The marks of a smaller number are among those of a larger one.

        Raises:
            ValueError: if both or none are given, or there are not so many rows.
        """
        if (share is None) == (count is None):
            got = "neither" if share is None else "both"
            must = "be given, or else `count`, and not both"
            raise ValueError(complaint("share", must, got, "pass share=0.1 or count=50 for example"))
        rows = len(self)
        if share is not None:
            count = int(between("share", share, 0, 1, "pass 0.1 for a tenth of the rows") * rows + 0.5)
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= rows:
            raise ValueError(complaint("count", f"be an integer in 0..{rows}", repr(count), "there are no more rows"))
        marks = torch.zeros(rows, dtype=torch.bool, device=self.order.device)
        marks[self.order[:count]] = True
        return marks


def suspects(scores: Numbers, labels: Labels, *, by: str | Numbers = "margin") -> Suspects:
    """Ranks given labels by how strongly a model's scores disagree with them.

    A model agrees with the labels that it has memorised. So take scores from a model that was not trained on the row
    (`out_of_fold_scores`), or from one that was stopped early or trained with a robust loss. For scores s and
    given label y, by measure:

        margin     max_{v≠y} s_v − s_y             how far the best other class is ahead
        log_odds   logsumexp_{v≠y} s_v − s_y       the same for all others together: log((1 − p_y)/p_y), p the softmax

    `margin` keeps its order when all scores are multiplied by a constant, and so suits losses whose scores are no
    log-probabilities. `log_odds` has the order of 1 − p_y ("self-confidence"), and that of the cross-entropy −log p_y, but
    tells rows apart for which these round to 0 or 1. With two classes both measures are the same.

    Args:
        scores: (N, C), C ≥ 2, any real dtype: logits or log-probabilities. Classes with score −inf are masked out.
        labels: (N,) given labels in 0..C−1.
        by: "margin", "log_odds", or numbers (N,) of your own, larger is more suspicious: losses, or their mean over epochs.

    Returns:
        Suspicion, order, suggested labels and margins, on the device of `scores`; on the CPU for arrays.

    Raises:
        TypeError: if `scores` are no real numbers or `labels` no integers.
        ValueError: if shapes do not fit, labels are out of range, a score is NaN or +inf, or a row has no class at all.

    Example:
        >>> scores = torch.tensor([[4.0, 1.0, 0.0], [0.0, 3.0, 0.5], [1.0, 0.5, 1.5]])
        >>> found = suspects(scores, [0, 2, 0])
        >>> found.order, found.suggested, found.margin
        (tensor([1, 2, 0]), tensor([1, 1, 2]), tensor([-3.0000,  2.5000,  0.5000], dtype=torch.float64))
        >>> found.flag(count=1)
        tensor([False,  True, False])

    Cost: O(N·C) time; some rows at a time are in memory as float64.
    """
    table = _checked_scores(scores)
    given = as_labels(labels, table.shape[1])
    check_one_per_row(given, len(table), "scores")
    given = given.to(table.device)
    if isinstance(by, str):
        one_of("by", by, MEASURES, "or pass one number for every row")
    rows = [_judged(part, own) for part, own in _chunks(table, given)]
    margin, log_odds, suggested = (torch.cat(parts) for parts in zip(*rows, strict=True))
    if isinstance(by, str):
        return Suspects(margin if by == "margin" else log_odds, suggested, margin)
    return Suspects(one_number_a_row("by", by, len(table)).to(table.device), suggested, margin)


def one_number_a_row(name: str, numbers: Numbers, rows: int | None = None) -> Tensor:
    """Returns `numbers` as a float64 vector, or raises unless they are real, none of them NaN, and as many as `rows`."""
    tensor = _real(name, numbers).detach().double()
    if tensor.ndim != 1 or rows not in (None, len(tensor)):
        must = f"have shape ({'N' if rows is None else rows},)"
        raise ValueError(complaint(name, must, tuple(tensor.shape), "pass one number for every row"))
    holds(name, ~tensor.isnan(), "be numbers", "find out where NaN comes from")
    return tensor


def _checked_scores(scores: Numbers) -> Tensor:
    """`scores` as a tensor with a row for every label and at least two columns."""
    table = _real("scores", scores).detach()
    if table.ndim != 2 or table.shape[1] < 2:
        advice = "pass one row for every label and one column for every class"
        raise ValueError(complaint("scores", "have shape (N, C) with C ≥ 2", tuple(table.shape), advice))
    return table


def _real(name: str, numbers: Numbers) -> Tensor:
    """A tensor of real numbers."""
    try:
        tensor = torch.as_tensor(numbers)
    except (TypeError, ValueError, RuntimeError):
        got = type(numbers).__name__
        raise TypeError(complaint(name, "be real numbers", got, "pass a tensor or an array of floats")) from None
    if tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(complaint(name, "be real numbers", tensor.dtype, "pass a tensor or an array of floats"))
    return tensor


def _chunks(table: Tensor, given: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Some rows at a time; one empty part where there are none."""
    step = max(1, CHUNK // table.shape[1])
    for start in range(0, max(1, len(table)), step):
        yield table[start : start + step].double(), given[start : start + step]


def _judged(scores: Tensor, given: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Margin, log-odds and best other class of some rows, in float64."""
    holds("scores", ~scores.isnan() & (scores < torch.inf), "be numbers below +inf", "find out where NaN or inf comes from")
    is_empty = (scores == -torch.inf).all(1)
    holds("scores", ~is_empty, "have a finite entry in every row", "take out rows of −inf alone")
    own = given.unsqueeze(1)
    score = scores.gather(1, own).squeeze(1)
    others = scores.scatter(1, own, -torch.inf)
    best, suggested = others.max(1)
    # Where the given class is the only one, `max` names whichever comes first.
    suggested = torch.where(best == -torch.inf, given, suggested)
    return best - score, others.logsumexp(1) - score, suggested
