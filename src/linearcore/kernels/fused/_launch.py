"""Launches with little time on the host: what does not change between calls is prepared once."""

from collections.abc import Hashable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from triton.runtime import driver

#: Combinations of shapes, strides and constants that a `Launcher` keeps.
MAX_KNOWN = 4096


class Launch:
    """A kernel with all arguments but its tensors.

    Triton finds the compiled kernel for the kind of all arguments in every call. This class finds it for how the addresses
    are aligned, and the caller makes one object for everything else: dtypes, device, numbers and constants. Objects that
    differ only in numbers for which Triton compiles no other kernel can have the same `kind`.

    Args:
        kernel: a function with Triton's decorator `jit`: tensors first, then numbers, then constants.
        num_programs: the size of the grid.
        rest: numbers and constants.
        kind: all that Triton compiles another kernel for, but the alignment of addresses.
        options: num_warps and others.
    """

    def __init__(self, kernel: Any, num_programs: int, rest: tuple[Any, ...], kind: Hashable, **options: Any) -> None:
        self.kernel, self.num_programs, self.rest, self.options = kernel, num_programs, rest, options
        self.compiled = _compiled_kernels(kind)

    def __call__(self, device: int, *tensors: Tensor | None) -> None:
        """Runs the kernel. `device` is the index of the tensors' device, −1 in the interpreter."""
        if device >= 0 and device != torch.cuda.current_device():
            with torch.cuda.device(device):
                self._run(device, tensors)
        else:
            self._run(device, tensors)

    def _run(self, device: int, tensors: tuple[Tensor | None, ...]) -> None:
        key = tuple([tensor is None or tensor.data_ptr() % 16 == 0 for tensor in tensors])
        compiled = self.compiled.get(key)
        if compiled is None:
            compiled = self.kernel[(self.num_programs,)](*tensors, *self.rest, **self.options)
            if hasattr(compiled, "packed_metadata"):  # The interpreter returns None.
                self.compiled[key] = compiled
            return
        # What `compiled[grid](*arguments)` does, without the look-up of hooks, which are for profilers.
        stream = driver.active.get_current_stream(device)
        compiled.run(
            self.num_programs, 1, 1, stream, compiled.function, compiled.packed_metadata, None, None, None,
            *tensors, *self.rest,
        )  # fmt: skip


@cache
def _compiled_kernels(kind: Hashable) -> dict[tuple[bool, ...], Any]:
    """Returns the compiled kernels of a kind by how their addresses are aligned; empty at first."""
    return {}


def special(number: int) -> tuple[bool, bool]:
    """Returns what Triton specialises a kernel for."""
    return number % 16 == 0, number == 1


class Launcher:
    """Launches a Triton kernel. A launch with the same sizes and constants as an earlier one reuses its compiled kernel.

    Args:
        function: the kernel, decorated with `triton.jit`. Its arguments are tensors, then integers, then floats, then
            constants.
    """

    def __init__(self, function: Any) -> None:
        self._function = function
        self._known: dict[tuple[object, ...], tuple[Any, tuple[object, ...]]] = {}

    def __call__(
        self,
        grid: tuple[int, int, int],
        tensors: Sequence[Tensor],
        integers: tuple[int, ...],
        floats: tuple[float, ...] = (),
        *,
        given: int,
        **constants: Any,
    ) -> None:
        """Launches `grid` programs.

        Args:
            grid: number of programs.
            tensors, integers, floats: arguments of the kernel.
            given: how many of the tensors, the first ones, may have several dtypes and any alignment. The others are
                aligned, as torch allocates them.
            constants: constants in the kernel's order, followed by options such as `num_warps`.
        """
        # Triton compiles a kernel for the dtypes and the alignment of tensors, and for properties of the integers.
        device = tensors[0].get_device()
        key = (
            device, integers, *constants.values(), *[tensor.dtype for tensor in tensors[:given]],
            *[tensor.data_ptr() % 16 for tensor in tensors[:given]],
        )  # fmt: skip
        known = self._known.get(key)
        if known is not None:
            compiled, stream = known[0], driver.active.get_current_stream(device)
            compiled.run(
                *grid, stream, compiled.function, compiled.packed_metadata, None, None, None,
                *tensors, *integers, *floats, *known[1],
            )  # fmt: skip
            return
        compiled = self._function[grid](*tensors, *integers, *floats, **constants)
        if compiled is None:  # In the interpreter.
            return
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        number = len(tensors) + len(integers) + len(floats)
        self._known[key] = compiled, tuple(constants[name] for name in self._function.arg_names[number:])


def block_size(number: int) -> int:
    """Returns the smallest power of 2 that is at least `number` and 16. That of Triton takes 20 times as long."""
    return max(16, 1 << (number - 1).bit_length())
