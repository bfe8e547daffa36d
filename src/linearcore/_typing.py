"""Shared type aliases, and the dtypes of computations and results."""

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

#: Non-tensor inputs of surrogates: Python numbers, NumPy scalars and arrays, nested sequences of numbers.
NumPyLike: TypeAlias = npt.ArrayLike

#: Result type of surrogates for non-tensor inputs.
NumPyFloat: TypeAlias = npt.NDArray[np.floating] | np.floating

Reduction: TypeAlias = Literal["none", "mean", "sum"]


def compute_dtype(tensor: Tensor) -> torch.dtype:
    """Returns the dtype for computation: float32 for half precisions, otherwise the dtype of `tensor`."""
    return torch.float32 if tensor.dtype in (torch.float16, torch.bfloat16) else tensor.dtype


def result_dtype(scores: Tensor) -> torch.dtype:
    """Returns the dtype of a loss, as F.cross_entropy: the dtype of `scores`, or `compute_dtype` under autocast."""
    device = scores.device.type
    # torch.is_autocast_enabled raises for devices without autocast, such as "meta".
    is_autocast = device != "meta" and torch.is_autocast_enabled(device)
    return compute_dtype(scores) if is_autocast else scores.dtype
