"""A linear chain: where its tags sit in a padded batch, and what it scores."""

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Chain(NamedTuple):
    """The part of a chain's scores that does not depend on the input, with torchcrf's meaning of every entry.

        h(x, y) = start[y_1] + Σ_j emissions[j, y_j] + Σ_{j>1} transitions[y_{j−1}, y_j] + end[y_L]

    A score of −inf forbids.

    Attributes:
        start: (|Y|,) for the first tag.
        transitions: (|Y|, |Y|), from row to column.
        end: (|Y|,) for the last tag.
    """

    start: Tensor
    transitions: Tensor
    end: Tensor

    def within(self, allowed: "Chain") -> "Chain":
        """This chain with −inf wherever `allowed`, a chain of booleans, is False. What is forbidden has gradient 0."""
        return Chain(*(part.masked_fill(~keep, -math.inf) for part, keep in zip(self, allowed, strict=True)))


class Sites(NamedTuple):
    """Where the tags of a batch of chains sit, and who is whose neighbour. Positions that are masked out are skipped.

    Attributes:
        mask: (L, B) booleans: there is a tag here.
        previous: (L, B): the time of the neighbour before, −1 where there is none.
        following: (L, B): the time of the neighbour after, L where there is none.
        is_full: every position is known to have a tag, which saves work.
    """

    mask: Tensor
    previous: Tensor
    following: Tensor
    is_full: bool = False

    @classmethod
    def of(cls, mask: Tensor, *, is_full: bool = False) -> "Sites":
        """The sites of a mask (L, B), all on if it `is_full`. Time O(L·B); reads nothing back from a device."""
        length, batch = mask.shape
        before = torch.arange(-1, length - 1, device=mask.device)
        if is_full or length == 0:
            previous, following = (times.unsqueeze(-1).expand(-1, batch) for times in (before, before + 2))
            return cls(mask, previous, following, is_full)
        # The neighbours after are those before in the chain turned round, so that one scan finds both. It goes along the
        # rows of a contiguous tensor: along columns an accelerator takes one step after another.
        shown = torch.stack([mask.t(), mask.t().flip(1)])
        # What `roll` puts in front is no neighbour; it would be at −1, which says so.
        previous, turned = torch.where(shown.roll(1, -1), before, -1).cummax(-1).values.unbind()
        return cls(mask, previous.t(), (length - 1 - turned.flip(1)).t())

    @property
    def is_first(self) -> Tensor:
        """(L, B) booleans: the first tag of its chain."""
        return self.mask & (self.previous < 0)

    @property
    def is_last(self) -> Tensor:
        """(L, B) booleans: the last tag of its chain."""
        return self.mask & (self.following >= self.mask.shape[0])

    def before(self, tags: Tensor) -> Tensor:
        """(L, B): the tag of the neighbour before; any tag where there is none."""
        if self.is_full:
            return torch.cat([tags[:1], tags[:-1]])
        return tags.gather(0, self.previous.clamp(min=0))

    def after(self, tags: Tensor) -> Tensor:
        """(L, B): the tag of the neighbour after; any tag where there is none."""
        if self.is_full:
            return torch.cat([tags[1:], tags[-1:]])
        return tags.gather(0, self.following.clamp(max=max(0, self.mask.shape[0] - 1)))


def path_score(emissions: Tensor, chain: Chain, tags: Tensor, sites: Sites) -> Tensor:
    """(B,): h(x, y), differentiable. A chain without tags scores 0.

    Args:
        emissions: (L, B, |Y|).
        chain: the chain's own scores.
        tags: (L, B) in [0, |Y|), any tag where masked.
        sites: where they sit.

    Time and memory O(L·B); the gradient of the transitions is dense.
    """
    nothing = emissions.new_zeros(())
    linked = sites.mask & ~sites.is_first
    own = emissions.gather(-1, tags.unsqueeze(-1)).squeeze(-1)
    total = torch.where(sites.mask, own, nothing).sum(0)
    total = total + torch.where(linked, chain.transitions[sites.before(tags), tags], nothing).sum(0)
    total = total + torch.where(sites.is_first, chain.start[tags], nothing).sum(0)
    return total + torch.where(sites.is_last, chain.end[tags], nothing).sum(0)
