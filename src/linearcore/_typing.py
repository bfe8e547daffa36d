"""Types shared by every layer, and the dtypes that arithmetic and results have."""

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

#: What a surrogate accepts besides a tensor: Python numbers, NumPy scalars and arrays, nested sequences of numbers.
NumPyLike: TypeAlias = npt.ArrayLike

#: What a surrogate gives back for anything that is not a tensor.
NumPyFloat: TypeAlias = npt.NDArray[np.floating] | np.floating

Reduction: TypeAlias = Literal["none", "mean", "sum"]


def compute_dtype(tensor: Tensor) -> torch.dtype:
    """The dtype arithmetic is done in: half precisions are widened to float32, the others are kept."""
    return torch.float32 if tensor.dtype in (torch.float16, torch.bfloat16) else tensor.dtype


def result_dtype(scores: Tensor) -> torch.dtype:
    """The dtype a loss has, which is F.cross_entropy's: that of the scores, or the wider one under autocast."""
    device = scores.device.type
    # Devices without autocast, such as "meta", do not answer whether it is on.
    is_autocast = device != "meta" and torch.is_autocast_enabled(device)
    return compute_dtype(scores) if is_autocast else scores.dtype
