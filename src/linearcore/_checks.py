"""Argument checks, and the common format of all error messages.

A message names the argument in backticks, what must hold, what was passed, and what to do:

    `tau` must be a positive number, got -1.0; pass the half-width of the linear core, for example 1.0
"""

import math
from collections.abc import Iterable
from numbers import Real

import torch
from torch import Tensor

from linearcore._torch import is_on_host

#: What to do about a label out of range.
LABEL_ADVICE = "number the classes from 0, or score more classes"


def complaint(name: str, must: str, got: object, advice: str) -> str:
    """Returns an error message in the common format."""
    return f"`{name}` must {must}, got {got}; {advice}"


def positive(name: str, number: object, advice: str) -> float:
    """Returns `number` as a float; raises if it is not a finite number above zero."""
    try:
        value = float(number) if isinstance(number, Real) and not isinstance(number, bool) else math.nan
    except OverflowError:  # An integer too large for a float.
        value = math.inf
    if 0 < value < math.inf:
        return value
    raise ValueError(complaint(name, "be a positive number", repr(number), advice))


def between(name: str, number: object, low: float, high: float, advice: str) -> float:
    """Returns `number` as a float; raises if it is not a finite number in [low, high]."""
    value = float(number) if isinstance(number, Real) and not isinstance(number, bool) else math.nan
    if low <= value <= high and math.isfinite(value):
        return value
    raise ValueError(complaint(name, f"be a number in [{low:g}, {high:g}]", repr(number), advice))


def one_of(name: str, choice: object, allowed: Iterable[object], advice: str = "choose one of these") -> None:
    """Raises if `choice` is not in `allowed`."""
    allowed = tuple(allowed)
    if choice not in allowed:
        raise ValueError(complaint(name, f"be one of {', '.join(map(repr, allowed))}", repr(choice), advice))


def floating(name: str, tensor: object, advice: str) -> Tensor:
    """Returns `tensor`; raises if it is not a floating-point tensor."""
    if not isinstance(tensor, Tensor):
        raise TypeError(complaint(name, "be a torch tensor", type(tensor).__name__, advice))
    if not tensor.is_floating_point():
        raise TypeError(complaint(name, "be floating point", tensor.dtype, advice))
    return tensor


def shape(name: str, tensor: object, expected: tuple[int, ...], advice: str) -> None:
    """Raises if `tensor` is not a tensor of shape `expected`."""
    if not isinstance(tensor, Tensor):
        raise TypeError(complaint(name, "be a torch tensor", type(tensor).__name__, "wrap it in torch.as_tensor"))
    if tuple(tensor.shape) != expected:
        raise ValueError(complaint(name, f"have shape {expected}", tuple(tensor.shape), advice))


def on_device_of(scores: Tensor, name: str, tensor: Tensor) -> None:
    """Raises if `tensor` is not on the device of `scores`."""
    if tensor.device != scores.device:
        advice = f"move it, or the loss module that holds it, with `.to({str(scores.device)!r})`"
        raise ValueError(complaint(name, f"be on the device of `scores`, {scores.device}", tensor.device, advice))


def holds(
    name: str, condition: Tensor, must: str, advice: str, *, of: str = "entries", values: Tensor | None = None
) -> None:
    """Raises if an entry of `condition` is False. Synchronises with the GPU: losses call it only with `validate=True`.

    With `values`, in the shape of `condition`, the message has the index and the value of the first such entry.
    """
    if bool(condition.all()):
        return
    violations = (~condition).nonzero()
    got = f"{len(violations)} of {condition.numel()} {of}"
    if values is None:
        got = f"{got} that break this"
    else:
        position = tuple(violations[0].tolist())
        index = f"[{', '.join(map(str, position))}]" if position else ""
        got = f"{name}{index} = {values[position].item():.6g} ({got})"
    raise ValueError(complaint(name, must, got, advice))


def in_range(name: str, index: Tensor, size: int, ignored: str) -> tuple[Tensor, Tensor | None]:
    """Returns valid class indices, and a mask of the indices that were out of range (None on a CPU).

    On a CPU an index out of range raises. On other devices a check would synchronise, so the index is clamped and the
    caller sets its loss to NaN with `nan_where`. `ignored` is the part of the message that names the ignored labels.

    Raises:
        ValueError: on a CPU, if an index is not in [0, size).
    """
    if is_on_host(index):
        if index.numel():
            low, high = (int(bound) for bound in torch.aminmax(index))
            if low < 0 or high >= size:
                is_inside = (index >= 0) & (index < size)
                holds(name, is_inside, f"be in [0, {size}) or {ignored}", LABEL_ADVICE, values=index)
        return index, None
    inside = index.clamp(0, size - 1)
    return inside, inside != index


def nan_where(losses: Tensor, mask: Tensor | None) -> Tensor:
    """Sets `losses` and their gradients to NaN where `mask` is True."""
    return losses if mask is None else losses * torch.where(mask, math.nan, 1.0)
