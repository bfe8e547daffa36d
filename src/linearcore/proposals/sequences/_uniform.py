"""Uniform distribution over tag sequences."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore.proposals.sequences._base import SequenceProposal, num_sites
from linearcore.proposals.sequences._random_tags import random_tags
from linearcore.structures import Sites


@dataclass(frozen=True)
class UniformSequences(SequenceProposal):
    """Uniform over all tag sequences, independent of the reference.

        D(y') = |Y|^{−J}

    It covers all sequences, but almost none of its samples is close to the reference. For sums whose largest weights are
    near the reference, use a proposal that depends on it.

    Example:
        >>> tags = torch.tensor([[0], [1]])
        >>> sites = Sites.of(tags >= 0)
        >>> draws = UniformSequences().sample(tags, sites, 4, num_samples=5)
        >>> draws.shape
        torch.Size([5, 2, 1])
        >>> UniformSequences().log_prob(draws, tags, sites, 4).exp()[0].item()
        0.0625
    """

    @property
    def has_full_support(self) -> bool:
        return True

    def _sample(
        self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int, generator: torch.Generator | None
    ) -> Tensor:
        return random_tags(num_tags, num_samples, sites, generator)

    def _log_prob(self, draws: Tensor, tags: Tensor, sites: Sites, num_tags: int) -> Tensor:
        return (-math.log(num_tags) * num_sites(sites).double()).repeat(len(draws), 1)
