"""Viterbi decoding with up to 128 tags in one launch: scores, back-pointers and the trace back."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels.fused._device import on_tensor_device, with_unit_stride
from linearcore.kernels.fused._launch import Launcher, block_size


@on_tensor_device
def best_sequences(
    emissions: Tensor, chain: tuple[Tensor, Tensor, Tensor], mask: Tensor, previous: Tensor, no_tag: int
) -> tuple[Tensor, Tensor]:
    """Returns the tags (L, B) of the best sequences, `no_tag` where masked or if there is none, and scores (B,).

    Args:
        emissions: (L, B, |Y|) float32, arbitrary where masked.
        chain: start, transitions, end.
        mask, previous: (L, B), as in `Sites`.
        no_tag: tag of masked positions.
    """
    emissions, parts = with_unit_stride(emissions), tuple(part.contiguous() for part in chain)
    mask, previous = mask.contiguous(), previous.contiguous()
    length, batch, num_tags = emissions.shape
    tags = torch.empty((length, batch), dtype=torch.int64, device=emissions.device)
    scores = emissions.new_empty(batch)
    pointers = torch.empty((length, batch, num_tags), dtype=torch.uint8, device=emissions.device)
    block = block_size(num_tags)
    _launch_best_sequences(
        (batch, 1, 1), (emissions, *parts, mask, previous, pointers, tags, scores),
        (*emissions.stride()[:2], no_tag, length, batch, num_tags),
        given=6, BLOCK=block, num_warps={16: 1, 32: 2, 64: 4}.get(block, 8),
    )  # fmt: skip
    return tags, scores


@triton.jit
def _larger(value, index, other_value, other_index):
    """The larger value, NaN if one is NaN; of equal ones the first."""
    is_first = (value > other_value) | (value != value) | ((value == other_value) & (index < other_index))
    return tl.where(is_first, value, other_value), tl.where(is_first, index, other_index)


@triton.jit(do_not_specialize=["no_tag", "length", "batch"])
def _best_sequences(
    emissions, start, transitions, end, mask, previous, pointers, tags, scores, time_stride, chain_stride, no_tag, length,
    batch, num_tags, BLOCK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    chain = tl.program_id(0).to(tl.int64)
    tag = tl.arange(0, BLOCK)
    is_tag = tag < num_tags
    at_pair = tag[:, None] * num_tags + tag[None, :]
    is_pair = is_tag[:, None] & is_tag[None, :]
    matrix = tl.load(transitions + at_pair, mask=is_pair, other=float("-inf"))
    old_tags = tl.broadcast_to(tag[:, None], (BLOCK, BLOCK))
    first = tl.load(start + tag, mask=is_tag, other=float("-inf"))
    base = emissions + chain * chain_stride
    row = tl.load(base + tag, mask=is_tag, other=float("-inf"))
    state = tl.full((BLOCK,), float("-inf"), tl.float32)
    has_started = chain < 0
    for t in range(length):
        site = tl.full((), 0, tl.int64) + t * batch + chain
        is_on = tl.load(mask + site) != 0
        next_t = tl.full((), 0, tl.int64) + tl.minimum(t + 1, length - 1)
        # Loaded one step ahead: a step takes about as long as a load.
        next_row = tl.load(base + next_t * time_stride + tag, mask=is_tag, other=float("-inf"))
        best, pointer = tl.reduce((state[:, None] + matrix, old_tags), 0, _larger)
        # Of a state with NaN the columns beyond the last tag are NaN as well, and one of them could be taken for a tag.
        new_state = tl.where(is_tag, tl.where(has_started, best, first) + row, float("-inf"))
        state = tl.where(is_on, new_state, state)
        has_started = has_started | is_on
        tl.store(pointers + site * num_tags + tag, pointer.to(tl.uint8), mask=is_tag)
        row = next_row
    last = tl.load(end + tag, mask=is_tag, other=float("-inf"))
    score, own = tl.reduce((state + last, tag), 0, _larger)
    score = tl.where(has_started, score, 0.0)
    tl.store(scores + chain, score)
    # What other threads of this program have stored is read.
    tl.debug_barrier()
    has_path = score > float("-inf")
    for steps_back in range(length):
        site = tl.full((), 0, tl.int64) + (length - 1 - steps_back) * batch + chain
        is_on = tl.load(mask + site) != 0
        tl.store(tags + site, tl.where(is_on & has_path, own, no_tag).to(tl.int64))
        pointer = tl.load(pointers + site * num_tags + own).to(tl.int32)
        own = tl.where(is_on & (tl.load(previous + site) >= 0), pointer, own)


_launch_best_sequences = Launcher(_best_sequences)
