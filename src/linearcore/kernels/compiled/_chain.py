"""A batch of linear chains as an argument of the compiled kernels (`chain.h`)."""

import struct
from collections.abc import Sequence

import torch
from torch import Tensor

from linearcore._torch import is_plain
from linearcore.kernels._fused import fused_kernels_for
from linearcore.kernels.compiled._library import entry, has_compiled_kernels
from linearcore.structures import Chain

_DTYPES = (torch.float32, torch.float64)
_CHAIN = struct.Struct("=6Q11q")


class NotCompiledError(Exception):
    """The kernel cannot compute the result for these scores; the caller uses another backend."""


def call_kernel(name: str, packed: bytes) -> None:
    """Calls a function of the library with packed arguments; raises NotCompiledError if it returns a status other than 0."""
    function = entry(name)
    if function is None or function(packed) != 0:
        raise NotCompiledError


def can_compile_chain(emissions: Tensor, chain: Sequence[Tensor], max_tags: int) -> bool:
    """Whether the kernels support emissions (L, B, |Y|) with at most `max_tags` tags and these scores.

    False where Triton's interpreter is active, which is for tests of the fused kernels.
    """
    dtype = emissions.dtype
    if dtype not in _DTYPES or emissions.shape[-1] > max_tags or emissions.numel() == 0 or not is_plain(emissions):
        return False
    is_supported = all(part.dtype == dtype and is_plain(part) for part in chain)
    return is_supported and fused_kernels_for(emissions) is None and has_compiled_kernels()


class ChainArguments:
    """The tensors of a chain in a layout that the kernels support, and the packed struct with their addresses.

    Args:
        emissions: (L, B, |Y|), for which `can_compile_chain` holds.
        chain: start, transition and end scores.
        mask: (L, B) booleans; None if no position is masked.
        tags: (L, B) int64, or None.
    """

    def __init__(self, emissions: Tensor, chain: Chain, mask: Tensor | None, tags: Tensor | None) -> None:
        self.emissions = emissions if emissions.stride(2) == 1 else emissions.contiguous()
        start, transitions, end = (part.contiguous() for part in chain)
        # The struct has addresses only, so the tensors have to live as long as it.
        self._chain, self.mask, self.tags = (start, transitions, end), mask, tags
        self.packed = _CHAIN.pack(
            self.emissions.data_ptr(),
            start.data_ptr(),
            transitions.data_ptr(),
            end.data_ptr(),
            0 if mask is None else mask.data_ptr(),
            0 if tags is None else tags.data_ptr(),
            *emissions.shape,
            emissions.dtype == torch.float64,
            *self.emissions.stride()[:2],
            *((0, 0) if mask is None else mask.stride()),
            *((0, 0) if tags is None else tags.stride()),
            torch.get_num_threads(),
        )
