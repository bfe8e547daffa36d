"""Positions of the tags in a batch of sequences, in the user's layout; kernels find the neighbours of a position."""

from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

#: Tag of masked positions, as in the heads.
IGNORED = tl.constexpr(-100)
#: Positions that a program searches at a time.
SEARCHED = tl.constexpr(128)


class Positions(NamedTuple):
    """Tags and mask of a batch of sequences, (L, B), or (B, L) if `is_batch_first`, with any strides.

    Attributes:
        tags: int64; positions with −100 are masked.
        mask: booleans, False at masked positions; or None.
    """

    tags: Tensor
    mask: Tensor | None
    is_batch_first: bool

    @property
    def length(self) -> int:
        return self.tags.shape[self.is_batch_first]

    @property
    def batch(self) -> int:
        return self.tags.shape[not self.is_batch_first]

    def strides_of(self, tensor: Tensor) -> tuple[int, int]:
        """Returns the strides of time and sequence."""
        first, second = tensor.stride()[:2]
        return (second, first) if self.is_batch_first else (first, second)

    @property
    def tensors(self) -> tuple[Tensor, Tensor]:
        """Tags and mask as arguments of a kernel."""
        return self.tags, self.tags if self.mask is None else self.mask

    @property
    def sizes(self) -> tuple[int, ...]:
        """Strides of tags and mask, length and batch as arguments of a kernel."""
        tags, mask = self.tensors
        return *self.strides_of(tags), *self.strides_of(mask), self.length, self.batch


@triton.jit
def position(row, length, batch, IS_BATCH_FIRST: tl.constexpr):  # noqa: N803
    """Returns time and sequence of a row."""
    if IS_BATCH_FIRST:
        t = row % length
        chain = row // length
    else:
        t = row // batch
        chain = row % batch
    return t, chain


@triton.jit
def unmasked_tags(tags, time_stride, mask, mask_stride, t, length, HAS_MASK: tl.constexpr):  # noqa: N803
    """Returns the tags at the times t, and whether these positions are unmasked."""
    tag = tl.load(tags + t.to(tl.int64) * time_stride, mask=t < length, other=0).to(tl.int64)
    is_on = (t < length) & (tag != IGNORED)
    if HAS_MASK:
        is_on = is_on & (tl.load(mask + t.to(tl.int64) * mask_stride, mask=t < length, other=0) != 0)
    return tag, is_on


@triton.jit
def find_neighbours(tags, time_stride, mask, mask_stride, t, length, num_tags, HAS_MASK: tl.constexpr):  # noqa: N803
    """Returns the tag at time t, −1 if masked; those of its neighbours, |Y| if there is none; and two faults.

    The faults are 1 if the sequence has a tag out of range, which is replaced by the nearest tag; and if its first position
    is masked though its tag is not the ignored one.
    """
    previous = tl.full((), -1, tl.int32)
    following = tl.zeros((), tl.int32) + length
    own = tl.full((), -1, tl.int32)
    is_invalid = tl.zeros((), tl.int32)
    is_bad_start = tl.zeros((), tl.int32)
    for first in range(0, length, SEARCHED):
        other = first + tl.arange(0, SEARCHED)
        tag, is_on = unmasked_tags(tags, time_stride, mask, mask_stride, other, length, HAS_MASK)
        previous = tl.maximum(previous, tl.max(tl.where(is_on & (other < t), other, -1), 0))
        following = tl.minimum(following, tl.min(tl.where(is_on & (other > t), other, length), 0))
        inside = tl.minimum(tl.maximum(tag, 0), num_tags - 1).to(tl.int32)
        own = tl.maximum(own, tl.max(tl.where(is_on & (other == t), inside, -1), 0))
        is_invalid |= tl.max((is_on & ((tag < 0) | (tag >= num_tags))).to(tl.int32), 0)
        is_bad_start |= tl.max(((other == 0) & (is_on == 0) & (tag != IGNORED)).to(tl.int32), 0)
    old = tl.full((), 0, tl.int32) + num_tags
    new = tl.full((), 0, tl.int32) + num_tags
    if previous >= 0:
        tag = tl.load(tags + previous.to(tl.int64) * time_stride)
        old = tl.minimum(tl.maximum(tag, 0), num_tags - 1).to(tl.int32)
    if following < length:
        tag = tl.load(tags + following.to(tl.int64) * time_stride)
        new = tl.minimum(tl.maximum(tag, 0), num_tags - 1).to(tl.int32)
    return own, old, new, is_invalid, is_bad_start
