"""Samples from the model itself."""

from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._checks import shape
from linearcore.kernels import log_partition, sample_chain
from linearcore.proposals.sequences._base import SequenceProposal
from linearcore.structures import Chain, Sites, sequence_scores


# Equality is identity, since comparing tensors gives a tensor and not a boolean.
@dataclass(frozen=True, eq=False)
class ModelSequences(SequenceProposal):
    """Samples from the distribution that the scores of a chain define, as in a CRF, independent of the reference.

        D(y') = exp(h(x, y')) / Σ_{y} exp(h(x, y))

    It holds the scores of one batch, so make a new one for each batch. The scores get no gradient: importance weights do
    not differentiate the proposal. Sequences with score −inf have probability 0, and all others a positive one. Far from
    the model's favourites it is tiny, so mix it with `UniformSequences` to bound the weights. Divide the scores by a
    temperature above 1 for a wider distribution.

    Args:
        emissions: (L, B, |Y|), time first.
        chain: start, transition and end scores.

    Example:
        >>> tags = torch.tensor([[0], [1]])
        >>> emissions = torch.tensor([[[0.0, 0.0]], [[0.0, 3.0]]]).log1p()
        >>> model = ModelSequences(emissions, Chain(torch.zeros(2), torch.zeros(2, 2), torch.zeros(2)))
        >>> model.log_prob(tags.unsqueeze(0), tags, Sites.of(tags >= 0), 2).exp().item()
        0.4

    Time O(L·B·|Y|·(|Y| + K)) to sample and O(L·B·(|Y|² + K)) for `log_prob`, which synchronise with a GPU.
    """

    emissions: Tensor
    chain: Chain

    @property
    def has_full_support(self) -> bool:
        return True

    def _sample(
        self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int, generator: torch.Generator | None
    ) -> Tensor:
        tags, _ = sample_chain(self.emissions, self.chain, sites, num_samples, generator)
        return tags.clamp(min=0)  # Masked positions are −100.

    def _log_prob(self, draws: Tensor, tags: Tensor, sites: Sites, num_tags: int) -> Tensor:
        emissions, chain = self.emissions.detach().double(), Chain(*(part.detach().double() for part in self.chain))
        scores = sequence_scores(emissions, chain, draws.masked_fill(~sites.mask, 0), sites)
        return scores - log_partition(emissions, chain, sites.mask, is_full=sites.is_full)

    def _check(self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int) -> None:
        super()._check(tags, sites, num_tags, num_samples)
        shape("emissions", self.emissions, (*sites.mask.shape, num_tags), "make one proposal for each batch, time first")
