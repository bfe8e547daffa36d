"""Exact samplers for the Hamming cost and for the similarity that it leaves."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from linearcore.proposals.sequences._base import SequenceProposal, num_sites
from linearcore.proposals.sequences._draws import any_tags, other_tags, row_of_sites
from linearcore.structures import Sites


@dataclass(frozen=True)
class SimilarSequences(SequenceProposal):
    """Draws in proportion to the similarity 1 − Hamming: one site, any, copies the reference, and the rest is uniform.

        D(y' | y) = (number of sites that agree / J) / |Y|^{J−1}

    The reference is the likeliest draw, a sequence that agrees nowhere is never drawn. It is the law under which the outer
    sum of the paper's structured loss has constant weights Z(y) = |Y|^{J−1}.

    Example:
        >>> tags = torch.tensor([[0], [1]])
        >>> every = torch.tensor([[[0], [1]], [[0], [0]], [[1], [0]]])
        >>> SimilarSequences().log_prob(every, tags, Sites.of(tags >= 0), 2).exp().flatten().tolist()
        [0.5, 0.25, 0.0]
    """

    def _sample(
        self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int, generator: torch.Generator | None
    ) -> Tensor:
        copied = row_of_sites(1, num_samples, sites, generator)
        return torch.where(copied, tags, any_tags(num_tags, num_samples, sites, generator))

    def _log_prob(self, draws: Tensor, tags: Tensor, sites: Sites, num_tags: int) -> Tensor:
        agree = (draws == tags) & sites.mask
        return _log_share(agree, sites) - _log_rest(sites, num_tags)


@dataclass(frozen=True)
class CostlySequences(SequenceProposal):
    """Draws in proportion to the Hamming cost: one site, any, gets any wrong tag, and the rest is uniform.

        D(y' | y) = (number of sites that differ / J) / ((|Y| − 1) |Y|^{J−1})

    The reference is never drawn. That is right for sums weighted by the cost, such as the centered structured form, and
    wrong for sums weighted by similarity, where the reference weighs most (Algorithm 1 of the paper draws it so).

    Example:
        >>> tags = torch.tensor([[0], [1]])
        >>> every = torch.tensor([[[0], [1]], [[0], [0]], [[1], [0]]])
        >>> CostlySequences().log_prob(every, tags, Sites.of(tags >= 0), 2).exp().flatten().tolist()
        [0.0, 0.25, 0.5]
    """

    fewest_tags: ClassVar[int] = 2

    def _sample(
        self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int, generator: torch.Generator | None
    ) -> Tensor:
        spoilt = row_of_sites(1, num_samples, sites, generator)
        wrong = other_tags(tags, num_tags, num_samples, sites, generator)
        return torch.where(spoilt, wrong, any_tags(num_tags, num_samples, sites, generator))

    def _log_prob(self, draws: Tensor, tags: Tensor, sites: Sites, num_tags: int) -> Tensor:
        differ = (draws != tags) & sites.mask
        return _log_share(differ, sites) - math.log(num_tags - 1) - _log_rest(sites, num_tags)


def _log_share(chosen: Tensor, sites: Sites) -> Tensor:
    """(K, B), float64: the log of the share of sites that are `chosen` (K, L, B)."""
    return (chosen.sum(1) / num_sites(sites).double()).log()


def _log_rest(sites: Sites, num_tags: int) -> Tensor:
    """(B,), float64: log |Y|^{J−1}, the number of ways to fill the other sites."""
    return math.log(num_tags) * (num_sites(sites) - 1).double()
