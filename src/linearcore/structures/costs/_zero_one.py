"""Zero-one cost."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from linearcore.structures.costs._base import Cost


@dataclass(frozen=True)
class ZeroOne(Cost):
    """ℓ = 1[y' ≠ y]: 1 unless all tags are correct.

    Example:
        >>> ZeroOne().between(torch.tensor([[0, 1, 2], [0, 1, 1]]), torch.tensor([0, 1, 2]))
        tensor([0., 1.])
    """

    name: ClassVar[str] = "zero-one"
    is_constant: ClassVar[bool] = True
    is_one_if_all_wrong: ClassVar[bool] = True

    @property
    def is_zero_only_if_equal(self) -> bool:
        return True

    def between(
        self, prediction: Tensor, target: Tensor, mask: Tensor | None = None, *, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        differs = prediction != target
        return (differs if mask is None else differs & mask).any(-1).to(dtype)

    def log_similarity_mass(self, target: Tensor, mask: Tensor, num_tags: int) -> Tensor:
        # Only the target has similarity 1, all others have 0.
        return torch.zeros_like(mask.sum(-1), dtype=torch.float64)
