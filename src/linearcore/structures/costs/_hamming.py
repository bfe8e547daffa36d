"""Hamming cost."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from linearcore._checks import complaint, floating, holds
from linearcore.structures.costs._base import Cost


# Equality is identity, since comparing tensors gives a tensor and not a boolean.
@dataclass(frozen=True, eq=False)
class Hamming(Cost):
    """Fraction of wrong tags, weighted by the *true* tag. Use it if partly correct sequences are useful.

        ℓ = Σ_j w[y_j] 1[y'_j ≠ y_j] / Σ_j w[y_j],  and 0 if the denominator is 0

    Args:
        weight: w (|Y|), non-negative and not all 0; None for equal weights. Only the ratios matter.

    Raises:
        TypeError: if `weight` is not a floating-point tensor.
        ValueError: if it is not a vector, contains a negative or infinite value, or is all zero.

    Example:
        >>> target, prediction = torch.tensor([0, 0, 1]), torch.tensor([0, 0, 2])
        >>> Hamming().between(prediction, target, dtype=torch.float64).item()
        0.333333
        >>> Hamming(torch.tensor([1.0, 2.0, 2.0])).between(prediction, target).item()
        0.5
    """

    weight: Tensor | None = None
    name: ClassVar[str] = "hamming"
    is_additive: ClassVar[bool] = True
    is_one_if_all_wrong: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.weight is None:
            return
        floating("weight", self.weight, "pass one number per tag, such as torch.ones(num_tags)")
        if self.weight.dim() != 1:
            raise ValueError(
                complaint("weight", "have shape (num_tags,)", tuple(self.weight.shape), "pass one number per tag")
            )
        is_valid = (self.weight >= 0) & self.weight.isfinite()
        holds("weight", is_valid, "be finite and non-negative", "use weight 0 to ignore a tag")
        if not bool(self.weight.any()):
            raise ValueError(complaint("weight", "have a positive sum", 0, "set at least one weight above 0"))

    @property
    def is_error_fraction(self) -> bool:
        return self.weight is None

    @property
    def is_zero_only_if_equal(self) -> bool:
        return self.weight is None or bool((self.weight > 0).all())

    @property
    def num_tags(self) -> int | None:
        return None if self.weight is None else len(self.weight)

    def check(self, num_tags: int) -> None:
        if self.weight is not None and len(self.weight) != num_tags:
            raise ValueError(
                complaint("weight", f"have shape ({num_tags},)", tuple(self.weight.shape), "pass one number per tag")
            )

    def site_weight(self, target: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Returns w[target], in the shape of `target`; ones if `weight` is None.

        A weight on another device than `target` is copied in every call.
        """
        if self.weight is None:
            return torch.ones_like(target, dtype=dtype)
        return self.weight.to(target.device, dtype)[target]

    def site_costs(self, target: Tensor, num_tags: int, dtype: torch.dtype = torch.float32) -> Tensor:
        costs = self.site_weight(target, dtype).unsqueeze(-1).repeat_interleave(num_tags, -1)
        return costs.scatter_(-1, target.unsqueeze(-1), 0.0)

    def log_similarity_mass(self, target: Tensor, mask: Tensor, num_tags: int) -> Tensor:
        # |Y|^{J−1} for any weights, and |Y|^J if all true tags have weight 0.
        weight = self.site_weight(target.masked_fill(~mask, 0), torch.float64)
        has_weight = (mask & (weight != 0)).any(-1)
        return math.log(num_tags) * (mask.sum(-1) - has_weight.long()).double()

    def between(
        self, prediction: Tensor, target: Tensor, mask: Tensor | None = None, *, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        zero = torch.zeros((), dtype=dtype, device=target.device)
        if mask is None:
            weight = self.site_weight(target, dtype)
        else:  # Padding is often −1 or −100, which is not a valid index.
            weight = torch.where(mask, self.site_weight(torch.where(mask, target, 0), dtype), zero)
        error = torch.where(prediction != target, weight, zero).sum(-1)
        total = weight.sum(-1)
        return error / total.masked_fill(total == 0, 1)
