"""How large inputs are cut: rows in blocks that stay in the cache, classes in chunks where a row alone is too much."""

from collections.abc import Iterator

from torch import Tensor

#: Elements in a block. On a CPU, 2 MiB of float32: the handful of temporaries a block needs stay in the last-level cache
#: and one call still has enough work for every core (measured with benchmarks/dense_loss.py). An accelerator has launches
#: to save instead.
CPU_BLOCK = 2**19
DEVICE_BLOCK = 2**25


def block_size(scores: Tensor) -> int:
    """How many elements a block of `scores` may have."""
    return CPU_BLOCK if scores.device.type == "cpu" else DEVICE_BLOCK


def slices(length: int, step: int) -> Iterator[slice]:
    """[0, length) in slices of at most `step`."""
    step = max(1, step)
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def row_blocks(scores: Tensor, elements_per_row: int) -> Iterator[slice]:
    """Slices of the first dimension whose blocks hold about `block_size` elements."""
    return slices(scores.shape[0], block_size(scores) // max(1, elements_per_row))
