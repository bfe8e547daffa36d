"""The step of exact decoding: max_i [α(i) + transitions[i, v]] for all v, densely or with a bound that skips most i."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

from linearcore._torch import is_traced
from linearcore.kernels._blocks import DEVICE_BLOCK, slices

#: Elements of a temporary on a CPU: 4 MiB of float32 are added and reduced faster than blocks that fit the second-level
#: cache, since each call has a price (measured with 200, 1000 and 4000 tags).
CPU_STEP = 2**20
#: How many of the best tags give the first guess, and up to which share of the tags a second look pays.
GUESSES = 16
WORTH_SKIPPING = 0.25
#: Steps after which scores that were flat are looked at again.
LONGEST_WAIT = 16
#: With fewer tags the dense step is faster than asking what could be skipped.
MANY_TAGS = 256


_IS_DENSE: ContextVar[bool] = ContextVar("is_dense", default=False)


@contextmanager
def dense_search() -> Iterator[None]:
    """Exact decoding in this thread skips nothing inside: for measuring what the bound saves."""
    token = _IS_DENSE.set(True)
    try:
        yield
    finally:
        _IS_DENSE.reset(token)


class MaxProduct:
    """α (B, |Y|) ↦ max_i [α(i) + transitions[i, v]] (B, |Y|). No argmax: tracing back asks for those few it needs.

    Dense: time O(B·|Y|²), with temporaries of a fixed size.

    With a bound, on CPUs: the best few tags give a guess g(v) that is too low if anything. A tag i can raise it somewhere
    only if α(i) + max_v transitions[i, v] > min_v g(v); all others are skipped, and the result is still exact. On the
    sharp scores of a trained model hardly any are left; on flat ones all are, and the step is dense.

    Args:
        transitions: (|Y|, |Y|).
    """

    def __init__(self, transitions: Tensor) -> None:
        self._transitions = transitions
        self._columns = transitions.t().contiguous()
        self._can_skip = (
            transitions.device.type == "cpu"
            and transitions.shape[0] >= MANY_TAGS
            and not is_traced()
            and not _IS_DENSE.get()
        )
        self._memory = transitions.new_empty(0)
        self._wait, self._next_wait = 0, 1
        self._most = transitions.amax(1) if self._can_skip else None

    def __call__(self, alpha: Tensor) -> Tensor:
        """(B, |Y|) from (B, |Y|)."""
        if self._most is not None and self._wait == 0:
            found = self._with_a_bound(alpha, self._most)
            if found is not None:
                self._next_wait = 1
                return found
            # Where scores are flat they are likely to stay so: the next try comes later and later.
            self._wait, self._next_wait = self._next_wait, min(2 * self._next_wait, LONGEST_WAIT)
        else:
            self._wait = max(0, self._wait - 1)
        return self._dense(alpha)

    @property
    def all_columns(self) -> Tensor:
        """(|Y|, |Y|): the transitions transposed, contiguous."""
        return self._columns

    def columns(self, tags: Tensor) -> Tensor:
        """(…, |Y|): transitions[:, v] for each v in `tags`."""
        return self._columns[tags]

    def _dense(self, alpha: Tensor) -> Tensor:
        # Compilers fuse the sum into the maximum, and a batch may be of any size; transforms know no `out=`.
        if is_traced():
            return (alpha.unsqueeze(1) + self._columns).amax(-1)
        batch, num_tags = alpha.shape
        block = CPU_STEP if alpha.device.type == "cpu" else DEVICE_BLOCK
        group = max(1, block // max(1, num_tags**2))
        result = torch.empty_like(alpha)
        for tags in slices(num_tags, block // max(1, group * num_tags)):
            for rows in slices(batch, group):
                size = (rows.stop - rows.start, tags.stop - tags.start, num_tags)
                sums = torch.add(alpha[rows].unsqueeze(1), self._columns[tags], out=self._scratch(size))
                torch.amax(sums, -1, out=result[rows, tags])
        return result

    def _scratch(self, size: tuple[int, ...]) -> Tensor:
        # One piece of memory for all steps: fresh megabytes would be handed out and taken back page by page.
        wanted = math.prod(size)
        if self._memory.numel() < wanted:
            self._memory = self._transitions.new_empty(wanted)
        return self._memory[:wanted].view(size)

    def _with_a_bound(self, alpha: Tensor, most: Tensor) -> Tensor | None:
        """The exact result, or None where too many tags would have to be looked at."""
        guess = self._from(*alpha.topk(GUESSES))
        can_raise = alpha + most > guess.amin(-1, keepdim=True)
        count = int(can_raise.sum(-1).max()) if alpha.shape[0] else 0
        if count > WORTH_SKIPPING * alpha.shape[1]:
            return None
        if count == 0:
            return guess
        # Those that cannot raise anything may come along: they make the rows equally long.
        return torch.maximum(guess, self._from(*alpha.masked_fill(~can_raise, -torch.inf).topk(count)))

    def _from(self, values: Tensor, tags: Tensor) -> Tensor:
        """(B, |Y|): the maximum over some tags (B, K) with scores `values` (B, K)."""
        result = values.new_empty(values.shape[0], self._transitions.shape[1])
        for row, (score, tag) in enumerate(zip(values, tags, strict=True)):
            torch.amax(self._transitions.index_select(0, tag).add_(score.unsqueeze(-1)), 0, out=result[row])
        return result
