"""Float32 matrix products in full precision, independent of `torch.set_float32_matmul_precision`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import torch


class _PrecisionGuard:
    """Counts the threads that use full precision. The setting is global, so the last thread restores it."""

    def __init__(self) -> None:
        self._lock, self._num_threads = Lock(), 0
        self._restore: Callable[[], None] = _do_nothing

    @contextmanager
    def hold(self) -> Iterator[None]:
        with self._lock:
            if self._num_threads == 0:
                self._restore = _set_full()
            self._num_threads += 1
        try:
            yield
        finally:
            with self._lock:
                self._num_threads -= 1
                if self._num_threads == 0:
                    self._restore()


def _do_nothing() -> None:
    pass


def _set_full() -> Callable[[], None]:
    """Sets full precision and returns a function that restores the old setting, unless it was changed meanwhile."""
    backends: tuple[Any, ...] = (torch.backends.cuda, torch.backends.mkldnn)
    settings = [backend.matmul for backend in backends if backend.matmul.fp32_precision not in ("ieee", "none")]
    if not settings:
        return _do_nothing
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # torch raises if both the old and the new interface were used.
        before = "highest"
    if before != "highest":  # Set and restored with the old interface; torch updates both.
        torch.set_float32_matmul_precision("highest")
        return lambda: _restore_old(before)
    # A value equal to the global setting is inherited, so restore it as inherited.
    inherited: Any = torch.backends
    values = ["none" if each.fp32_precision == inherited.fp32_precision else each.fp32_precision for each in settings]
    for setting in settings:
        setting.fp32_precision = "ieee"
    return lambda: _restore_new(settings, values)


def _restore_old(before: str) -> None:
    if torch.get_float32_matmul_precision() == "highest":
        torch.set_float32_matmul_precision(before)


def _restore_new(settings: list[Any], values: list[str]) -> None:
    for setting, value in zip(settings, values, strict=True):
        if setting.fp32_precision == "ieee":
            setting.fp32_precision = value


_GUARD = _PrecisionGuard()


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Disables autocast on `device`, TF32 and bfloat16 products, because errors of a recursion accumulate.

    While it is active, matrix products of other threads are in full precision, too.
    """
    with torch.autocast(device.type, enabled=False), _GUARD.hold():
        yield
