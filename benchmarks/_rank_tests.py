"""Average ranks of methods over data sets, Friedman's test and Nemenyi's critical difference (Demšar, JMLR 2006)."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range


class Ranks(NamedTuple):
    """Ranks of methods, 1 for the best.

    Attributes:
        average: average rank of each method over the data sets; ties share their ranks.
        p_value: Friedman's test of equal ranks, by the χ² approximation; None below three methods or two data sets.
        critical_difference: two methods whose average ranks differ by less are not significantly different (Nemenyi, 5 %).
    """

    average: list[float]
    p_value: float | None
    critical_difference: float


def rank_methods(scores: Sequence[Sequence[float]]) -> Ranks:
    """Ranks the methods on each data set and tests the average ranks.

    Args:
        scores: one row for each data set, with the score of each method; higher is better.
    """
    table = np.asarray(scores, dtype=float)
    sets, methods = table.shape
    average = rankdata(-table, axis=1).mean(0).tolist()
    can_test = sets > 1 and methods > 2 and bool((table != table[:, :1]).any())
    p_value = float(friedmanchisquare(*table.T).pvalue) if can_test else None
    return Ranks(average, p_value, critical_difference(methods, sets))


def critical_difference(methods: int, sets: int, level: float = 0.05) -> float:
    """Returns Nemenyi's critical difference q √(k (k + 1) / 6N) of average ranks."""
    q = float(studentized_range.ppf(1 - level, methods, np.inf)) / math.sqrt(2)
    return q * math.sqrt(methods * (methods + 1) / (6 * sets))
