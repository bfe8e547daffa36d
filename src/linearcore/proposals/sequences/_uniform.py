"""Uniform tag sequences: every one as likely as every other."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore.proposals.sequences._base import SequenceProposal, num_sites
from linearcore.proposals.sequences._draws import any_tags
from linearcore.structures import Sites


@dataclass(frozen=True)
class UniformSequences(SequenceProposal):
    """Every site uniform over the tags, whatever the reference is.

        D(y') = |Y|^{−J}

    It reaches everything, and almost all of what it reaches is as wrong as can be: prefer a proposal that looks at the
    reference for sums whose weight sits near it.

    Example:
        >>> tags = torch.tensor([[0], [1]])
        >>> sites = Sites.of(tags >= 0)
        >>> draws = UniformSequences().sample(tags, sites, 4, num_samples=5)
        >>> draws.shape
        torch.Size([5, 2, 1])
        >>> UniformSequences().log_prob(draws, tags, sites, 4).exp()[0].item()
        0.0625
    """

    def _sample(
        self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int, generator: torch.Generator | None
    ) -> Tensor:
        return any_tags(num_tags, num_samples, sites, generator)

    def _log_prob(self, draws: Tensor, tags: Tensor, sites: Sites, num_tags: int) -> Tensor:
        return (-math.log(num_tags) * num_sites(sites).double()).repeat(len(draws), 1)
