"""Names of the losses that compiled and fused kernels implement."""

from enum import IntEnum
from typing import NamedTuple

from linearcore.surrogates import KernelIdentity


class FormCode(IntEnum):
    """Forms that the kernels implement; the numbers are those of `dense.c` and `_dense_rows.py`."""

    LOGODDS = 0
    PAIRWISE = 1
    CENTERED = 2


class LossCode(NamedTuple):
    """A loss that the kernels implement.

    Attributes:
        form: the form.
        is_mean: mean over competitors instead of their sum.
        surrogate: φ.
        radius: norm that the scores are normalised to (`losses.robust_loss`); 0 for none.
        scale: factor of the loss.
    """

    form: FormCode
    is_mean: bool
    surrogate: KernelIdentity
    radius: float = 0.0
    scale: float = 1.0
