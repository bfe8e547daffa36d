"""The zero-one cost."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from linearcore.structures.costs._base import Cost


@dataclass(frozen=True)
class ZeroOne(Cost):
    """ℓ = 1[y' ≠ y]: a sequence is right as a whole or not at all.

    Example:
        >>> ZeroOne().between(torch.tensor([[0, 1, 2], [0, 1, 1]]), torch.tensor([0, 1, 2]))
        tensor([0., 1.])
    """

    name: ClassVar[str] = "zero-one"
    is_constant: ClassVar[bool] = True
    is_one_apart: ClassVar[bool] = True

    def between(
        self, answer: Tensor, truth: Tensor, mask: Tensor | None = None, *, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        differs = answer != truth
        return (differs if mask is None else differs & mask).any(-1).to(dtype)

    def log_similarity_mass(self, truth: Tensor, mask: Tensor, num_tags: int) -> Tensor:
        # Only the truth itself.
        return torch.zeros_like(mask.sum(-1), dtype=torch.float64)
