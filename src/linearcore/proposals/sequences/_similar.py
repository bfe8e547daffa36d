"""Exact samplers proportional to the overlap of aligned n-grams."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore.proposals.sequences._base import SequenceProposal, check_count, num_sites
from linearcore.proposals.sequences._random_tags import random_run, random_tags
from linearcore.structures import Sites


@dataclass(frozen=True)
class SimilarSequences(SequenceProposal):
    """Samples proportional to the overlap of aligned n-grams: one of the reference is copied, the other tags are uniform.

        D(y' | y) = (number of n-grams that agree, at the same place / (J − w + 1)) / |Y|^{J−w},     w = min(n, J)

    With n = 1 this is proportional to 1 − Hamming, with n > 1 to the similarity of the aligned n-gram cost. The reference
    has the highest probability; sequences without any common n-gram have probability 0, so mix it with `UniformSequences`
    for a cost that does not count them as completely wrong. For its own cost the outer sum of the paper's structured loss
    has constant weights Z(y) = |Y|^{J−w}.

    Args:
        n: length of the n-grams, at least 1.

    Raises:
        TypeError: if `n` is not an integer.
        ValueError: if it is less than 1.

    Example:
        >>> tags = torch.tensor([[0], [1], [1]])
        >>> sequences = torch.tensor([[[0], [1], [1]], [[0], [1], [0]], [[0], [0], [1]], [[1], [0], [0]]])
        >>> for n in (1, 2):
        ...     print(SimilarSequences(n).log_prob(sequences, tags, Sites.of(tags >= 0), 2).exp().flatten().tolist())
        [0.25, 0.166667, 0.166667, 0.0]
        [0.5, 0.25, 0.0, 0.0]

    Time and memory O(K·L·B) for any |Y| and n.
    """

    n: int = 1

    def __post_init__(self) -> None:
        check_count("n", self.n, 1, "1 copies one tag, 2 copies two neighbouring tags")

    def _sample(
        self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int, generator: torch.Generator | None
    ) -> Tensor:
        is_copied = random_run(self.n, num_samples, sites, generator)
        return torch.where(is_copied, tags, random_tags(num_tags, num_samples, sites, generator))

    def _log_prob(self, draws: Tensor, tags: Tensor, sites: Sites, num_tags: int) -> Tensor:
        lengths = num_sites(sites)
        width = lengths.clamp(max=self.n)
        rank = sites.mask.cumsum(0) - 1  # Index among the unmasked positions of the sequence.
        # An n-gram that ends here agrees if the last tag that differs lies before it.
        last_wrong = torch.where((draws != tags) & sites.mask, rank, -1).cummax(1).values
        agrees = sites.mask & (rank - last_wrong >= width)
        fraction = agrees.sum(1) / (lengths - width + 1).double()
        return fraction.log() - math.log(num_tags) * (lengths - width).double()
