"""The max-product step of Viterbi: max_i [α(i) + transitions[i, v]] for all v, dense or with pruning of i."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from linearcore._torch import is_traced
from linearcore.kernels._blocks import DEVICE_BLOCK, slices

#: Elements of a temporary on a CPU. 4 MiB of float32 is faster than blocks that fit the second-level cache, because of the
#: overhead per call (measured with 200, 1000 and 4000 tags).
CPU_STEP = 2**20
#: Elements of a step that is so small that allocating its temporary is faster than reusing one.
SMALL_STEP = 2**14
#: Number of best tags that give the lower bound, and the largest fraction of remaining tags for which pruning pays off.
NUM_BOUND_TAGS = 16
MAX_REMAINING_FRACTION = 0.25
#: Largest number of dense steps before pruning is tried again.
MAX_DENSE_STEPS = 16
#: With fewer tags the dense step is faster than pruning.
MIN_TAGS_TO_PRUNE = 256


_IS_DENSE: ContextVar[bool] = ContextVar("is_dense", default=False)


@contextmanager
def dense_search() -> Iterator[None]:
    """Disables pruning in exact decoding in this thread, to measure how much time it saves."""
    token = _IS_DENSE.set(True)
    try:
        yield
    finally:
        _IS_DENSE.reset(token)


class MaxProduct:
    """α (B, |Y|) ↦ max_i [α(i) + transitions[i, v]] (B, |Y|). Returns no argmax; tracing back recomputes it where needed.

    Dense: time O(B·|Y|²), with temporaries of a fixed size.

    With pruning, on CPUs: the best few tags give a lower bound g(v) of the result. A tag i can exceed it for some v only if
    α(i) + max_v transitions[i, v] > min_v g(v). All other tags are skipped, and the result is still exact. With the peaked
    scores of a trained model few tags remain; with nearly uniform scores most do, and the step is dense.

    Args:
        transitions: (|Y|, |Y|).
    """

    def __init__(self, transitions: Tensor) -> None:
        self._transitions = transitions
        self._columns = transitions.t().contiguous()
        self._is_traced = is_traced()
        self._can_prune = (
            transitions.device.type == "cpu"
            and transitions.shape[0] >= MIN_TAGS_TO_PRUNE
            and not self._is_traced
            and not _IS_DENSE.get()
        )
        self._buffer = transitions.new_empty(0)
        self._delay, self._next_delay = 0, 1
        self._row_max = transitions.amax(1) if self._can_prune else None

    def __call__(self, alpha: Tensor) -> Tensor:
        """Returns the maxima (B, |Y|)."""
        if self._row_max is not None and self._delay == 0:
            result = self._max_with_pruning(alpha, self._row_max)
            if result is not None:
                self._next_delay = 1
                return result
            # Scores that are nearly uniform usually stay so: double the delay before the next attempt.
            self._delay, self._next_delay = self._next_delay, min(2 * self._next_delay, MAX_DENSE_STEPS)
        else:
            self._delay = max(0, self._delay - 1)
        return self._dense(alpha)

    @property
    def all_columns(self) -> Tensor:
        """Transposed transitions (|Y|, |Y|), contiguous."""
        return self._columns

    def columns(self, tags: Tensor) -> Tensor:
        """Returns transitions[:, v] (B, |Y|) for each v in `tags` (B,)."""
        return self._columns.index_select(0, tags)

    def _dense(self, alpha: Tensor) -> Tensor:
        batch, num_tags = alpha.shape
        # Compilers fuse the sum into the maximum and allow dynamic batch sizes; torch.func does not support `out=`.
        if self._is_traced or batch * num_tags**2 <= SMALL_STEP:
            return (alpha.unsqueeze(1) + self._columns).amax(-1)
        block = CPU_STEP if alpha.device.type == "cpu" else DEVICE_BLOCK
        group = max(1, block // max(1, num_tags**2))
        result = torch.empty_like(alpha)
        for tags in slices(num_tags, block // max(1, group * num_tags)):
            for rows in slices(batch, group):
                size = (rows.stop - rows.start, tags.stop - tags.start, num_tags)
                sums = torch.add(alpha[rows].unsqueeze(1), self._columns[tags], out=self._temporary(size))
                torch.amax(sums, -1, out=result[rows, tags])
        return result

    def _temporary(self, size: tuple[int, ...]) -> Tensor:
        # One buffer for all steps, to avoid repeated allocation and page faults.
        num_elements = math.prod(size)
        if self._buffer.numel() < num_elements:
            self._buffer = self._transitions.new_empty(num_elements)
        return self._buffer[:num_elements].view(size)

    def _max_with_pruning(self, alpha: Tensor, row_max: Tensor) -> Tensor | None:
        """Returns the exact result, or None if too many tags remain."""
        bound = self._max_over(*alpha.topk(NUM_BOUND_TAGS))
        can_exceed = alpha + row_max > bound.amin(-1, keepdim=True)
        count = int(can_exceed.sum(-1).max()) if alpha.shape[0] else 0
        if count > MAX_REMAINING_FRACTION * alpha.shape[1]:
            return None
        if count == 0:
            return bound
        # Rows with fewer tags are padded with tags that cannot exceed the bound.
        return torch.maximum(bound, self._max_over(*alpha.masked_fill(~can_exceed, -torch.inf).topk(count)))

    def _max_over(self, values: Tensor, tags: Tensor) -> Tensor:
        """Returns the maximum (B, |Y|) over the tags (B, K) with scores `values` (B, K)."""
        result = values.new_empty(values.shape[0], self._transitions.shape[1])
        for row, (score, tag) in enumerate(zip(values, tags, strict=True)):
            torch.amax(self._transitions.index_select(0, tag).add_(score.unsqueeze(-1)), 0, out=result[row])
        return result
