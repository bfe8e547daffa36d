"""What each instruction does, by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tests.ptx.memory import FaultError
from tests.ptx.program import BF16, PAIRS, Instruction
from tests.ptx.registers import bits_of, to_bf16

if TYPE_CHECKING:
    from tests.ptx.machine import Machine

F4, F8, U2, U4, U8 = np.float32, np.float64, np.uint16, np.uint32, np.uint64
Mask = np.ndarray | None
OPERATIONS: dict[str, Callable[[Machine, Instruction, Mask], None]] = {}


def operation(*names: str) -> Callable[[Callable[[Machine, Instruction, Mask], None]], Callable[..., None]]:
    """Decorator that adds the function to `OPERATIONS`."""

    def add(function: Callable[[Machine, Instruction, Mask], None]) -> Callable[..., None]:
        OPERATIONS.update(dict.fromkeys(names, function))
        return function

    return add


def require(is_emulated: bool, it: Instruction) -> None:
    if not is_emulated:
        raise NotImplementedError(f"{it.name}.{'.'.join(it.parts)} {it.operands}")


# Arithmetic -------------------------------------------------------------------------------------------------------------


def flushed(x: np.ndarray) -> np.ndarray:
    """Returns float32 numbers with 0 for the small ones that have fewer digits."""
    return np.where(np.abs(x) < np.finfo(F4).tiny, np.copysign(F4(0), x), x)


def _multiply(it: Instruction, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if "wide" in it.parts:
        wide = f"{x.dtype.kind}{2 * x.itemsize}"
        return x.astype(wide) * y.astype(wide)
    require("hi" not in it.parts, it)
    return x * y


def _fused(it: Instruction, x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    return (x.astype(F8) * y + z).astype(x.dtype)


def _divide(it: Instruction, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "f":
        return (x.astype(F8) / y).astype(x.dtype)
    # Towards zero. By 0 the result is undefined, as it is on a GPU.
    y = np.where(y == 0, y.dtype.type(1), y)
    return (x // y + ((x % y != 0) & ((x < 0) != (y < 0)))).astype(x.dtype)


def _extreme(it: Instruction, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "f" and "NaN" not in it.parts:
        return np.fmax(x, y) if it.name == "max" else np.fmin(x, y)
    result = np.maximum(x, y) if it.name == "max" else np.minimum(x, y)
    return np.maximum(result, 0) if "relu" in it.parts else result


#: Functions of numbers of one type. Approximate ones are computed in float64.
ARITHMETIC: dict[str, Callable[..., np.ndarray]] = {
    "add": lambda it, x, y: x + y, "sub": lambda it, x, y: x - y, "mul": _multiply, "fma": _fused,
    "div": _divide, "rem": lambda it, x, y: x - _divide(it, x, y) * y, "min": _extreme, "max": _extreme,
    "neg": lambda it, x: -x, "abs": lambda it, x: np.abs(x), "not": lambda it, x: ~x,
    "and": lambda it, x, y: x & y, "or": lambda it, x, y: x | y, "xor": lambda it, x, y: x ^ y,
    "ex2": lambda it, x: np.exp2(x.astype(F8)).astype(F4), "lg2": lambda it, x: np.log2(x.astype(F8)).astype(F4),
    "sqrt": lambda it, x: np.sqrt(x.astype(F8)).astype(x.dtype), "rcp": lambda it, x: (1 / x.astype(F8)).astype(x.dtype),
    "rsqrt": lambda it, x: (1 / np.sqrt(x.astype(F8))).astype(x.dtype),
}  # fmt: skip


@operation(*ARITHMETIC)
def arithmetic(m: Machine, it: Instruction, mask: Mask) -> None:
    kind = it.types[-1]
    require(kind not in (BF16, *PAIRS, np.float16), it)
    values = [m.registers.read(str(operand), kind) for operand in it.operands[1:]]
    result = ARITHMETIC[it.name](it, *(map(flushed, values) if "ftz" in it.parts else values))
    m.registers.write(str(it.operands[0]), flushed(result) if "ftz" in it.parts else result, mask)


@operation("mad")
def multiply_and_add(m: Machine, it: Instruction, mask: Mask) -> None:
    target, x, y, z = map(str, it.operands)
    product = _multiply(it, m.registers.read(x, it.types[0]), m.registers.read(y, it.types[0]))
    m.registers.write(target, product + m.registers.read(z, product.dtype), mask)


@operation("shl", "shr")
def shift(m: Machine, it: Instruction, mask: Mask) -> None:
    target, x, y = map(str, it.operands)
    value, number = m.registers.read(x, it.types[0]), m.registers.read(y, U4)
    bits = 8 * value.itemsize
    most = np.minimum(number, bits - 1).astype(value.dtype)
    result = value << most if it.name == "shl" else value >> most
    is_sign = it.name == "shr" and value.dtype.kind == "i"
    m.registers.write(target, result if is_sign else np.where(number < bits, result, value.dtype.type(0)), mask)


@operation("bfe")
def extract_bits(m: Machine, it: Instruction, mask: Mask) -> None:
    target, x, first, length = map(str, it.operands)
    value = m.registers.read(x, it.types[0])
    above = 8 * value.itemsize - int(length)
    m.registers.write(target, (value << value.dtype.type(above - int(first))) >> value.dtype.type(above), mask)


@operation("prmt")
def permute_bytes(m: Machine, it: Instruction, mask: Mask) -> None:
    target, x, y, choice = map(str, it.operands)
    pair = m.registers.read(x, U4).astype(U8) | (m.registers.read(y, U4).astype(U8) << 32)
    code, result = m.registers.read(choice, U4).astype(U8), U8(0)
    for i in range(4):
        digit = (code >> (4 * i)) & 15
        byte = (pair >> (8 * (digit & 7))) & 255
        byte = np.where(digit < 8, byte, np.where(byte < 128, 0, 255)).astype(U8)
        result = result | (byte << (8 * i))
    m.registers.write(target, result.astype(U4), mask)


@operation("selp")
def select(m: Machine, it: Instruction, mask: Mask) -> None:
    target, x, y, flag = map(str, it.operands)
    chosen = np.where(m.registers.read(flag, np.bool_), *(bits_of(m.registers.read(name, it.types[0])) for name in (x, y)))
    m.registers.write(target, chosen, mask)


@operation("mov")
def move(m: Machine, it: Instruction, mask: Mask) -> None:
    target, source = it.operands
    bits = 8 * np.dtype(it.types[0]).itemsize
    if isinstance(target, tuple):  # Parts of a number, the lowest first.
        value = m.registers.read(str(source), f"u{bits // 8}")
        for i, name in enumerate(target):
            m.registers.write(name, value >> (bits // len(target) * i), mask)
    elif isinstance(source, tuple):
        size = bits // len(source)
        parts = [m.registers.read(name, f"u{size // 8}").astype(f"u{bits // 8}") for name in source]
        m.registers.write(str(target), sum(part << (size * i) for i, part in enumerate(parts)), mask)
    else:
        m.registers.write(str(target), m.registers.read(str(source), it.types[0]), mask)


COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


@operation("setp")
def compare(m: Machine, it: Instruction, mask: Mask) -> None:
    target, *names = map(str, it.operands)
    x, y = (m.registers.read(name, it.types[0]) for name in names)
    how = it.parts[0]
    is_nan = np.isnan(x) | np.isnan(y) if x.dtype.kind == "f" else np.zeros(1, bool)
    if how in ("nan", "num"):
        result = is_nan == (how == "nan")
    else:
        # With u at its end a comparison is true for NaN.
        result = np.where(is_nan, how.endswith("u"), COMPARISONS[how[:2]](x, y))
    m.registers.write(target, result, mask)


@operation("cvt")
def convert(m: Machine, it: Instruction, mask: Mask) -> None:
    (to, source), (target, *names) = it.types, map(str, it.operands)
    values = [m.registers.read(name, source) for name in names]
    value = flushed(values[0]) if "ftz" in it.parts else values[0]
    if to in PAIRS:  # The second operand is the lower half.
        high, low = (to_bf16(half) if to == "bf16x2" else half.astype(np.float16).view(U2) for half in values)
        result = (high.astype(U4) << 16) | low
    elif "tf32" in it.parts:
        result = (value.view(U4) + U4(0x1000)) & U4(0xFFFFE000)
    elif to == BF16:
        result = to_bf16(value)
    else:
        require(value.dtype.kind != "f" or np.dtype(to).kind == "f", it)
        result = value.astype(to)
    m.registers.write(target, result, mask)


# Memory -----------------------------------------------------------------------------------------------------------------


def _names(operand: object) -> tuple[str, ...]:
    return operand if isinstance(operand, tuple) else (str(operand),)


@operation("ld")
def load(m: Machine, it: Instruction, mask: Mask) -> None:
    names, address = it.operands
    index, kind = m.chosen(mask), np.dtype(it.types[0])
    if "param" in it.parts:
        m.registers.write(str(names), m.parameters[address[0]], mask)
        return
    memory, places = m.addresses(it, address, index)
    _check_alignment(places, kind.itemsize * len(_names(names)))
    for i, name in enumerate(_names(names)):
        values = np.zeros(m.size, kind)
        values[index] = memory.load(places + i * kind.itemsize, kind, m.access(index, it.place))
        m.registers.write(name, values, mask)


@operation("st")
def store(m: Machine, it: Instruction, mask: Mask) -> None:
    address, names = it.operands
    index, kind = m.chosen(mask), np.dtype(it.types[0])
    memory, places = m.addresses(it, address, index)
    _check_alignment(places, kind.itemsize * len(_names(names)))
    for i, name in enumerate(_names(names)):
        values = bits_of(m.registers.everywhere(name, kind)[index])
        memory.store(places + i * kind.itemsize, values, m.access(index, it.place))


def _check_alignment(places: np.ndarray, size: int) -> None:
    if (places % size).any():
        raise FaultError(f"an address is no multiple of {size}")


@operation("red", "atom")
def add_atomically(m: Machine, it: Instruction, mask: Mask) -> None:
    *target, address, name = it.operands
    require("add" in it.parts, it)
    index, kind = m.chosen(mask), np.dtype(it.types[0])
    memory, places = m.addresses(it, address, index)
    numbers, where = memory.numbers(places, kind)
    added, before = m.registers.everywhere(str(name), kind)[index], np.zeros(m.size, kind)
    for thread, place, number in zip(index, where, added, strict=True):
        before[thread] = numbers[place]
        numbers[place] += number
    if target:
        m.registers.write(str(target[0]), before, mask)


@operation("fence")
def fence(m: Machine, it: Instruction, mask: Mask) -> None:
    """Memory is always in order here."""


# Warps ------------------------------------------------------------------------------------------------------------------


@operation("shfl")
def shuffle(m: Machine, it: Instruction, mask: Mask) -> None:
    target, name, number, _, members = map(str, it.operands)
    require(members == "-1" and it.parts[1] in ("bfly", "idx"), it)
    lanes = m.registers.read(number, U4).astype(np.int64)
    source = m.lane ^ lanes if it.parts[1] == "bfly" else m.lane // 32 * 32 + lanes % 32
    m.registers.write(target, m.registers.everywhere(name, U4)[source], mask)


@operation("redux")
def reduce_warp(m: Machine, it: Instruction, mask: Mask) -> None:
    target, name, _ = map(str, it.operands)
    values = m.registers.everywhere(name, it.types[0]).reshape(-1, 32)
    how = {"max": np.max, "min": np.min, "add": np.sum}[it.parts[1]]
    m.registers.write(target, np.repeat(how(values, axis=1), 32).astype(values.dtype), mask)


@operation("ldmatrix", "stmatrix")
def move_matrices(m: Machine, it: Instruction, mask: Mask) -> None:
    """Eight threads have the addresses of the rows of a matrix (8, 8) of 16-bit numbers; each thread has two numbers."""
    names, address = it.operands if it.name == "ldmatrix" else it.operands[::-1]
    require("m8n8" in it.parts and "trans" not in it.parts, it)
    index = m.chosen(mask)
    memory, rows = m.addresses(it, address, index)
    lane = np.arange(len(index))
    for i, name in enumerate(names):
        places = rows[lane // 32 * 32 + 8 * i + lane % 32 // 4] + 4 * (lane % 4)
        if it.name == "stmatrix":
            memory.store(places, m.registers.everywhere(name, U4)[index], m.access(index, it.place))
        else:
            values = np.zeros(m.size, U4)
            values[index] = memory.load(places, np.dtype(U4), m.access(index, it.place))
            m.registers.write(name, values, mask)


@operation("mma")
def multiply_matrices(m: Machine, it: Instruction, mask: Mask) -> None:
    """Adds products (16, 8) · (8, 8) of a warp to its (16, 8) sums; tf32 has 10 digits of a float32."""
    require("m16n8k8" in it.parts and it.parts[-2] == "tf32", it)
    targets, left, right, sums = it.operands
    warps, row, column = m.size // 32, np.arange(32) // 4, np.arange(32) % 4

    def digits(name: str) -> np.ndarray:
        return (m.registers.everywhere(name, U4) & U4(0xFFFFE000)).view(F4).astype(F8).reshape(warps, 32)

    a, b = np.zeros((warps, 16, 8)), np.zeros((warps, 8, 8))
    for i, name in enumerate(left):
        a[:, row + 8 * (i % 2), column + 4 * (i // 2)] = digits(name)
    for i, name in enumerate(right):
        b[:, column + 4 * i, row] = digits(name)
    parts = [(a @ b)[:, row + 8 * (i // 2), 2 * column + i % 2].reshape(-1) for i in range(4)]
    totals = [(part + m.registers.read(name, F4)).astype(F4) for part, name in zip(parts, sums, strict=True)]
    for name, total in zip(targets, totals, strict=True):
        m.registers.write(name, total, mask)
