"""Uniform proposal."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore.proposals._base import Proposal


@dataclass(frozen=True, kw_only=True)
class Uniform(Proposal):
    """Uniform distribution, q(v) = 1/n. It has a high variance if a few competing classes dominate the loss.

    Args:
        shared: as in `Proposal`.

    Example:
        >>> candidates = Uniform().candidates(torch.tensor([3, 5]), num_classes=10, num_samples=4)
        >>> candidates.index.shape, candidates.log_weight.shape
        (torch.Size([1, 4]), torch.Size([2, 4]))
    """

    def sample(self, size: tuple[int, ...], num_classes: int, like: Tensor, generator: torch.Generator | None) -> Tensor:
        return torch.randint(num_classes, size, device=like.device, generator=generator)

    def log_prob(self, index: Tensor, num_classes: int) -> Tensor:
        return torch.full_like(index, -math.log(num_classes), dtype=torch.float32)
