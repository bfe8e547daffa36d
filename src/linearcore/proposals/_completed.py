"""What proposals share that have some competitors for sure."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.proposals._base import Candidates, Proposal
from linearcore.proposals._uniform import Uniform


@dataclass(frozen=True, kw_only=True)
class Completed(Proposal):
    """Competitors with weight 1, which a subclass lists, and draws from `rest` that stand for all the others.

    Σ_{v≠y} f(v) = Σ_{v∈listed, v≠y} f(v) + E_{v~q} 1[v ∉ listed ∪ {y}] f(v)/q(v)
    """

    rest: Proposal = field(default_factory=Uniform)

    def __post_init__(self) -> None:
        if not isinstance(self.rest, Proposal):
            got, advice = type(self.rest).__name__, "for example Uniform()"
            raise TypeError(complaint("rest", "be a `Proposal`", got, advice))

    def sample(self, size: tuple[int, ...], num_classes: int, like: Tensor, generator: torch.Generator | None) -> Tensor:
        return self.rest.sample(size, num_classes, like, generator)

    def log_prob(self, index: Tensor, num_classes: int) -> Tensor:
        return self.rest.log_prob(index, num_classes)


def completed(listed: Tensor, is_idle: Tensor, drawn: Candidates, is_listed: Tensor) -> Candidates:
    """The listed competitors and the draws side by side.

    Args:
        listed: (N, k), or (1, k), as many rows as `drawn.index` has.
        is_idle: (N, k) those that count for nothing: the target itself, and repetitions.
        drawn: for the rest.
        is_listed: like `drawn.index`, those that are listed already.
    """
    sure = torch.zeros_like(is_idle, dtype=drawn.log_weight.dtype).masked_fill(is_idle, -math.inf)
    weights = torch.cat([sure, drawn.log_weight.masked_fill(is_listed, -math.inf)], -1)
    return Candidates(torch.cat([listed, drawn.index], -1), weights)
