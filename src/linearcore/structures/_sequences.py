"""Enumerated output spaces: all tag sequences of one length, their costs and features."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from linearcore._checks import complaint, holds, one_of
from linearcore.structures.costs import Cost, resolve_cost

#: Largest number of outputs to enumerate.
MAX_OUTPUTS = 20_000

FAMILIES = ("free", "unary", "chain")


@dataclass(frozen=True)
class Sequences:
    """All |Y|^L tag sequences of length L, in lexicographic order. With length 1 they are classes.

    Args:
        num_tags: |Y| ≥ 2.
        length: L ≥ 1.
    """

    num_tags: int
    length: int = 1

    def __post_init__(self) -> None:
        for name, minimum in (("num_tags", 2), ("length", 1)):
            if not isinstance(getattr(self, name), int):
                raise TypeError(complaint(name, "be an integer", repr(getattr(self, name)), "for example 2"))
            if getattr(self, name) < minimum:
                raise ValueError(
                    complaint(name, f"be at least {minimum}", getattr(self, name), "use at least two tags and one position")
                )
        if self.size > MAX_OUTPUTS:
            must = f"span at most {MAX_OUTPUTS} outputs"
            raise ValueError(
                complaint("length", must, f"{self.num_tags}^{self.length} = {self.size}", "use fewer tags or positions")
            )

    @property
    def size(self) -> int:
        """M = |Y|^L."""
        return int(self.num_tags**self.length)

    @cached_property
    def outputs(self) -> Tensor:
        """(M, L): the tags of all outputs."""
        positions = torch.meshgrid(*[torch.arange(self.num_tags)] * self.length, indexing="ij")
        return torch.stack([tags.reshape(-1) for tags in positions], -1)

    def cost(self, cost: str | Cost) -> Tensor:
        """Returns ℓ(prediction, target) (M, M) of all pairs of outputs, for a cost or its name.

        Raises:
            ValueError: if a cost is outside [0, 1]: the weights 1 − ℓ of the structured sum would be negative.
        """
        resolved = resolve_cost(cost)
        resolved.check(self.num_tags)
        costs = resolved.between(self.outputs.unsqueeze(1), self.outputs, dtype=torch.float64)
        # Rounding may exceed 1 by a little.
        holds("cost", (costs >= 0) & (costs <= 1 + 1e-9), "be between 0 and 1", "divide it by its maximum")
        return costs

    def features(self, family: str) -> Tensor:
        """Returns the features (M, D) of all outputs. A family of scores is the set of all h = features · θ.

        "free": any function of the output. "unary": a sum with one score per position and tag. "chain": "unary" plus one
        score per pair of neighbouring tags, shared by all positions.
        """
        one_of("family", family, FAMILIES)
        if family == "free":
            return torch.eye(self.size, dtype=torch.float64)
        tags = torch.nn.functional.one_hot(self.outputs, self.num_tags).double()
        unary = tags.reshape(self.size, -1)
        if family == "unary" or self.length == 1:
            return unary
        pairs = torch.einsum("mla,mlb->mab", tags[:, :-1], tags[:, 1:])
        return torch.cat([unary, pairs.reshape(self.size, -1)], -1)

    @cached_property
    def changes(self) -> Tensor:
        """(M, L, |Y|): index of the output that y becomes if y_j is set to v; v = y_j gives y itself."""
        stride = self.num_tags ** torch.arange(self.length - 1, -1, -1)
        index = (self.outputs * stride).sum(-1)
        tags = torch.arange(self.num_tags)
        return index[:, None, None] + (tags - self.outputs.unsqueeze(-1)) * stride[:, None]
