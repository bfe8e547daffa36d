"""Some of this and some of that."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.proposals._base import Proposal


@dataclass(frozen=True, kw_only=True)
class Mixture(Proposal):
    """q = Σ_i weight_i q_i. With a little `Uniform` in it no weight 1/q is larger than n over that share.

    Args:
        shared: as in `Proposal`; those of the parts are not asked.
        parts: the laws to mix.
        weights: how much of each; they are divided by their sum. None: equal parts.

    Example:
        >>> from linearcore.proposals import LogUniform, Uniform
        >>> mixed = Mixture(parts=(Uniform(), LogUniform()), weights=(1, 3))
        >>> mixed.log_prob(torch.tensor([0]), 3).exp()
        tensor([0.4583])
    """

    parts: tuple[Proposal, ...] = ()
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if not self.parts or not all(isinstance(part, Proposal) for part in self.parts):
            raise ValueError(
                complaint("parts", "hold proposals, at least one", repr(self.parts), "for example (Uniform(),)")
            )
        weights = (1.0,) * len(self.parts) if self.weights is None else self.weights
        if len(weights) != len(self.parts) or not all(0 < weight < math.inf for weight in weights):
            must = f"hold {len(self.parts)} positive numbers"
            raise ValueError(complaint("weights", must, weights, "give one for each part"))
        object.__setattr__(self, "weights", tuple(weight / sum(weights) for weight in weights))

    def sample(self, size: tuple[int, ...], num_classes: int, like: Tensor, generator: torch.Generator | None) -> Tensor:
        assert self.weights is not None
        draws = torch.stack([part.sample(size, num_classes, like, generator) for part in self.parts])
        ends = torch.tensor(self.weights, dtype=torch.float64).cumsum(0)[:-1].tolist()
        place = torch.rand(size, dtype=torch.float64, device=like.device, generator=generator)
        which = torch.zeros(size, dtype=torch.long, device=like.device)
        for end in ends:
            which = which + (place >= end)
        return draws.gather(0, which.unsqueeze(0)).squeeze(0)

    def log_prob(self, index: Tensor, num_classes: int) -> Tensor:
        assert self.weights is not None
        logs = [
            part.log_prob(index, num_classes) + math.log(weight)
            for part, weight in zip(self.parts, self.weights, strict=True)
        ]
        return torch.logsumexp(torch.stack(logs), 0)
