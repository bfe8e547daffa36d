"""Float32 matrix products in full precision, whatever `torch.set_float32_matmul_precision` says."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import torch


class _FullPrecision:
    """Keeps one of torch's precision settings at "ieee" while any thread is inside.

    The setting belongs to the whole process, so threads are counted and the last one out restores it. Meanwhile the
    products of other threads are more precise than they asked for, never less.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._before = Lock(), 0, ""

    @contextmanager
    def hold(self, setting: Any) -> Iterator[None]:
        with self._lock:
            if self._inside == 0:
                self._before = setting.fp32_precision
                setting.fp32_precision = "ieee"
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    setting.fp32_precision = self._before


_CPU, _CUDA = _FullPrecision(), _FullPrecision()


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Products on `device` are rounded neither by autocast nor to TF32 or bfloat16: errors of a recursion add up."""
    backend: Any = torch.backends.cuda if device.type == "cuda" else torch.backends.mkldnn
    counter = _CUDA if device.type == "cuda" else _CPU
    with torch.autocast(device.type, enabled=False), counter.hold(backend.matmul):
        yield
