"""Base class for proposals with a fixed candidate set plus importance samples."""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.proposals._base import Candidates, Proposal
from linearcore.proposals._uniform import Uniform


@dataclass(frozen=True, kw_only=True)
class FixedPlusSamples(Proposal):
    """Fixed candidates with weight 1, which the subclass lists, plus samples from `rest` for all other classes.

    Σ_{v≠y} f(v) = Σ_{v∈fixed, v≠y} f(v) + E_{v~q} 1[v ∉ fixed ∪ {y}] f(v)/q(v)
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


def join_candidates(fixed: Tensor, is_ignored: Tensor, samples: Candidates, is_fixed: Tensor) -> Candidates:
    """Concatenates the fixed candidates and the samples.

    Args:
        fixed: (N, k) or (1, k) classes, with as many rows as `samples.index`.
        is_ignored: (N, k) True for fixed candidates with weight 0: the target itself and repetitions.
        samples: K samples per row.
        is_fixed: shape of `samples.index`, True for samples that are fixed candidates; their weight becomes 0.
    """
    fixed_log_weight = torch.zeros_like(is_ignored, dtype=samples.log_weight.dtype).masked_fill(is_ignored, -math.inf)
    log_weight = torch.cat([fixed_log_weight, samples.log_weight.masked_fill(is_fixed, -math.inf)], -1)
    return Candidates(torch.cat([fixed, samples.index], -1), log_weight)
