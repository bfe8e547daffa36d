"""Log-uniform proposal, for classes sorted by frequency."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore.proposals._base import Proposal, uniform


@dataclass(frozen=True, kw_only=True)
class LogUniform(Proposal):
    """Log-uniform distribution over classes that are numbered from the most frequent to the rarest.

    q(v) = log(1 + 1/(v + 1)) / log(n + 1), close to Zipf's law. A sample takes constant time. Use `Unigram` if the class
    frequencies are known.

    Args:
        shared: as in `Proposal`.

    Example:
        >>> LogUniform().log_prob(torch.tensor([0, 1, 2]), 3).exp()
        tensor([0.5000, 0.2925, 0.2075])
    """

    def sample(self, size: tuple[int, ...], num_classes: int, like: Tensor, generator: torch.Generator | None) -> Tensor:
        # Inverse of the distribution function P(index ≤ v) = log(v + 2) / log(n + 1).
        log_index = uniform(size, like, generator) * math.log(num_classes + 1)
        return (log_index.exp().long() - 1).clamp(0, num_classes - 1)

    def log_prob(self, index: Tensor, num_classes: int) -> Tensor:
        return (torch.log1p(1 / (index.double() + 1)).log() - math.log(math.log(num_classes + 1))).float()
