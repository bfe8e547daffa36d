"""Exact sampler proportional to the Hamming cost."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from linearcore.proposals.sequences._base import SequenceProposal, num_sites
from linearcore.proposals.sequences._random_tags import other_tags, random_run, random_tags
from linearcore.structures import Sites


@dataclass(frozen=True)
class CostlySequences(SequenceProposal):
    """Samples proportional to the Hamming cost: one random position gets a random wrong tag, the others are uniform.

        D(y' | y) = (number of tags that differ / J) / ((|Y| − 1) |Y|^{J−1})

    The reference has probability 0. Use it for sums weighted by the cost, such as the centered structured form. Do not use
    it for sums weighted by similarity, where the reference has the largest weight (Algorithm 1 of the paper does so).

    Example:
        >>> tags = torch.tensor([[0], [1]])
        >>> sequences = torch.tensor([[[0], [1]], [[0], [0]], [[1], [0]]])
        >>> CostlySequences().log_prob(sequences, tags, Sites.of(tags >= 0), 2).exp().flatten().tolist()
        [0.0, 0.25, 0.5]
    """

    min_num_tags: ClassVar[int] = 2

    def _sample(
        self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int, generator: torch.Generator | None
    ) -> Tensor:
        is_wrong = random_run(1, num_samples, sites, generator)
        wrong_tags = other_tags(tags, num_tags, num_samples, sites, generator)
        return torch.where(is_wrong, wrong_tags, random_tags(num_tags, num_samples, sites, generator))

    def _log_prob(self, draws: Tensor, tags: Tensor, sites: Sites, num_tags: int) -> Tensor:
        differs = (draws != tags) & sites.mask
        lengths = num_sites(sites).double()
        log_num_others = math.log(num_tags - 1) + math.log(num_tags) * (lengths - 1)
        return (differs.sum(1) / lengths).log() - log_num_others
