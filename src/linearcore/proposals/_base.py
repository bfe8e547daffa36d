"""What a proposal is: a law over classes, and candidates with the weights that make a sum over them a sum over all."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from linearcore._checks import complaint


class Candidates(NamedTuple):
    """Competitors that stand for all competitors of their rows.

    For every function f of a class, Σ_k weight_k f(index_k) is an unbiased estimate of Σ_{v≠target} f(v). Weights hold no
    gradient: what is estimated is the sum, and not how it was drawn.

    Attributes:
        index: (N, K) classes, or (1, K) where all rows share them.
        log_weight: (N, K): 0 for a class that is there for sure, −log(K q(v)) for one of K draws from q, −inf for one that
            counts for nothing, being the target itself or there already.
    """

    index: Tensor  # type: ignore[assignment]  # A tuple's own `index` finds entries, which nobody does here.
    log_weight: Tensor


@dataclass(frozen=True, kw_only=True)
class Proposal(ABC):
    """A law q over classes (tags) that knows its probabilities.

    Args:
        shared: all rows of a batch get the same draws: one product instead of many, and gradients for K rows of a weight
            matrix instead of N·K. The estimate of each row is unbiased all the same; those of different rows err together.
    """

    shared: bool = True

    @abstractmethod
    def sample(self, size: tuple[int, ...], num_classes: int, like: Tensor, generator: torch.Generator | None) -> Tensor:
        """Classes in [0, num_classes), of shape `size`, on the device of `like`; independent draws."""

    @abstractmethod
    def log_prob(self, index: Tensor, num_classes: int) -> Tensor:
        """log q(index), float32, in the shape of `index`."""

    def candidates(
        self, target: Tensor, num_classes: int, num_samples: int, generator: torch.Generator | None = None
    ) -> Candidates:
        """K draws for targets (N,). Time and memory O(N·K), whatever the number of classes."""
        size = (1 if self.shared else target.shape[0], num_samples)
        index = self.sample(size, num_classes, target, generator)
        log_weight = -self.log_prob(index, num_classes) - math.log(num_samples)
        own = index == target.unsqueeze(-1)
        return Candidates(index, log_weight.expand(own.shape).masked_fill(own, -math.inf))


def check_num_samples(num_samples: int) -> None:
    """Raises unless it is a count."""
    if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples < 1:
        raise ValueError(complaint("num_samples", "be a positive integer", repr(num_samples), "for example 64"))


def uniform(size: tuple[int, ...], like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Numbers in [0, 1), float64: in float32 there are too few of them for a million classes."""
    return torch.rand(size, dtype=torch.float64, device=like.device, generator=generator)
