"""A mixture of proposals."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._checks import complaint, positive
from linearcore.proposals.sequences._base import SequenceProposal
from linearcore.structures import Sites


@dataclass(frozen=True)
class MixedSequences(SequenceProposal):
    """Every draw comes from one of several proposals, picked at random with given weights.

        D(y' | y) = Σ_i p_i D_i(y' | y),   p = weights / Σ weights

    A part that reaches everything lets a narrow one be used where all outputs count, and bounds the importance weights:
    none is more than 1/p_i times what it would be with part i alone.

    Args:
        parts: the proposals, at least one.
        weights: a positive number for each; only the ratios matter.

    Raises:
        TypeError: if a part is no proposal.
        ValueError: if there are no parts, not as many weights as parts, or a weight that is not positive.

    Example:
        >>> from linearcore.proposals.sequences import Neighbours, UniformSequences
        >>> tags = torch.tensor([[0], [1]])
        >>> every = torch.tensor([[[0], [1]], [[0], [0]]])
        >>> mixed = MixedSequences((UniformSequences(), Neighbours()), (1.0, 3.0))
        >>> mixed.log_prob(every, tags, Sites.of(tags >= 0), 2).exp().flatten().tolist()
        [0.0625, 0.4375]

    Cost: that of all parts together, in time as in draws that are made and thrown away.
    """

    parts: Sequence[SequenceProposal]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        object.__setattr__(self, "weights", tuple(self.weights))
        if not self.parts:
            raise ValueError(
                complaint("parts", "hold at least one proposal", "none", "pass UniformSequences(), for example")
            )
        for part in self.parts:
            if not isinstance(part, SequenceProposal):
                raise TypeError(complaint("parts", "hold sequence proposals", repr(part), "pass instances, not names"))
        if len(self.weights) != len(self.parts):
            must = f"hold one number for each of {len(self.parts)} parts"
            raise ValueError(complaint("weights", must, len(self.weights), "only their ratios matter"))
        for weight in self.weights:
            positive("weights", weight, "leave out a part that is never to be drawn from")

    @property
    def probabilities(self) -> tuple[float, ...]:
        """p: the weights, summing to one."""
        total = math.fsum(self.weights)
        return tuple(weight / total for weight in self.weights)

    def _sample(
        self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int, generator: torch.Generator | None
    ) -> Tensor:
        size = (num_samples, 1, sites.mask.shape[1])
        chance = torch.rand(size, dtype=torch.float64, generator=generator, device=sites.mask.device)
        draws = self.parts[0].sample(tags, sites, num_tags, num_samples, generator)
        # Plain numbers as edges: a tensor of them would have to be copied to the device, which waits for it.
        edges = itertools.accumulate(self.probabilities)
        for edge, part in zip(edges, self.parts[1:], strict=False):
            draws = torch.where(chance < edge, draws, part.sample(tags, sites, num_tags, num_samples, generator))
        return draws

    def _log_prob(self, draws: Tensor, tags: Tensor, sites: Sites, num_tags: int) -> Tensor:
        each = [
            part.log_prob(draws, tags, sites, num_tags) + math.log(share)
            for part, share in zip(self.parts, self.probabilities, strict=True)
        ]
        return torch.stack(each).logsumexp(0)
