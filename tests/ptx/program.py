"""The text of a kernel in PTX, read into basic blocks of instructions."""

import re
from typing import NamedTuple

import numpy as np

#: Numbers of 16 bits that numpy does not know, and two numbers in 32 bits.
BF16, PAIRS = "bf16", ("bf16x2", "f16x2")
TYPES: dict[str, object] = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": BF16, "pred": np.bool_, "tf32": np.uint32,
    **{pair: pair for pair in PAIRS},
    **{f"s{bits}": getattr(np, f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"{kind}{bits}": getattr(np, f"uint{bits}") for kind in "ub" for bits in (8, 16, 32, 64)},
}  # fmt: skip
#: Instructions in which all threads of a warp take part.
WARP_WIDE = ("shfl", "redux", "ldmatrix", "stmatrix", "mma")
ENTRY = re.compile(r"\.visible \.entry (\w+)\(([^)]*)\)\s*\.reqntid (\d+)[^{]*\{(.*?)^\}", re.MULTILINE | re.DOTALL)
OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s{}\[\]|]+")


class Instruction(NamedTuple):
    """One instruction.

    Attributes:
        name: the first part of the opcode.
        parts: the other parts.
        types: those of the parts that are types.
        guard: (register, value) if only threads with this value in the register execute it.
        operands: registers and numbers as text, tuples of them, and addresses as [register, offset].
        place: file, line and text, for messages.
    """

    name: str
    parts: tuple[str, ...]
    types: tuple[object, ...]
    guard: tuple[str, bool] | None
    operands: tuple[object, ...]
    place: str


class Program(NamedTuple):
    """A kernel.

    Attributes:
        name: of the kernel.
        threads: of a block.
        parameters: names and types.
        registers: the type of the registers with a prefix.
        blocks: instructions, of which only the last one of a block jumps, ends or waits.
        labels: the block behind each label.
    """

    name: str
    threads: int
    parameters: list[tuple[str, object]]
    registers: dict[str, object]
    blocks: list[list[Instruction]]
    labels: dict[str, int]


def read_program(ptx: str) -> Program:
    """Returns the kernel of a PTX module with one kernel."""
    entry = ENTRY.search(ptx)
    assert entry is not None
    parameters = [(name, TYPES[kind]) for kind, name in re.findall(r"\.param \.(\w+) .*?(\w+_param_\d+)", entry[2])]
    program = Program(entry[1], int(entry[3]), parameters, {}, [[]], {})
    place = ""
    for row in entry[4].splitlines():
        location = re.search(r"\.loc.*// (\S+)", row)
        place = location[1] if location else place
        row = row.partition("//")[0].strip()
        if row.startswith("$") and row.endswith(":"):
            program.blocks.append([])
            program.labels[row[:-1]] = len(program.blocks) - 1
        elif not row.startswith((".loc", ".pragma")):
            for text in re.sub(r"^\{\s*(?=\.reg)|(?<=;)\s*\}$", "", row).split(";"):
                _add(program, " ".join(text.split()), place)
    return program


def _add(program: Program, text: str, place: str) -> None:
    if text.startswith(".reg"):
        _, kind, names = text.split(" ", 2)
        program.registers.update((name.partition("<")[0].strip(), TYPES[kind[1:]]) for name in names.split(","))
    elif text not in ("", "{", "}"):
        instruction = _instruction(text, place)
        program.blocks[-1].append(instruction)
        if instruction.name in ("bra", "ret", "bar"):
            program.blocks.append([])


def _instruction(text: str, place: str) -> Instruction:
    guard, rest = None, text
    if text.startswith("@"):
        flag, rest = text[1:].split(" ", 1)
        guard = flag.lstrip("!"), not flag.startswith("!")
    opcode, _, operands = rest.partition(" ")
    name, *parts = opcode.split(".")
    types = tuple(TYPES[part] for part in parts if part in TYPES)
    return Instruction(name, tuple(parts), types, guard, tuple(map(_operand, OPERAND.findall(operands))), f"{place}: {text}")


def _operand(text: str) -> object:
    if text[0] == "{":
        return tuple(OPERAND.findall(text[1:-1]))
    if text[0] == "[":
        base, _, offset = text[1:-1].replace(" ", "").partition("+")
        return [base, int(offset or "0", 0)]
    return text
