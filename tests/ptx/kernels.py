"""A kernel with a mistake, for the tests of the emulator."""

import triton
import triton.language as tl


@triton.jit
def reverse_kernel(source, target, number, HAS_BARRIER: tl.constexpr, BLOCK: tl.constexpr):  # noqa: N803
    """Writes `source` to `target` from its end to its start, with a detour over `target`; wrong without a barrier.

    Both have `number` elements. If they are fewer than BLOCK, the kernel writes beyond them.
    """
    place = tl.arange(0, BLOCK)
    tl.store(target + place, tl.load(source + place, mask=place < number, other=0.0))
    if HAS_BARRIER:
        tl.debug_barrier()
    value = tl.load(target + (BLOCK - 1 - place))
    tl.debug_barrier()
    tl.store(target + place, value)
