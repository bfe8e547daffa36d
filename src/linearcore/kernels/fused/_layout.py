"""Positions of a batch of sequences: tags, masks and neighbours in one launch."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from linearcore.kernels.fused._device import on_tensor_device
from linearcore.kernels.fused._launch import Launcher
from linearcore.kernels.fused._positions import IGNORED, SEARCHED, unmasked_tags

#: Positions that a program processes at a time.
BLOCK = 64


class Layout(NamedTuple):
    """Positions of a batch of sequences (L, B).

    Attributes:
        tags: the tags, 0 where masked; the nearest tag where out of range.
        previous, following: time indices of the neighbours, as in `Sites`.
        mask: the position has a tag.
        facts: (3, B) booleans: the sequence has a masked position; its first position is masked though its tag is not the
            ignored one; it has a tag out of range.
    """

    tags: Tensor
    previous: Tensor
    following: Tensor
    mask: Tensor
    facts: Tensor


@on_tensor_device
def chain_layout(tags: Tensor, mask: Tensor | None, num_tags: int) -> Layout:
    """Returns the positions of sequences with these tags (L, B) and this mask (L, B), booleans; None masks no position.

    Positions with the tag −100 are masked, too.
    """
    length, batch = tags.shape
    numbers = torch.empty((3, length, batch), dtype=torch.int64, device=tags.device)
    unmasked = torch.empty((length, batch), dtype=torch.bool, device=tags.device)
    facts = torch.empty((3, batch), dtype=torch.bool, device=tags.device)
    if tags.numel() == 0:
        facts.zero_()
    else:
        given = tags if mask is None else mask
        _launch_layout(
            (batch, -(-length // BLOCK), 1), (tags, given, numbers, unmasked, facts),
            (*tags.stride(), *given.stride(), length, batch, num_tags), given=2, HAS_MASK=mask is not None,
            BLOCK=BLOCK, num_warps=4,
        )  # fmt: skip
    return Layout(numbers[0], numbers[1], numbers[2], unmasked, facts)


@triton.jit(do_not_specialize=["length", "batch", "num_tags"])
def _layout(
    tags, mask, numbers, unmasked, facts, time_stride, chain_stride, mask_time_stride, mask_chain_stride, length, batch,
    num_tags, HAS_MASK: tl.constexpr, BLOCK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    chain = tl.program_id(0).to(tl.int64)
    tags += chain * chain_stride
    mask += chain * mask_chain_stride
    t = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    previous = tl.full((BLOCK,), -1, tl.int32)
    following = tl.zeros((BLOCK,), tl.int32) + length
    has_masked = tl.zeros((SEARCHED,), tl.int32)
    is_invalid = tl.zeros((SEARCHED,), tl.int32)
    is_bad_start = tl.zeros((SEARCHED,), tl.int32)
    for first in range(0, length, SEARCHED):
        other = first + tl.arange(0, SEARCHED)
        tag, is_on = unmasked_tags(tags, time_stride, mask, mask_time_stride, other, length, HAS_MASK)
        is_before = is_on[None, :] & (other[None, :] < t[:, None])
        is_after = is_on[None, :] & (other[None, :] > t[:, None])
        previous = tl.maximum(previous, tl.max(tl.where(is_before, other[None, :], -1), 1))
        following = tl.minimum(following, tl.min(tl.where(is_after, other[None, :], length), 1))
        has_masked |= ((other < length) & (is_on == 0)).to(tl.int32)
        is_bad_start |= ((other == 0) & (is_on == 0) & (tag != IGNORED)).to(tl.int32)
        is_invalid |= (is_on & ((tag < 0) | (tag >= num_tags))).to(tl.int32)
    tag, is_on = unmasked_tags(tags, time_stride, mask, mask_time_stride, t, length, HAS_MASK)
    site = t.to(tl.int64) * batch + chain
    size = tl.full((), 0, tl.int64) + length * batch
    tl.store(numbers + site, tl.where(is_on, tl.minimum(tl.maximum(tag, 0), num_tags - 1), 0), mask=t < length)
    tl.store(numbers + size + site, previous.to(tl.int64), mask=t < length)
    tl.store(numbers + 2 * size + site, following.to(tl.int64), mask=t < length)
    tl.store(unmasked + site, is_on, mask=t < length)
    if tl.program_id(1) == 0:
        tl.store(facts + chain, tl.max(has_masked, 0) != 0)
        tl.store(facts + batch + chain, tl.max(is_bad_start, 0) != 0)
        tl.store(facts + 2 * batch + chain, tl.max(is_invalid, 0) != 0)


_launch_layout = Launcher(_layout)
