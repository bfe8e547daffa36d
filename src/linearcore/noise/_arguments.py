"""What every generator takes, and the checks on it."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._checks import complaint, holds

#: Class indices: an integer tensor or array, or a sequence of ints.
Labels = Tensor | npt.NDArray[np.integer] | Sequence[int]

#: Real numbers: a tensor or an array.
Numbers = Tensor | npt.NDArray[np.number]


def check_rate(rate: float) -> None:
    """Raises unless `rate` is a probability."""
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
        raise ValueError(complaint("rate", "be a probability", repr(rate), "pass a number in [0, 1], 0.2 for 20 %"))


def check_num_classes(num_classes: int) -> None:
    """Raises unless there are two classes for a label to be wrong in."""
    if isinstance(num_classes, bool) or not isinstance(num_classes, int) or num_classes < 2:
        raise ValueError(complaint("num_classes", "be an integer of at least 2", repr(num_classes), "count the classes"))


def check_seed(seed: int) -> None:
    """Raises unless torch takes `seed` as it is."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise ValueError(complaint("seed", "be a non-negative integer below 2**63", repr(seed), "pass 0, for example"))


def check_options(rate: float, num_classes: int, seed: int) -> None:
    """The three checks above."""
    check_num_classes(num_classes)
    check_rate(rate)
    check_seed(seed)


def as_labels(labels: Labels, num_classes: int, name: str = "labels") -> Tensor:
    """Returns `labels` as int64 on their own device, or raises unless they are integers in 0..n−1."""
    tensor = torch.as_tensor(labels)
    if tensor.numel() == 0:
        tensor = tensor.long()  # torch calls an empty list floating point
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(complaint(name, "be integers", tensor.dtype, "pass class indices, for example `.long()`"))
    tensor = tensor.long()
    in_range = (tensor >= 0) & (tensor < num_classes)
    holds(name, in_range, f"lie in 0..{num_classes - 1}", "raise `num_classes`, or take out ignored labels first")
    return tensor


def one_per_row(clean: Tensor, rows: int, name: str) -> None:
    """Raises unless the labels are a vector with one entry for every row of the argument called `name`."""
    if tuple(clean.shape) != (rows,):
        advice = f"pass as many labels as `{name}` has rows, flattened"
        raise ValueError(complaint("labels", f"have shape ({rows},)", tuple(clean.shape), advice))
