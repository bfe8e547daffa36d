"""Base class of proposals, and the weighted candidates that they return."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from linearcore._checks import complaint


class Candidates(NamedTuple):
    """Weighted candidate classes that represent all competing classes of each row.

    For every function f of a class, Σ_k weight_k f(index_k) is an unbiased estimate of Σ_{v≠target} f(v). Weights have no
    gradient.

    Attributes:
        index: (N, K) classes, or (1, K) if all rows share them.
        log_weight: (N, K): 0 for a class that is always included, −log(K q(v)) for one of K samples from q, and −inf
            (weight 0) for the target itself and for repetitions of included classes.
    """

    index: Tensor  # type: ignore[assignment]  # Hides the method `index` of tuples, which is not used.
    log_weight: Tensor


@dataclass(frozen=True, kw_only=True)
class Proposal(ABC):
    """A distribution q over classes (tags) with known probabilities.

    Args:
        shared: whether all rows of a batch use the same samples. This needs one matrix product instead of N, and gradients
            for K rows of the weight matrix instead of N·K. Each row's estimate is still unbiased; errors are correlated.
    """

    shared: bool = True

    @abstractmethod
    def sample(self, size: tuple[int, ...], num_classes: int, like: Tensor, generator: torch.Generator | None) -> Tensor:
        """Returns independent samples from [0, num_classes), of shape `size`, on the device of `like`."""

    @abstractmethod
    def log_prob(self, index: Tensor, num_classes: int) -> Tensor:
        """Returns log q(index), float32, in the shape of `index`."""

    def candidates(
        self, target: Tensor, num_classes: int, num_samples: int, generator: torch.Generator | None = None
    ) -> Candidates:
        """Returns K samples for targets (N,). Time and memory: O(N·K), independent of the number of classes."""
        rows = 1 if self.shared else target.shape[0]
        return mask_targets(self._samples(rows, num_classes, num_samples, target, generator), target)

    def shared_samples(
        self, num_classes: int, num_samples: int, like: Tensor, generator: torch.Generator | None = None
    ) -> Candidates | None:
        """Returns K samples and their log weights, (1, K) both, which `mask_targets` completes to `candidates`.

        Kernels call it, since they mask the targets themselves. None if the samples are not shared, and for subclasses with
        other candidates.
        """
        if not self.shared or type(self).candidates is not Proposal.candidates:
            return None
        return self._samples(1, num_classes, num_samples, like, generator)

    def _samples(
        self, rows: int, num_classes: int, num_samples: int, like: Tensor, generator: torch.Generator | None
    ) -> Candidates:
        index = self.sample((rows, num_samples), num_classes, like, generator)
        return Candidates(index, torch.rsub(self.log_prob(index, num_classes), -math.log(num_samples)))


def mask_targets(samples: Candidates, target: Tensor) -> Candidates:
    """Returns the candidates for targets (N,): log weights (N, K) that are −inf for the target itself."""
    is_target = samples.index == target.unsqueeze(-1)
    return samples._replace(log_weight=samples.log_weight.expand(is_target.shape).masked_fill(is_target, -math.inf))


def check_num_samples(num_samples: int) -> None:
    """Raises unless `num_samples` is a positive integer."""
    if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples < 1:
        raise ValueError(complaint("num_samples", "be a positive integer", repr(num_samples), "for example 64"))


def uniform(size: tuple[int, ...], like: Tensor, generator: torch.Generator | None) -> Tensor:
    """Returns uniform numbers in [0, 1), in float64: float32 has too few distinct values for a million classes."""
    return torch.rand(size, dtype=torch.float64, device=like.device, generator=generator)
