"""Which method is best, and which do not differ from it significantly."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

#: Significance level of each comparison.
LEVEL = 0.05


@dataclass(frozen=True)
class Comparison:
    """The outcome at one share of wrong labels.

    Attributes:
        best: index of the method with the highest mean.
        tied: indices of the methods that do not differ significantly from it; empty with one seed, which allows no test.
    """

    best: int
    tied: tuple[int, ...]


def compare(accuracy: npt.NDArray[np.float64]) -> Comparison:
    """Compares each method with the best one by a two-sided paired t-test at the 5 % level.

    The tests are paired because, for a seed, all methods have the same split, wrong labels, initial weights and batches.
    They are not corrected for multiple comparisons, nor for the choice of the best method from the same data.

    Args:
        accuracy: (methods, seeds).

    Example:
        >>> compare(np.array([[0.90, 0.94, 0.92], [0.91, 0.93, 0.91], [0.50, 0.52, 0.51]]))
        Comparison(best=0, tied=(1,))
    """
    from scipy.stats import t

    best = int(accuracy.mean(1).argmax())
    seeds = accuracy.shape[1]
    if seeds < 2:
        return Comparison(best, ())
    lead = accuracy[best] - accuracy
    # ≤ and not <: a method that equals the best one for every seed has lead 0 and reach 0, and is tied.
    reach = float(t.ppf(1 - LEVEL / 2, seeds - 1)) * lead.std(1, ddof=1) / seeds**0.5
    tied = [index for index in range(len(accuracy)) if index != best and lead[index].mean() <= reach[index]]
    return Comparison(best, tuple(tied))
