"""A mixture of proposals."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.proposals._base import Proposal


@dataclass(frozen=True, kw_only=True)
class Mixture(Proposal):
    """Mixture of proposals, q = Σ_i weight_i q_i.

    A `Uniform` part with mixture weight w bounds the importance weights 1/q by n/w.

    Args:
        shared: as in `Proposal`; the `shared` attributes of the parts are ignored.
        parts: proposals to mix.
        weights: mixture weights, one per part; they are divided by their sum. None means equal weights.

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
        samples = torch.stack([part.sample(size, num_classes, like, generator) for part in self.parts])
        thresholds = torch.tensor(self.weights, dtype=torch.float64).cumsum(0)[:-1].tolist()
        uniform = torch.rand(size, dtype=torch.float64, device=like.device, generator=generator)
        part_index = torch.zeros(size, dtype=torch.long, device=like.device)
        for threshold in thresholds:
            part_index = part_index + (uniform >= threshold)
        return samples.gather(0, part_index.unsqueeze(0)).squeeze(0)

    def log_prob(self, index: Tensor, num_classes: int) -> Tensor:
        assert self.weights is not None
        log_probs = [
            part.log_prob(index, num_classes) + math.log(weight)
            for part, weight in zip(self.parts, self.weights, strict=True)
        ]
        return torch.logsumexp(torch.stack(log_probs), 0)
