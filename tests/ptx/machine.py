"""Runs a kernel: all threads of a grid in step, each at its own place in the program."""

import os

import numpy as np

from tests.ptx.memory import Access, FaultError, Memory
from tests.ptx.operations import OPERATIONS
from tests.ptx.program import WARP_WIDE, Instruction, Program
from tests.ptx.registers import Registers

#: Times that a block of instructions runs in a row before others have their turn: a thread may wait for another one.
PATIENCE = 20
#: Runs of blocks of instructions after which a kernel counts as one that does not end.
MOST = 1_000_000
#: Warps of a block run in step, or one after the other: "first", or "last" one first. Only a race makes a difference.
ORDER = os.environ.get("LINEARCORE_PTX_ORDER", "")


class Machine:
    """A launch, or a part of its blocks.

    Args:
        program: the kernel.
        blocks: numbers of the blocks that run.
        grid: number of blocks by axis.
        parameters: bits of each parameter by its name.
        shared_bytes: shared memory of a block.
        memory: global memory.
    """

    def __init__(
        self, program: Program, blocks: np.ndarray, grid: tuple[int, int, int], parameters: dict[str, np.ndarray],
        shared_bytes: int, memory: Memory,
    ) -> None:  # fmt: skip
        self.program, self.parameters, self.memory = program, parameters, memory
        self.size = len(blocks) * program.threads
        self.lane = np.arange(self.size)
        block, thread = np.repeat(blocks, program.threads), self.lane % program.threads
        self.warp, self.thread = thread // 32, block * program.threads + thread
        axes = block % grid[0], block // grid[0] % grid[1], block // grid[0] // grid[1]
        special = {"%tid.x": thread}
        for axis, here, number in zip("xyz", axes, grid, strict=True):
            special |= {f"%ctaid.{axis}": here, f"%nctaid.{axis}": np.full(self.size, number)}
        self.registers = Registers(program, {name: bits.astype(np.uint32) for name, bits in special.items()}, self.size)
        # The blocks' shared memories are one array. The gap between them is larger than offsets beyond the end.
        self.shared_bytes = (shared_bytes + 127) // 128 * 128
        self.room = self.lane // program.threads * (self.shared_bytes + 2**20)
        rooms = {int(start): np.full(shared_bytes, 0xFF, np.uint8) for start in np.unique(self.room)} if shared_bytes else {}
        self.shared = Memory(rooms, has_barriers=False, is_global=False)
        self.place, self.epoch = np.zeros((2, self.size), np.int64)
        self.is_alive, self.is_waiting = np.ones(self.size, bool), np.zeros(self.size, bool)

    def run(self) -> None:
        """Runs all threads to their end."""
        needs_warps = [any(it.name in WARP_WIDE for it in block) for block in self.program.blocks]
        last, times, count = -1, 0, 0
        while self.is_alive.any():
            ready = self.is_alive & ~self.is_waiting
            if ORDER and ready.any():
                ready &= self.warp == (self.warp[ready].max() if ORDER == "last" else self.warp[ready].min())
            groups = []
            # The lowest place first, so that threads come together again after a branch.
            for block in np.unique(self.place[ready]):
                mask = ready & (self.place == block)
                if needs_warps[block]:
                    mask &= np.repeat((mask | ~self.is_alive).reshape(-1, 32).all(1), 32)
                if mask.any():
                    groups.append((int(block), mask))
                    if times <= PATIENCE:
                        break
            count += 1
            if not groups or count > MOST:
                raise FaultError(f"{self.program.name} does not end")
            block, mask = groups[count % len(groups)]
            times = times + 1 if block == last else 0
            last = block
            self._run_block(block, None if mask.all() else mask)

    def _run_block(self, number: int, mask: np.ndarray | None) -> None:
        self.place[self.chosen(mask)] = number + 1
        for instruction in self.program.blocks[number]:
            active = mask
            if instruction.guard is not None:
                name, value = instruction.guard
                flag = self.registers.everywhere(name, np.bool_) == value
                active = flag if mask is None else flag & mask
            try:
                self._execute(instruction, active)
            except Exception as error:
                error.add_note(f"in {self.program.name}, {instruction.place}")
                raise

    def _execute(self, it: Instruction, mask: np.ndarray | None) -> None:
        if it.name == "bra":
            self.place[self.chosen(mask)] = self.program.labels[str(it.operands[0])]
        elif it.name == "ret":
            self.is_alive[self.chosen(mask)] = False
            self._release()
        elif it.name == "bar":
            if it.parts[:2] == ("warp", "sync"):
                assert self.program.threads == 32, "a barrier of one of several warps is not emulated"
            else:
                assert it.parts == ("sync",) and it.operands == ("0",), "this barrier is not emulated"
            self.is_waiting[self.chosen(mask)] = True
            self._release()
        else:
            OPERATIONS[it.name](self, it, mask)

    def _release(self) -> None:
        """Lets go on the threads of blocks all of whose threads wait."""
        shape = -1, self.program.threads
        is_free = np.repeat((self.is_waiting | ~self.is_alive).reshape(shape).all(1), self.program.threads) & self.is_waiting
        if is_free.any():
            places = np.where(is_free, self.place, -1).reshape(shape)
            if (places.max(1, keepdims=True) != places).any():
                raise FaultError("threads of a block wait at different barriers, or have ended")
            self.is_waiting[is_free] = False
            self.epoch[is_free] += 1

    def chosen(self, mask: np.ndarray | None) -> np.ndarray:
        """Returns the indices of the threads in a mask; None has all."""
        return self.lane if mask is None else np.nonzero(mask)[0]

    def access(self, index: np.ndarray, place: str) -> Access:
        """Returns what `Memory` has to know of threads."""
        return Access(self.thread[index], self.epoch[index], self.program.threads, place)

    def addresses(self, it: Instruction, operand: list[object], index: np.ndarray) -> tuple[Memory, np.ndarray]:
        """Returns global or shared memory, and the addresses of threads in it."""
        base, offset = str(operand[0]), int(operand[1])
        is_shared = any(part.startswith("shared") for part in it.parts)
        kind = np.uint32 if is_shared and base != "global_smem" else np.int64
        address = self.registers.everywhere(base, kind)[index].astype(np.int64) + offset
        return (self.shared, address + self.room[index]) if is_shared else (self.memory, address)
