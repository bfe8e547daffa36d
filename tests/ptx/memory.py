"""Memory of a launch: no access outside allocations, none that is not aligned, and no races between threads."""

from typing import NamedTuple

import numpy as np


class FaultError(Exception):
    """What a GPU punishes or leaves undefined."""


class Access(NamedTuple):
    """Threads that read or write at a time.

    Attributes:
        thread: their numbers in the grid.
        epoch: how many barriers each has passed.
        block_size: threads of a block.
        place: the instruction.
    """

    thread: np.ndarray
    epoch: np.ndarray
    block_size: int
    place: str


class Memory:
    """Bytes at addresses. Of every byte it knows the last thread that wrote it, the last one that read it, and when.

    Args:
        allocations: the bytes at each address; `copy_back` writes them.
        has_barriers: blocks wait for each other, so that accesses of two blocks are no race.
        is_global: several threads may read what one of them overwrites. Triton lets all threads load an array with fewer
            elements than threads, and only one of those with an element goes on with it.
    """

    def __init__(self, allocations: dict[int, np.ndarray], *, has_barriers: bool, is_global: bool) -> None:
        self.has_barriers, self.is_global, self.races = has_barriers, is_global, set[str]()
        self.arrays = [array for _, array in sorted(allocations.items())]
        self.starts = np.array([0, *sorted(allocations)], np.int64)
        self.sizes = np.array([0, *(array.size for array in self.arrays)], np.int64)
        # An address keeps its remainder by 128, so that it is as aligned as before.
        rooms = (self.sizes + 255) // 128 * 128
        self.shifts = rooms.cumsum() - rooms + self.starts % 128 - self.starts
        self.bytes = np.full(int(rooms.sum()), 0xFF, np.uint8)
        for part, array in zip(self._parts(), self.arrays, strict=True):
            self.bytes[part] = array
        self.writer, self.reader = np.full((2, self.bytes.size), -1, np.int64)
        self.written, self.read = np.zeros((2, self.bytes.size), np.int64)
        self.is_changed = np.zeros(self.bytes.size, bool)

    def _parts(self) -> list[slice]:
        first = (self.starts + self.shifts)[1:]
        return [slice(start, start + array.size) for start, array in zip(first, self.arrays, strict=True)]

    def copy_back(self) -> None:
        """Writes the contents to the allocations."""
        for part, array in zip(self._parts(), self.arrays, strict=True):
            array[:] = self.bytes[part]

    def numbers(self, address: np.ndarray, kind: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """Returns all memory as numbers of a type, and which of them are at the addresses."""
        which = np.searchsorted(self.starts, address, "right") - 1
        offset = address - self.starts[which]
        is_outside = offset + kind.itemsize > self.sizes[which]
        if is_outside.any():
            first = int(is_outside.argmax())
            raise FaultError(f"byte {offset[first]} of {self.sizes[which[first]]} ({is_outside.sum()} threads)")
        if (address % kind.itemsize).any():
            raise FaultError("the address is not aligned")
        return self.bytes.view(kind), (address + self.shifts[which]) // kind.itemsize

    def load(self, address: np.ndarray, kind: np.dtype, access: Access) -> np.ndarray:
        """Returns the numbers at the addresses."""
        numbers, index = self.numbers(address, kind)
        for byte in range(0, kind.itemsize, 2):
            place = index * kind.itemsize + byte
            self._check("reads what another thread wrote", self.is_changed[place], self.writer, self.written, place, access)
            self.reader[place], self.read[place] = access.thread, access.epoch
        return numbers[index]

    def store(self, address: np.ndarray, values: np.ndarray, access: Access) -> None:
        """Writes numbers to the addresses."""
        numbers, index = self.numbers(address, values.dtype)
        is_changed = numbers[index] != values
        numbers[index] = values
        if (numbers[index] != values).any():
            self.races.add(f"{access.place}: threads write different values to one place")
        for byte in range(0, values.dtype.itemsize, 2):
            place = index * values.dtype.itemsize + byte
            self._check("overwrites what another thread wrote", is_changed, self.writer, self.written, place, access)
            if not self.is_global:
                self._check("overwrites what another thread read", is_changed, self.reader, self.read, place, access)
            is_same_epoch = (self.writer[place] >= 0) & (self.written[place] == access.epoch)
            self.is_changed[place] = is_changed | (is_same_epoch & self.is_changed[place])
            self.writer[place], self.written[place] = access.thread, access.epoch

    def _check(
        self, what: str, matters: np.ndarray, others: np.ndarray, epochs: np.ndarray, place: np.ndarray, access: Access
    ) -> None:
        """Records a race if no barrier is between this access and that of another thread."""
        other = others[place]
        is_same_block = other // access.block_size == access.thread // access.block_size
        is_unordered = np.where(is_same_block, epochs[place] == access.epoch, not self.has_barriers)
        if (matters & (other >= 0) & (other != access.thread) & is_unordered).any():
            self.races.add(f"{access.place}: {what}")
