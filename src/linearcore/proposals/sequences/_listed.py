"""A list of candidate sequences, such as the k best of a model."""

from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._checks import shape
from linearcore.proposals.sequences._base import SequenceProposal
from linearcore.structures import Sites


# Equality is identity, since comparing tensors gives a tensor and not a boolean.
@dataclass(frozen=True, eq=False)
class ListedSequences(SequenceProposal):
    """Uniform over a list of candidates for each example, for instance the k best sequences of the model.

        D(y') = (number of candidates that equal y') / (number of candidates)

    It is made for one batch and does not depend on the reference. Alone it covers only the candidates: the estimates are
    sums over them, not over all sequences. Mix it with `UniformSequences` for full support.

    Args:
        candidates: (C, L, B) tags, time first, as `LinearCoreChain.kbest` returns them without `batch_first`; arbitrary
            where masked. A candidate with a negative tag at an unmasked position is no candidate, as in a list that is
            shorter than k.

    Example:
        >>> tags = torch.tensor([[0], [1]])
        >>> best = ListedSequences(torch.tensor([[[0], [1]], [[1], [1]], [[-100], [-100]]]))
        >>> sequences = torch.tensor([[[0], [1]], [[0], [0]]])
        >>> best.log_prob(sequences, tags, Sites.of(tags >= 0), 2).exp().flatten().tolist()
        [0.5, 0.0]

    Time and memory O(K·L·B) to sample and O(K·C·L·B) for `log_prob`, for any |Y|.
    """

    candidates: Tensor

    def _sample(
        self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int, generator: torch.Generator | None
    ) -> Tensor:
        is_valid = self._is_valid(sites)
        number, batch = is_valid.sum(0), is_valid.shape[1]
        uniform = torch.rand(num_samples, batch, dtype=torch.float64, generator=generator, device=tags.device)
        # The valid ones come first, in their order.
        order = (~is_valid).long().argsort(dim=0, stable=True)
        index = order.gather(0, (uniform * number).long()).unsqueeze(1)
        # An example without any candidate gets arbitrary tags; their probability is NaN.
        return self.candidates.gather(0, index.expand(-1, len(sites.mask), -1)).clamp(min=0)

    def _log_prob(self, draws: Tensor, tags: Tensor, sites: Sites, num_tags: int) -> Tensor:
        is_valid = self._is_valid(sites)
        agrees = ((draws.unsqueeze(1) == self.candidates) | ~sites.mask).all(2)
        return (agrees.sum(1) / is_valid.sum(0).double()).log()

    def _is_valid(self, sites: Sites) -> Tensor:
        """Returns booleans (C, B)."""
        return ((self.candidates >= 0) | ~sites.mask).all(1)

    def _check(self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int) -> None:
        super()._check(tags, sites, num_tags, num_samples)
        number = len(self.candidates) if self.candidates.dim() == 3 else 1
        advice = "pass C candidates for each example of the batch, time before batch"
        shape("candidates", self.candidates, (max(1, number), *sites.mask.shape), advice)
