"""Neighbours of a sequence: one tag changed, or several in a row."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from linearcore.proposals.sequences._base import SequenceProposal, check_count, num_sites
from linearcore.proposals.sequences._random_tags import other_tags, random_run
from linearcore.structures import Sites


@dataclass(frozen=True)
class Neighbours(SequenceProposal):
    """Samples the reference with one tag changed, or with several tags in a row changed, each to any other tag.

        D(y' | y) = 1 / ((J − w + 1) (|Y| − 1)^w)   for the y' that differ from y in w tags in a row and nowhere else

    with w = min(sites, J): in shorter sequences all tags change. Masked positions do not interrupt a row. The support
    contains only these neighbours, so the estimates are sums over neighbours and not over all sequences.

    Args:
        sites: number of tags that change, at least 1.

    Raises:
        TypeError: if `sites` is not an integer.
        ValueError: if it is less than 1.

    Example:
        >>> tags = torch.tensor([[0], [1], [1]])
        >>> sequences = torch.tensor([[[0], [1], [0]], [[1], [0], [1]], [[1], [1], [0]], [[0], [1], [1]]])
        >>> for changed in (1, 2):
        ...     print(Neighbours(changed).log_prob(sequences, tags, Sites.of(tags >= 0), 2).exp().flatten().tolist())
        [0.333333, 0.0, 0.0, 0.0]
        [0.0, 0.5, 0.0, 0.0]
    """

    sites: int = 1
    min_num_tags: ClassVar[int] = 2

    def __post_init__(self) -> None:
        check_count("sites", self.sites, 1, "1 changes one tag, 2 changes two neighbouring tags")

    def log_count(self, sites: Sites, num_tags: int) -> Tensor:
        """Returns the log of the number of neighbours (B,), float64, which are equally likely; 0 for an empty sequence.

        Raises:
            TypeError: if `num_tags` is not an integer.
            ValueError: if it is less than 2.
        """
        self._check_num_tags(num_tags)
        lengths = num_sites(sites)
        width = self._width(lengths)
        return (lengths - width + 1).double().log() + math.log(num_tags - 1) * width.double()

    def _sample(
        self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int, generator: torch.Generator | None
    ) -> Tensor:
        is_changed = random_run(self.sites, num_samples, sites, generator)
        return torch.where(is_changed, other_tags(tags, num_tags, num_samples, sites, generator), tags)

    def _log_prob(self, draws: Tensor, tags: Tensor, sites: Sites, num_tags: int) -> Tensor:
        differs = (draws != tags) & sites.mask
        previous_differs = differs.gather(1, sites.previous.clamp(min=0).expand_as(differs))
        num_pairs = (differs & previous_differs & ~sites.is_first).sum(1)
        width = self._width(num_sites(sites))
        # w changed tags are in one row if w − 1 pairs of neighbours have both tags changed.
        is_neighbour = (differs.sum(1) == width) & (num_pairs == width - 1)
        return (-self.log_count(sites, num_tags)).expand_as(is_neighbour).masked_fill(~is_neighbour, -math.inf)

    def _width(self, lengths: Tensor) -> Tensor:
        return lengths.clamp(max=self.sites)
