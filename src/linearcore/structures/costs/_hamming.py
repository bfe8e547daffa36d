"""The Hamming cost."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from linearcore._checks import complaint, floating, holds
from linearcore.structures.costs._base import Cost


# Two tensors are not equal or unequal but both, entry by entry; so equality is identity.
@dataclass(frozen=True, eq=False)
class Hamming(Cost):
    """The share of wrong sites, each with the weight of its *true* tag. Prefer it where a nearly right answer is worth much.

        ℓ = Σ_j w[y_j] 1[y'_j ≠ y_j] / Σ_j w[y_j],  and 0 where the denominator is 0

    Args:
        weight: w (|Y|), non-negative and not all 0; None is 1 for every tag. Only the ratios matter.

    Raises:
        TypeError: if `weight` is no floating-point tensor.
        ValueError: if it is not a vector, holds a negative or infinite number, or nothing but zeros.

    Example:
        >>> truth, answer = torch.tensor([0, 0, 1]), torch.tensor([0, 0, 2])
        >>> Hamming().between(answer, truth, dtype=torch.float64).item()
        0.333333
        >>> Hamming(torch.tensor([1.0, 2.0, 2.0])).between(answer, truth).item()
        0.5
    """

    weight: Tensor | None = None
    name: ClassVar[str] = "hamming"
    is_additive: ClassVar[bool] = True
    is_one_apart: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.weight is None:
            return
        floating("weight", self.weight, "give one number a tag, such as torch.ones(num_tags)")
        if self.weight.dim() != 1:
            raise ValueError(
                complaint("weight", "have shape (num_tags,)", tuple(self.weight.shape), "give one number a tag")
            )
        fine = (self.weight >= 0) & self.weight.isfinite()
        holds("weight", fine, "be finite and non-negative", "a tag that does not count has weight 0")
        if not bool(self.weight.any()):
            raise ValueError(complaint("weight", "have a positive sum", 0, "then every answer would be right; raise one"))

    @property
    def is_share(self) -> bool:
        return self.weight is None

    def check(self, num_tags: int) -> None:
        if self.weight is not None and len(self.weight) != num_tags:
            raise ValueError(
                complaint("weight", f"have shape ({num_tags},)", tuple(self.weight.shape), "give one number a tag")
            )

    def site_weight(self, truth: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """w[truth], in the shape of `truth`; ones without a weight.

        A weight on another device than `truth` is copied there by every call.
        """
        if self.weight is None:
            return torch.ones_like(truth, dtype=dtype)
        return self.weight.to(truth.device, dtype)[truth]

    def site_costs(self, truth: Tensor, num_tags: int, dtype: torch.dtype = torch.float32) -> Tensor:
        every = self.site_weight(truth, dtype).unsqueeze(-1).repeat_interleave(num_tags, -1)
        return every.scatter_(-1, truth.unsqueeze(-1), 0.0)

    def log_similarity_mass(self, truth: Tensor, mask: Tensor, num_tags: int) -> Tensor:
        # |Y|^{J−1} whatever the weights are, and |Y|^J where they leave nothing that counts.
        weight = self.site_weight(truth.masked_fill(~mask, 0), torch.float64)
        counts = (mask & (weight != 0)).any(-1)
        return math.log(num_tags) * (mask.sum(-1) - counts.long()).double()

    def between(
        self, answer: Tensor, truth: Tensor, mask: Tensor | None = None, *, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        nothing = torch.zeros((), dtype=dtype, device=truth.device)
        if mask is None:
            weight = self.site_weight(truth, dtype)
        else:  # Padding is often −1 or −100, which is no place in a table of weights.
            weight = torch.where(mask, self.site_weight(torch.where(mask, truth, 0), dtype), nothing)
        wrong = torch.where(answer != truth, weight, nothing).sum(-1)
        total = weight.sum(-1)
        return wrong / total.masked_fill(total == 0, 1)
