"""What every launch does first: go to the device of its tensors, and lay them out as its kernel reads them."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor

Rest = ParamSpec("Rest")
Result = TypeVar("Result")


def on_its_device(launch: Callable[Concatenate[Tensor, Rest], Result]) -> Callable[Concatenate[Tensor, Rest], Result]:
    """Triton launches on the current device, which need not be the one where the first argument lies."""

    @wraps(launch)
    def guarded(first: Tensor, /, *args: Rest.args, **kwargs: Rest.kwargs) -> Result:
        with torch.cuda.device_of(first):
            return launch(first, *args, **kwargs)

    return guarded


def by_rows(tensor: Tensor) -> Tensor:
    """`tensor`, copied unless its last dimension is adjacent in memory; the kernels take any other stride."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()
