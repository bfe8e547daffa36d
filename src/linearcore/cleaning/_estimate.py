"""Estimates how many labels are wrong."""

import math
from dataclasses import dataclass

from torch import Tensor

#: Share of the rows, those about which the model is surest, in which wrong labels are counted.
SURE_SHARE = 0.3
#: Standard deviation of log(estimate/truth) beyond the sampling error. Chosen on development data, like `SURE_SHARE`.
MODEL_ERROR = 0.15
_Z = 1.96


@dataclass(frozen=True)
class WrongLabels:
    """An estimate of the number of wrong labels.

    Attributes:
        count: the estimate, at most `disagreements`. The first `count` rows of the ranking are those to look at.
        low: lower end of a 95 % interval.
        high: upper end of the interval.
        disagreements: number of rows for which the model prefers another label. It includes the model's own errors.
        rows: number of all rows.
    """

    count: int
    low: int
    high: int
    disagreements: int
    rows: int


def estimate_wrong(margin: Tensor, gap: Tensor) -> WrongLabels:
    """Estimates the number of wrong labels from out-of-fold scores.

    Where the model is sure it rarely errs, so a given label that differs is wrong. The estimate is the frequency r of such
    labels among the 30 % of the rows with the largest gap between the best and the second-best score, times the number of
    rows. It assumes that labels of easy rows are wrong as often as those of difficult rows; if annotators err on difficult
    rows only, it is too low. The interval combines Wilson's interval for r with a relative error of 15 % of the model.

    Args:
        margin: (N,), positive if the model prefers another label.
        gap: (N,), best minus second-best score.
    """
    rows, disagrees = len(margin), margin > 0
    disagreements = int(disagrees.sum())
    if not rows:
        return WrongLabels(0, 0, 0, 0, 0)
    kth = gap.sort(descending=True).values[math.ceil(SURE_SHARE * rows) - 1]
    is_sure = gap >= kth
    sure = int(is_sure.sum())
    rate = int((disagrees & is_sure).sum()) / sure
    centre, half = _wilson(rate, sure)
    low = rate - math.hypot(rate - max(0.0, centre - half), rate * (1 - math.exp(-_Z * MODEL_ERROR)))
    high = rate + math.hypot(centre + half - rate, rate * (math.exp(_Z * MODEL_ERROR) - 1))
    count, least, most = (min(rows, max(0, round(rows * value))) for value in (rate, low, high))
    return WrongLabels(min(count, disagreements), least, most, disagreements, rows)


def _wilson(rate: float, rows: int) -> tuple[float, float]:
    """Returns centre and half-width of Wilson's 95 % interval."""
    shrink = 1 + _Z**2 / rows
    centre = (rate + _Z**2 / (2 * rows)) / shrink
    half = _Z * math.sqrt(rate * (1 - rate) / rows + _Z**2 / (4 * rows**2)) / shrink
    return centre, half
