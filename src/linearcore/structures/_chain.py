"""Linear chains: positions of the tags in a padded batch, and scores of tag sequences."""

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Chain(NamedTuple):
    """Scores of a linear chain that do not depend on the input, with torchcrf's conventions.

        h(x, y) = start[y_1] + Σ_j emissions[j, y_j] + Σ_{j>1} transitions[y_{j−1}, y_j] + end[y_L]

    −inf marks forbidden tags and transitions.

    Attributes:
        start: (|Y|,) scores of the first tag.
        transitions: (|Y|, |Y|), from row to column.
        end: (|Y|,) scores of the last tag.
    """

    start: Tensor
    transitions: Tensor
    end: Tensor

    def within(self, allowed: "Chain") -> "Chain":
        """Returns this chain with −inf where `allowed`, a chain of booleans, is False. Forbidden entries have gradient 0."""
        return Chain(*(part.masked_fill(~is_allowed, -math.inf) for part, is_allowed in zip(self, allowed, strict=True)))


class Sites(NamedTuple):
    """Positions of the tags in a batch of sequences, and their neighbours. Masked positions are skipped.

    Attributes:
        mask: (L, B) booleans: the position has a tag.
        previous: (L, B): time index of the previous neighbour, −1 if there is none.
        following: (L, B): time index of the next neighbour, L if there is none.
        is_full: no position is masked; allows faster code.
    """

    mask: Tensor
    previous: Tensor
    following: Tensor
    is_full: bool = False

    @classmethod
    def of(cls, mask: Tensor, *, is_full: bool = False) -> "Sites":
        """Creates sites from a mask (L, B); `is_full` promises that it is all True. Time O(L·B), no GPU synchronisation."""
        length, batch = mask.shape
        before = torch.arange(-1, length - 1, device=mask.device)
        if is_full or length == 0:
            previous, following = (times.unsqueeze(-1).expand(-1, batch) for times in (before, before + 2))
            return cls(mask, previous, following, is_full)
        # The next neighbours are the previous ones of the reversed sequence, so one scan finds both. It runs along rows of
        # a contiguous tensor, since a scan along columns is sequential on a GPU.
        masks = torch.stack([mask.t(), mask.t().flip(1)])
        # The entry that `roll` moves to the front gets index −1, which means no neighbour.
        previous, reversed_next = torch.where(masks.roll(1, -1), before, -1).cummax(-1).values.unbind()
        return cls(mask, previous.t(), (length - 1 - reversed_next.flip(1)).t())

    @property
    def is_first(self) -> Tensor:
        """(L, B) booleans: True at the first tag of each sequence."""
        return self.mask & (self.previous < 0)

    @property
    def is_last(self) -> Tensor:
        """(L, B) booleans: True at the last tag of each sequence."""
        return self.mask & (self.following >= self.mask.shape[0])

    def before(self, tags: Tensor) -> Tensor:
        """Returns the tag (L, B) of the previous neighbour; an arbitrary tag if there is none."""
        if self.is_full:
            return torch.cat([tags[:1], tags[:-1]])
        return tags.gather(0, self.previous.clamp(min=0))

    def after(self, tags: Tensor) -> Tensor:
        """Returns the tag (L, B) of the next neighbour; an arbitrary tag if there is none."""
        if self.is_full:
            return torch.cat([tags[1:], tags[-1:]])
        return tags.gather(0, self.following.clamp(max=max(0, self.mask.shape[0] - 1)))


def path_score(emissions: Tensor, chain: Chain, tags: Tensor, sites: Sites) -> Tensor:
    """Returns the score h(x, y) (B,) of each sequence, differentiable; 0 for an empty sequence.

    Args:
        emissions: (L, B, |Y|).
        chain: start, transition and end scores.
        tags: (L, B) in [0, |Y|), arbitrary where masked.
        sites: positions of the tags and their neighbours.

    Time and memory O(L·B); the gradient of the transitions is dense.
    """
    zero = emissions.new_zeros(())
    has_previous = sites.mask & ~sites.is_first
    tag_scores = emissions.gather(-1, tags.unsqueeze(-1)).squeeze(-1)
    total = torch.where(sites.mask, tag_scores, zero).sum(0)
    total = total + torch.where(has_previous, chain.transitions[sites.before(tags), tags], zero).sum(0)
    total = total + torch.where(sites.is_first, chain.start[tags], zero).sum(0)
    return total + torch.where(sites.is_last, chain.end[tags], zero).sum(0)


def sequence_scores(emissions: Tensor, chain: Chain, tags: Tensor, sites: Sites) -> Tensor:
    """Returns scores h(x, y') (K, B), differentiable: `path_score` for K sequences per example.

    Args:
        emissions: (L, B, |Y|).
        chain: start, transition and end scores.
        tags: (K, L, B) in [0, |Y|), arbitrary where masked.
        sites: positions of the tags and their neighbours.

    Time and memory O(K·L·B) forward; the gradients of emissions and transitions are dense.
    """
    zero = emissions.new_zeros(())
    # The sample axis comes last to avoid K copies of the emissions, here and in the backward pass.
    tag_scores = emissions.gather(-1, tags.permute(1, 2, 0)).permute(2, 0, 1)
    before = tags.gather(1, sites.previous.clamp(min=0).expand_as(tags))
    total = torch.where(sites.mask, tag_scores, zero)
    total = total + torch.where(sites.mask & ~sites.is_first, chain.transitions[before, tags], zero)
    total = total + torch.where(sites.is_first, chain.start[tags], zero)
    return (total + torch.where(sites.is_last, chain.end[tags], zero)).sum(1)
