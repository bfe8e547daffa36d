"""Costs: what it costs to answer one sequence of tags where another is true."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from linearcore._checks import complaint, floating, holds, one_of


class Cost(ABC):
    """ℓ(answer, truth) in [0, 1], and 0 where the two are equal. The names in `COSTS` are shortcuts for plain instances."""

    name: ClassVar[str]

    @abstractmethod
    def check(self, num_tags: int) -> None:
        """Raises ValueError if the cost is made for another number of tags."""

    @abstractmethod
    def between(
        self, answer: Tensor, truth: Tensor, mask: Tensor | None = None, *, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        """(…): ℓ(answer, truth) of sequences that lie along the last dimension. Without any site it is 0.

        Args:
            answer: (…, L) tags. It broadcasts with `truth`, so that (M, 1, L) and (M, L) give all pairs.
            truth: (…, L) tags.
            mask: (…, L) booleans: there is a site here. Tags that are masked out may be anything.
            dtype: of the result.

        Time and memory O(number of pairs of tags compared).
        """


@dataclass(frozen=True)
class ZeroOne(Cost):
    """ℓ = 1[y' ≠ y]: a sequence is right as a whole or not at all.

    Example:
        >>> ZeroOne().between(torch.tensor([[0, 1, 2], [0, 1, 1]]), torch.tensor([0, 1, 2]))
        tensor([0., 1.])
    """

    name: ClassVar[str] = "zero-one"

    def check(self, num_tags: int) -> None:
        pass

    def between(
        self, answer: Tensor, truth: Tensor, mask: Tensor | None = None, *, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        differs = answer != truth
        return (differs if mask is None else differs & mask).any(-1).to(dtype)


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

    def check(self, num_tags: int) -> None:
        if self.weight is not None and len(self.weight) != num_tags:
            raise ValueError(
                complaint("weight", f"have shape ({num_tags},)", tuple(self.weight.shape), "give one number a tag")
            )

    def site_weight(self, tags: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """w[tags], in the shape of `tags`; ones without a weight.

        A weight on another device than `tags` is copied there by every call.
        """
        if self.weight is None:
            return torch.ones_like(tags, dtype=dtype)
        return self.weight.to(tags.device, dtype)[tags]

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


_BY_NAME: dict[str, type[ZeroOne] | type[Hamming]] = {cost.name: cost for cost in (ZeroOne, Hamming)}

#: The names of costs that need nothing but a name.
COSTS = tuple(_BY_NAME)


def resolve_cost(cost: str | Cost) -> Cost:
    """The cost that `cost` names, or `cost` itself.

    Raises:
        ValueError: if it is neither a cost nor one of `COSTS`.

    Example:
        >>> resolve_cost("zero-one")
        ZeroOne()
    """
    if isinstance(cost, Cost):
        return cost
    one_of("cost", cost, COSTS, "choose one of these or pass a Cost, such as Hamming(weight)")
    return _BY_NAME[cost]()
