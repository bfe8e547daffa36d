"""Scores and true outputs of a batch, with the sums and weights that a structured form needs."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from linearcore.structured._estimates import Draws, centered_log_weight, mean_score, pair_log_weight
from linearcore.structures import Chain, Cost, Sites, sequence_scores


class Batch(ABC):
    """Base class: B sets of outputs with their scores h, and B true outputs."""

    @abstractmethod
    def scores(self, draws: Draws) -> Tensor:
        """Returns the scores h (K, B) of samples, differentiable."""

    @abstractmethod
    def mean_score(self) -> Tensor:
        """Returns the exact mean score (B,) over all outputs, differentiable."""

    @abstractmethod
    def pair_log_weight(self, cost: Cost, outer: Draws, inner: Draws, *, objective: str, log_count: Tensor | None) -> Tensor:
        """Returns log weights (K, B), float64, of pairs of samples, as the function of this name does for chains."""

    @abstractmethod
    def centered_log_weight(self, cost: Cost, draws: Draws, *, objective: str) -> Tensor:
        """Returns log weights (K, B), float64, of samples, as the function of this name does for chains."""


@dataclass(frozen=True)
class ChainBatch(Batch):
    """All tag sequences, with the scores of a chain.

    Attributes:
        emissions: (L, B, |Y|).
        chain: start, transition and end scores.
        tags: (L, B), the true tags, 0 where masked.
        sites: positions of the tags and their neighbours.
    """

    emissions: Tensor
    chain: Chain
    tags: Tensor
    sites: Sites

    @property
    def num_tags(self) -> int:
        return self.emissions.shape[-1]

    def scores(self, draws: Draws) -> Tensor:
        return sequence_scores(self.emissions, self.chain, draws.tags, self.sites)

    def mean_score(self) -> Tensor:
        return mean_score(self.emissions, self.chain, self.sites)

    def pair_log_weight(self, cost: Cost, outer: Draws, inner: Draws, *, objective: str, log_count: Tensor | None) -> Tensor:
        return pair_log_weight(
            outer, inner, self.tags, self.sites, self.num_tags, cost=cost, objective=objective, log_count=log_count
        )

    def centered_log_weight(self, cost: Cost, draws: Draws, *, objective: str) -> Tensor:
        return centered_log_weight(draws, self.tags, self.sites, self.num_tags, cost=cost, objective=objective)
