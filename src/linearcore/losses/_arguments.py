"""Arguments of the loss modules: weights at construction, and torch's name for the scores in a call."""

import functools
import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from linearcore._checks import complaint


def takes_input(forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorator of `forward` methods: accepts the keyword `input`, as torch's losses have it, for `scores`."""

    @functools.wraps(forward)
    def with_input(self: object, *args: Any, **options: Any) -> Tensor:
        if "input" in options:
            # Python raises if the scores are passed twice.
            return forward(self, *args, scores=options.pop("input"), **options)
        return forward(self, *args, **options)

    return with_input


def tensor_or_none(name: str, vector: object) -> Tensor | None:
    """Returns `vector`; raises if it is neither a tensor nor None."""
    if vector is None or isinstance(vector, Tensor):
        return vector
    raise TypeError(complaint(name, "be a torch tensor", type(vector).__name__, "wrap it in torch.as_tensor"))


def weight_or_none(name: str, weight: object) -> Tensor | None:
    """Returns `weight` as a tensor, a number as a scalar; raises if it is neither, nor None, or a negative number."""
    if isinstance(weight, Real) and not isinstance(weight, bool):
        if not 0 <= float(weight) < math.inf:
            advice = "pass 1 for no weight, and more if positive targets are rare"
            raise ValueError(complaint(name, "be a finite number of at least 0", weight, advice))
        return torch.tensor(float(weight))
    return tensor_or_none(name, weight)
