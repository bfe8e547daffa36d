"""Who is best, and who cannot be told apart from the best."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

#: The chance of calling two equal methods different, for each comparison by itself.
LEVEL = 0.05


@dataclass(frozen=True)
class Comparison:
    """The outcome at one rate of wrong labels.

    Attributes:
        best: index of the method with the highest mean.
        tied: indices of the others that are not told apart from it; empty when there is one seed, since then nothing
            can be said.
    """

    best: int
    tied: tuple[int, ...]


def compare(accuracy: npt.NDArray[np.float64]) -> Comparison:
    """Compares methods by a two-sided paired t-test against the best mean, at level 5 % each.

    The tests are paired because every method saw the same split, noise, start and batches for a seed. They are not
    corrected for being several, nor for the best having been picked by looking: "tied" is to be read generously.

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
    # Compared with ≤ so that a method that equals the best seed by seed, lead and error both zero, is tied.
    reach = float(t.ppf(1 - LEVEL / 2, seeds - 1)) * lead.std(1, ddof=1) / seeds**0.5
    tied = [index for index in range(len(accuracy)) if index != best and lead[index].mean() <= reach[index]]
    return Comparison(best, tuple(tied))
