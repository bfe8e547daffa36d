"""The empirical distribution of a sample: distinct inputs and the frequencies of their labels."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._checks import complaint


@dataclass(frozen=True)
class Sample:
    """Empirical distribution over N distinct inputs.

    Attributes:
        design: (N, R) left singular vectors of the inputs; linear functions of the inputs are linear in these rows.
        masses: (N, C) P(x, y).
        is_zero: (N,) True for inputs at which every linear function is 0.
    """

    design: Tensor
    masses: Tensor
    is_zero: Tensor

    @property
    def num_classes(self) -> int:
        """Number of classes C."""
        return self.masses.shape[1]


def as_sample(features: npt.ArrayLike, labels: npt.ArrayLike, *, intercept: bool, num_classes: int | None) -> Sample:
    """Groups equal rows of `features` (n, d) and counts the `labels` (n,) of each."""
    rows, classes, size = checked_rows(features, labels, num_classes)
    inputs, masses = group_rows(rows, classes, size)
    if intercept:
        inputs = np.hstack([inputs, np.ones((len(inputs), 1))])
    # Linear functions of the inputs are linear functions of their left singular vectors, which are better conditioned.
    left, singular, _ = np.linalg.svd(inputs, full_matrices=False)
    design = left[:, singular > 1e-12 * max(singular[0], 1e-300)]
    return Sample(torch.tensor(design), torch.tensor(masses), torch.tensor(~inputs.any(1)))


def checked_rows(
    features: npt.ArrayLike, labels: npt.ArrayLike, num_classes: int | None
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp], int]:
    """Returns features (n, d), class indices (n,) and the number of classes; raises ValueError if they are invalid."""
    rows, classes = _checked_features(features), _checked_labels(labels, num_classes)
    if len(rows) != len(classes):
        raise ValueError(complaint("labels", f"have shape ({len(rows)},)", classes.shape, "pass one label for each row"))
    return rows, classes, max(2, int(classes.max()) + 1) if num_classes is None else num_classes


def group_rows(
    rows: npt.NDArray[np.float64], classes: npt.NDArray[np.intp], size: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Returns the N distinct rows (N, d), and P(x, y) (N, C)."""
    inputs, input_index = np.unique(rows, axis=0, return_inverse=True)
    masses = np.zeros((len(inputs), size))
    np.add.at(masses, (input_index.reshape(-1), classes), 1 / len(rows))
    return inputs, masses


def _checked_features(features: npt.ArrayLike) -> npt.NDArray[np.float64]:
    rows = np.asarray(features, dtype=np.float64)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(complaint("features", "have shape (n, d)", rows.shape, "pass one row of numbers for each example"))
    if not np.isfinite(rows).all():
        raise ValueError(complaint("features", "be finite", "NaN or infinite entries", "remove those rows"))
    # Turns −0.0 into 0.0, which must not count as a different row.
    return rows + 0.0


def _checked_labels(labels: npt.ArrayLike, num_classes: int | None) -> npt.NDArray[np.intp]:
    numbers = np.asarray(labels)
    advice = "use 0, 1, …, or −1 and +1 for two classes"
    if numbers.ndim != 1 or numbers.dtype.kind not in "iufb" or not (numbers == np.floor(numbers)).all():
        raise ValueError(complaint("labels", "be a list of class indices", f"{numbers.dtype} {numbers.shape}", advice))
    classes = numbers.astype(np.intp)
    if set(np.unique(classes)) <= {-1, 1} and num_classes in (None, 2) and bool((classes < 0).any()):
        classes = (classes + 1) // 2
    if bool((classes < 0).any()) or (num_classes is not None and bool((classes >= num_classes).any())):
        must = "not be negative" if num_classes is None else f"be in [0, {num_classes})"
        raise ValueError(complaint("labels", must, f"{classes.min()} to {classes.max()}", advice))
    return classes
