"""Registers: bits, one array over all threads each, which an instruction views as numbers of its type."""

import numpy as np

from tests.ptx.memory import FaultError
from tests.ptx.program import BF16, Program


def numbers(bits: np.ndarray, kind: object) -> np.ndarray:
    """Returns the numbers of a type that bits stand for; more bits than the type has are cut off."""
    if kind is np.bool_ or bits.dtype == np.bool_:
        return bits
    if kind == BF16:
        return (bits.astype(np.uint32) << 16).view(np.float32)
    size = np.dtype(kind).itemsize
    return (bits if bits.itemsize == size else bits.astype(f"u{size}")).view(kind)


def bits_of(values: np.ndarray) -> np.ndarray:
    """Returns the bits of numbers; integers keep their sign when they are extended."""
    return values.view(f"u{values.itemsize}") if values.dtype.kind == "f" else values


def to_bf16(values: np.ndarray) -> np.ndarray:
    """Returns the bits of float32 numbers, rounded to bfloat16."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), 0x7FFF, rounded).astype(np.uint16)


class Registers:
    """The registers of `size` threads, and numbers that instructions read like registers.

    Args:
        program: declares the registers.
        special: registers that are only read, as %tid.x.
    """

    def __init__(self, program: Program, special: dict[str, np.ndarray], size: int) -> None:
        self.size, self._declared, self._special = size, program.registers, special
        self._bits: dict[str, np.ndarray] = {}

    def read(self, operand: str, kind: object) -> np.ndarray:
        """Returns numbers of a type, (threads,), or (1,) if the operand is a constant."""
        if operand.startswith("%"):
            bits = self._special.get(operand, self._bits.get(operand))
            if bits is None:
                raise FaultError(f"{operand} was never written")
            return numbers(bits, kind)
        if operand[:2] in ("0f", "0d"):
            return numbers(np.array([int(operand[2:], 16)], "u4" if operand[1] == "f" else "u8"), kind)
        number = 0 if operand == "global_smem" else int(operand.rstrip("U"), 0)
        if kind is np.bool_:
            return np.array([number != 0])
        return numbers(np.array([number % 2**64], np.uint64), kind)

    def everywhere(self, operand: str, kind: object) -> np.ndarray:
        """Returns numbers of a type, (threads,)."""
        return np.broadcast_to(self.read(operand, kind), (self.size,))

    def write(self, name: str, values: np.ndarray, mask: np.ndarray | None) -> None:
        """Writes numbers to a register of the threads in `mask`, or of all threads."""
        if name == "_":
            return
        kind = self._declared.get(name, self._declared.get(name.rstrip("0123456789")))
        dtype = np.dtype(np.bool_ if kind is np.bool_ else f"u{np.dtype(kind).itemsize}")
        values = np.broadcast_to(bits_of(values).astype(dtype), (self.size,))
        if mask is not None:
            # Arrays are never changed in place, as several registers may have the same one.
            old = self._bits.get(name, np.full(self.size, 0xA5A5A5A5A5A5A5A5, np.uint64).astype(dtype))
            values = np.where(mask, values, old)
        self._bits[name] = values
