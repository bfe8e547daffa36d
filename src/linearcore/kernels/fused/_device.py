"""Launches go to the device of their tensors."""

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
