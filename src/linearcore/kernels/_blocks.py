"""Block sizes for large inputs: rows in blocks that fit the cache, classes in chunks if one row is too large."""

from collections.abc import Iterator

from torch import Tensor

#: Elements per block. On a CPU 2 MiB of float32: the temporaries of a block stay in the last-level cache, and each call has
#: enough work for every core (measured with benchmarks/dense_loss.py). On a GPU blocks are larger, to save kernel launches.
CPU_BLOCK = 2**19
DEVICE_BLOCK = 2**25


def block_size(scores: Tensor) -> int:
    """Returns the maximum number of elements in a block of `scores`."""
    return CPU_BLOCK if scores.device.type == "cpu" else DEVICE_BLOCK


def slices(length: int, step: int) -> Iterator[slice]:
    """Yields slices of at most `step` that cover [0, length)."""
    step = max(1, step)
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def row_blocks(scores: Tensor, elements_per_row: int) -> Iterator[slice]:
    """Yields slices of the first dimension with about `block_size` elements each."""
    return slices(scores.shape[0], block_size(scores) // max(1, elements_per_row))
