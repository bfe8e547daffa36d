"""Classes in the order of their frequency, without counting them."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore.proposals._base import Proposal, uniform


@dataclass(frozen=True, kw_only=True)
class LogUniform(Proposal):
    """q(v) = log(1 + 1/(v + 1)) / log(n + 1): for classes numbered from the most frequent to the rarest.

    Close to Zipf's law, and drawn in constant time. Take `Unigram` where frequencies are known.

    Args:
        shared: as in `Proposal`.

    Example:
        >>> LogUniform().log_prob(torch.tensor([0, 1, 2]), 3).exp()
        tensor([0.5000, 0.2925, 0.2075])
    """

    def sample(self, size: tuple[int, ...], num_classes: int, like: Tensor, generator: torch.Generator | None) -> Tensor:
        # P(index ≤ v) = log(v + 2) / log(n + 1), turned around.
        log_index = uniform(size, like, generator) * math.log(num_classes + 1)
        return (log_index.exp().long() - 1).clamp(0, num_classes - 1)

    def log_prob(self, index: Tensor, num_classes: int) -> Tensor:
        place = index.double()
        return (torch.log1p(1 / (place + 1)).log() - math.log(math.log(num_classes + 1))).float()
