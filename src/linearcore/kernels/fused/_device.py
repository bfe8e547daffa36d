"""Device selection and memory layout for kernel launches."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor

Params = ParamSpec("Params")
Result = TypeVar("Result")


def on_tensor_device(launch: Callable[Concatenate[Tensor, Params], Result]) -> Callable[Concatenate[Tensor, Params], Result]:
    """Decorator that launches on the device of the first argument. Triton would use the current device."""

    @wraps(launch)
    def wrapper(first: Tensor, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        with torch.cuda.device_of(first):
            return launch(first, *args, **kwargs)

    return wrapper


def with_unit_stride(tensor: Tensor) -> Tensor:
    """Returns `tensor` with stride 1 in the last dimension, copied if needed. The kernels accept any other strides."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()
