"""Small output spaces, written out: all tag sequences of one length, their costs and the scores a model can give them."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from linearcore._checks import complaint, one_of
from linearcore.structures.costs import Cost, resolve_cost

#: Enumerating more outputs than this is asking for a sampler.
MOST_OUTPUTS = 20_000

FAMILIES = ("free", "unary", "chain")


@dataclass(frozen=True)
class Sequences:
    """All |Y|^L tag sequences of length L, in lexicographic order. With length 1 they are plain classes.

    Args:
        num_tags: |Y| ≥ 2.
        length: L ≥ 1.
    """

    num_tags: int
    length: int = 1

    def __post_init__(self) -> None:
        for name, least in (("num_tags", 2), ("length", 1)):
            if not isinstance(getattr(self, name), int):
                raise TypeError(complaint(name, "be an integer", repr(getattr(self, name)), "count the outputs"))
            if getattr(self, name) < least:
                raise ValueError(
                    complaint(name, f"be at least {least}", getattr(self, name), "there is nothing to choose from")
                )
        if self.size > MOST_OUTPUTS:
            must = f"span at most {MOST_OUTPUTS} outputs"
            raise ValueError(
                complaint("length", must, f"{self.num_tags}^{self.length} = {self.size}", "take fewer tags or sites")
            )

    @property
    def size(self) -> int:
        """M = |Y|^L."""
        return int(self.num_tags**self.length)

    @cached_property
    def outputs(self) -> Tensor:
        """(M, L): the tags of every output."""
        sites = torch.meshgrid(*[torch.arange(self.num_tags)] * self.length, indexing="ij")
        return torch.stack([site.reshape(-1) for site in sites], -1)

    def cost(self, cost: str | Cost) -> Tensor:
        """(M, M): ℓ(answer, truth): 1 unless equal ("zero-one"), the share of wrong sites ("hamming"), or any `Cost`."""
        measure = resolve_cost(cost)
        measure.check(self.num_tags)
        return measure.between(self.outputs.unsqueeze(1), self.outputs, dtype=torch.float64)

    def features(self, family: str) -> Tensor:
        """(M, D): the outputs' features; a family of scores is all h = features · θ.

        "free": any function of the output. "unary": a sum of one score a site and tag. "chain": that and one score for
        each pair of neighbouring tags, the same at every site.
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
        """(M, L, |Y|): the index of the output that y becomes when its site j is set to v; v = y_j gives y itself."""
        place = self.num_tags ** torch.arange(self.length - 1, -1, -1)
        own = (self.outputs * place).sum(-1)
        tags = torch.arange(self.num_tags)
        return own[:, None, None] + (tags - self.outputs.unsqueeze(-1)) * place[:, None]
