"""Exact samplers proportional to the Hamming cost and to 1 − Hamming."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from linearcore.proposals.sequences._base import SequenceProposal, num_sites
from linearcore.proposals.sequences._random_tags import other_tags, random_run, random_tags
from linearcore.structures import Sites


@dataclass(frozen=True)
class SimilarSequences(SequenceProposal):
    """Samples proportional to the similarity 1 − Hamming: one random position copies the reference, the others are uniform.

        D(y' | y) = (number of tags that agree / J) / |Y|^{J−1}

    The reference has the highest probability; sequences without any common tag have probability 0. Under this proposal the
    outer sum of the paper's structured loss has constant weights Z(y) = |Y|^{J−1}.

    Example:
        >>> tags = torch.tensor([[0], [1]])
        >>> sequences = torch.tensor([[[0], [1]], [[0], [0]], [[1], [0]]])
        >>> SimilarSequences().log_prob(sequences, tags, Sites.of(tags >= 0), 2).exp().flatten().tolist()
        [0.5, 0.25, 0.0]
    """

    def _sample(
        self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int, generator: torch.Generator | None
    ) -> Tensor:
        is_copied = random_run(1, num_samples, sites, generator)
        return torch.where(is_copied, tags, random_tags(num_tags, num_samples, sites, generator))

    def _log_prob(self, draws: Tensor, tags: Tensor, sites: Sites, num_tags: int) -> Tensor:
        agrees = (draws == tags) & sites.mask
        return _log_fraction(agrees, sites) - _log_num_other_tags(sites, num_tags)


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
        return _log_fraction(differs, sites) - math.log(num_tags - 1) - _log_num_other_tags(sites, num_tags)


def _log_fraction(is_selected: Tensor, sites: Sites) -> Tensor:
    """Returns the log of the fraction (K, B), float64, of unmasked positions where `is_selected` (K, L, B) is True."""
    return (is_selected.sum(1) / num_sites(sites).double()).log()


def _log_num_other_tags(sites: Sites, num_tags: int) -> Tensor:
    """Returns log |Y|^{J−1} (B,), float64: the log of the number of ways to fill the other positions."""
    return math.log(num_tags) * (num_sites(sites) - 1).double()
