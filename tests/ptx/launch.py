"""Launches of Triton kernels over tensors on a CPU: compiled for a GPU, and run by `Machine`."""

import inspect
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.ptx.machine import Machine
from tests.ptx.memory import FaultError, Memory
from tests.ptx.program import read_program

#: Threads that run at a time.
MAX_THREADS = 16384


class Device:
    """What Triton asks its driver for a device: compute capability 9.0, or 8.0, whose matrix products are simpler."""

    capability = 90

    def get_current_target(self) -> object:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", self.capability, 32)

    def get_current_device(self) -> int:
        return self.capability

    def get_current_stream(self, _: int) -> int:
        return 0


class Emulated:
    """A compiled kernel as launches use it."""

    packed_metadata = function = None

    def __init__(self, kernel: Any, jit: Any, options: dict[str, Any], compiled: Any) -> None:
        self._kernel, self._jit, self._options, self._compiled = kernel, jit, options, compiled
        self._program = read_program(kernel.asm["ptx"])
        self.races: set[str] = set()

    def run(self, x: int, y: int, z: int, *given: Any) -> None:
        """A launch that reuses the kernel. `given` begins with six arguments that only a GPU needs."""
        if self._compiled(self._jit, given[6:], self._options) is not self._kernel:
            raise FaultError(f"{self._jit.fn.__name__}: Triton would compile another kernel for these arguments")
        self.execute((x, y, z), dict(zip(self._jit.arg_names, given[6:], strict=True)))

    def execute(self, grid: tuple[int, int, int], given: dict[str, Any]) -> None:
        """Runs the kernel with arguments by their names."""
        values = [given[name] for name, kind in self._kernel.src.signature.items() if kind != "constexpr"]
        values += [0] * (len(self._program.parameters) - len(values))  # Scratch memory, which is unused.
        allocations = dict(_allocation(value) for value in values if isinstance(value, Tensor) and value.numel())
        parameters = {name: _bits(value, kind) for (name, kind), value in zip(self._program.parameters, values, strict=True)}
        has_barriers = ".acq_rel" in self._kernel.asm["ptx"]
        memory = Memory(allocations, has_barriers=has_barriers, is_global=True)
        number = int(np.prod(grid))
        at_once = number if has_barriers else max(1, MAX_THREADS // self._program.threads)
        for first in range(0, number, at_once):
            blocks = np.arange(first, min(number, first + at_once))
            shared_bytes = self._kernel.metadata.shared
            machine = Machine(self._program, blocks, grid, parameters, shared_bytes, memory)
            with np.errstate(all="ignore"):
                machine.run()
            self.races |= machine.shared.races
        memory.copy_back()
        self.races |= memory.races


def _allocation(tensor: Tensor) -> tuple[int, np.ndarray]:
    """Returns the address and the bytes of the memory in which a tensor lies."""
    storage = tensor.untyped_storage()
    return storage.data_ptr(), torch.tensor([], dtype=torch.uint8).set_(storage).numpy()


def _bits(value: Any, kind: Any) -> np.ndarray:
    """Returns the bits of an argument; those of a tensor are its address."""
    if isinstance(value, float):
        return np.array([value], kind).view(f"u{np.dtype(kind).itemsize}")
    number = value.data_ptr() if isinstance(value, Tensor) else int(value)
    return np.array([number % 2**64], np.uint64).astype(kind)


def emulate(monkeypatch: pytest.MonkeyPatch, as_if: dict[str, int]) -> dict[str, Emulated]:
    """Launches of kernels are emulated from now on. Filled with the kernels that were launched.

    Args:
        as_if: capability, if not 9.0, of kernels by their names.
    """
    import triton
    from triton.runtime import JITFunction

    known: dict[int, Emulated] = {}
    launched: dict[str, Emulated] = {}
    original, device = JITFunction.run, Device()

    def compiled(jit: Any, given: tuple[Any, ...], options: dict[str, Any]) -> Any:
        device.capability = as_if.get(jit.fn.__name__, Device.capability)
        return original(jit, *given, grid=(1,), warmup=True, **options)

    def run(self: Any, *given: Any, grid: Any, warmup: bool, **options: Any) -> Emulated:
        kernel = compiled(self, given, options)
        constants = {name: value for name, value in options.items() if name in self.arg_names}
        if id(kernel) not in known:
            other = {name: value for name, value in options.items() if name not in constants}
            known[id(kernel)] = Emulated(kernel, self, other, compiled)
            launched[f"{self.fn.__module__.rpartition('.')[2]}.{self.fn.__name__} {len(known)}"] = known[id(kernel)]
        bound = inspect.signature(self.fn).bind(*given, **constants)
        known[id(kernel)].execute((*grid, 1, 1)[:3], bound.arguments)
        return known[id(kernel)]

    monkeypatch.setattr(JITFunction, "run", run)
    monkeypatch.setattr(triton.runtime.driver, "_active", device)
    return launched
