"""Viterbi and k-best decoding (`search.c`)."""

import struct

import torch
from torch import Tensor

from linearcore.kernels.compiled._chain import ChainArguments, NotCompiledError, call_kernel, can_compile_chain
from linearcore.structures import Chain

#: With more tags the search with pruning is faster if the scores are peaked, as those of a trained model are.
MAX_TAGS = 255
#: Above this k, sorting is faster than insertion.
MAX_K = 64
_CALL = struct.Struct("=q7Q")
_UNUSED = (0,) * 5


def compiled_search(
    emissions: Tensor, chain: Chain, mask: Tensor | None, k: int | None = None
) -> tuple[Tensor, Tensor] | None:
    """Returns the tags (L, B) of the best sequences, −100 where masked or if there is none, and their scores (B,).

    With `k` the tags are (k, L, B) and the scores (k, B). Scores, and without ties tags, are equal to those of the other
    implementations. None if the kernels do not support the scores: more than 255 tags or k above 64, not on a CPU, in a
    transform, and if a score or a sum of scores is +inf or NaN.

    Args:
        emissions: (L, B, |Y|).
        chain: start, transition and end scores; −inf marks forbidden entries.
        mask: (L, B) booleans; None if no position is masked.
        k: number of sequences; None for the best one.

    Time O(L·B·|Y|²), with k O(L·B·|Y|·(|Y| + k²)). Memory L×|Y| for each thread, times k.
    """
    if (k is not None and k > MAX_K) or not can_compile_chain(emissions, chain, MAX_TAGS):
        return None
    length, batch = emissions.shape[:2]
    tags = emissions.new_empty((length, batch) if k is None else (k, length, batch), dtype=torch.int64)
    scores = emissions.new_empty((batch,) if k is None else (k, batch))
    arguments = ChainArguments(emissions, chain, mask, None)
    try:
        call_kernel(
            "lc_search", arguments.packed + _CALL.pack(0 if k is None else k, tags.data_ptr(), scores.data_ptr(), *_UNUSED)
        )
    except NotCompiledError:
        return None
    return tags, scores
