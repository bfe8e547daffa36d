"""Neighbours of a sequence: one site changed, or a few in a row."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.proposals.sequences._base import SequenceProposal, num_sites
from linearcore.proposals.sequences._draws import other_tags, row_of_sites
from linearcore.structures import Sites


@dataclass(frozen=True)
class Neighbours(SequenceProposal):
    """The reference with one site changed, or with several sites in a row all changed, each to any other tag.

        D(y' | y) = 1 / ((J − w + 1) (|Y| − 1)^w)   for the y' that differ from y at w sites in a row and nowhere else

    where w = min(sites, J): a chain with fewer sites changes all that it has. Sites in a row are neighbours in the chain,
    with what is masked out skipped. Draws cover the neighbours only, so that what they estimate is a sum over the
    neighbours and not one over all sequences.

    Args:
        sites: how many sites change, at least 1.

    Raises:
        TypeError: if `sites` is no integer.
        ValueError: if it is less than 1.

    Example:
        >>> tags = torch.tensor([[0], [1], [1]])
        >>> every = torch.tensor([[[0], [1], [0]], [[1], [0], [1]], [[1], [1], [0]], [[0], [1], [1]]])
        >>> for changed in (1, 2):
        ...     print(Neighbours(changed).log_prob(every, tags, Sites.of(tags >= 0), 2).exp().flatten().tolist())
        [0.333333, 0.0, 0.0, 0.0]
        [0.0, 0.5, 0.0, 0.0]
    """

    sites: int = 1
    fewest_tags: ClassVar[int] = 2

    def __post_init__(self) -> None:
        advice = "1 changes one tag, 2 changes two neighbouring ones"
        if isinstance(self.sites, bool) or not isinstance(self.sites, int):
            raise TypeError(complaint("sites", "be an integer", repr(self.sites), advice))
        if self.sites < 1:
            raise ValueError(complaint("sites", "be at least 1", self.sites, advice))

    def log_count(self, sites: Sites, num_tags: int) -> Tensor:
        """(B,), float64: the log of the number of neighbours of every chain, all equally likely; 0 for one without tags.

        Raises:
            TypeError: if `num_tags` is no integer.
            ValueError: if it is less than 2.
        """
        self._check_num_tags(num_tags)
        count = num_sites(sites)
        width = self._width(count)
        return (count - width + 1).double().log() + math.log(num_tags - 1) * width.double()

    def _sample(
        self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int, generator: torch.Generator | None
    ) -> Tensor:
        changed = row_of_sites(self.sites, num_samples, sites, generator)
        return torch.where(changed, other_tags(tags, num_tags, num_samples, sites, generator), tags)

    def _log_prob(self, draws: Tensor, tags: Tensor, sites: Sites, num_tags: int) -> Tensor:
        differ = (draws != tags) & sites.mask
        before = differ.gather(1, sites.previous.clamp(min=0).expand_as(differ))
        in_a_row = (differ & before & ~sites.is_first).sum(1)
        width = self._width(num_sites(sites))
        # w changed sites with w − 1 changed pairs of neighbours lie in one row.
        is_neighbour = (differ.sum(1) == width) & (in_a_row == width - 1)
        return (-self.log_count(sites, num_tags)).expand_as(is_neighbour).masked_fill(~is_neighbour, -math.inf)

    def _width(self, count: Tensor) -> Tensor:
        return count.clamp(max=self.sites)
