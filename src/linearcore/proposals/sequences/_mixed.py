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
    """Mixture of proposals: each sample comes from one of them, chosen at random with the given weights.

        D(y' | y) = Σ_i p_i D_i(y' | y),   p = weights / Σ weights

    Use it to combine a proposal with small support and one with full support. It also bounds the importance weights: each
    is at most 1/p_i times its value under part i alone.

    Args:
        parts: the proposals, at least one.
        weights: one positive number for each proposal; only the ratios matter.

    Raises:
        TypeError: if a part is not a `SequenceProposal`.
        ValueError: if `parts` is empty, the number of weights differs, or a weight is not positive.

    Example:
        >>> from linearcore.proposals.sequences import Neighbours, UniformSequences
        >>> tags = torch.tensor([[0], [1]])
        >>> sequences = torch.tensor([[[0], [1]], [[0], [0]]])
        >>> mixed = MixedSequences((UniformSequences(), Neighbours()), (1.0, 3.0))
        >>> mixed.log_prob(sequences, tags, Sites.of(tags >= 0), 2).exp().flatten().tolist()
        [0.0625, 0.4375]

    Cost: the sum over all parts, since every part generates K samples, of which only some are used.
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
            positive("weights", weight, "remove parts with weight 0")

    @property
    def has_full_support(self) -> bool:
        return any(part.has_full_support for part in self.parts)

    @property
    def probabilities(self) -> tuple[float, ...]:
        """p: the weights, normalised to sum to 1."""
        total = math.fsum(self.weights)
        return tuple(weight / total for weight in self.weights)

    def _sample(
        self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int, generator: torch.Generator | None
    ) -> Tensor:
        size = (num_samples, 1, sites.mask.shape[1])
        uniform = torch.rand(size, dtype=torch.float64, generator=generator, device=sites.mask.device)
        draws = self.parts[0].sample(tags, sites, num_tags, num_samples, generator)
        # Python numbers as thresholds: copying a tensor to the GPU would synchronise.
        thresholds = itertools.accumulate(self.probabilities)
        for threshold, part in zip(thresholds, self.parts[1:], strict=False):
            draws = torch.where(uniform < threshold, draws, part.sample(tags, sites, num_tags, num_samples, generator))
        return draws

    def _log_prob(self, draws: Tensor, tags: Tensor, sites: Sites, num_tags: int) -> Tensor:
        log_probs = [
            part.log_prob(draws, tags, sites, num_tags) + math.log(probability)
            for part, probability in zip(self.parts, self.probabilities, strict=True)
        ]
        return torch.stack(log_probs).logsumexp(0)
