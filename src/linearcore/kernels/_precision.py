"""Float32 matrix products in full precision, whatever `torch.set_float32_matmul_precision` says."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import torch


class _Holds:
    """How many threads want full precision now. torch's setting is for all of them: the last one out restores it."""

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._restore: Callable[[], None] = _nothing

    @contextmanager
    def hold(self) -> Iterator[None]:
        with self._lock:
            if self._inside == 0:
                self._restore = _set_full()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._restore()


def _nothing() -> None:
    pass


def _set_full() -> Callable[[], None]:
    """Sets full precision where it is not set, and returns what undoes that; a setting made meanwhile is left alone."""
    backends: tuple[Any, ...] = (torch.backends.cuda, torch.backends.mkldnn)
    settings = [backend.matmul for backend in backends if backend.matmul.fp32_precision not in ("ieee", "none")]
    if not settings:
        return _nothing
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # torch refuses to say where its old and its new way to set this were both used.
        before = "highest"
    if before != "highest":  # Set the old way, and undone the old way: torch keeps both in step.
        torch.set_float32_matmul_precision("highest")
        return lambda: _undo_old(before)
    # What equals the setting of all backends is inherited from there, and goes on being so.
    inherited: Any = torch.backends
    values = ["none" if each.fp32_precision == inherited.fp32_precision else each.fp32_precision for each in settings]
    for setting in settings:
        setting.fp32_precision = "ieee"
    return lambda: _undo_new(settings, values)


def _undo_old(before: str) -> None:
    if torch.get_float32_matmul_precision() == "highest":
        torch.set_float32_matmul_precision(before)


def _undo_new(settings: list[Any], values: list[str]) -> None:
    for setting, value in zip(settings, values, strict=True):
        if setting.fp32_precision == "ieee":
            setting.fp32_precision = value


_HOLDS = _Holds()


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Products are rounded neither by autocast on `device` nor to TF32 or bfloat16: errors of a recursion add up.

    While it is active, products of other threads are in full precision, too.
    """
    with torch.autocast(device.type, enabled=False), _HOLDS.hold():
        yield
