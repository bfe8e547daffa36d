"""Exact sampler proportional to the product of n-gram counts."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore.proposals.sequences._base import SequenceProposal, check_count, num_sites
from linearcore.proposals.sequences._random_tags import random_tags, without_holes
from linearcore.structures import Sites


@dataclass(frozen=True)
class MovedNgrams(SequenceProposal):
    """Samples proportional to the count kernel: a random n-gram of the reference at a random place, the other tags uniform.

        D(y' | y) = (number of pairs of equal n-grams, one in y' and one in y / (J − w + 1)²) / |Y|^{J−w},   w = min(n, J)

    The number of pairs is Σ_g c_{y'}(g) c_y(g), the count kernel. Use it, mixed with `UniformSequences`, for costs that
    count n-grams at any place: `clipped-ngram` and `bleu`. `SimilarSequences` keeps them at their places.

    Args:
        n: length of the n-grams, at least 1.

    Raises:
        TypeError: if `n` is not an integer.
        ValueError: if it is less than 1.

    Example:
        >>> tags = torch.tensor([[0], [1], [2]])
        >>> sequences = torch.tensor([[[0], [1], [2]], [[1], [2], [1]], [[2], [0], [1]], [[2], [1], [0]]])
        >>> MovedNgrams(2).log_prob(sequences, tags, Sites.of(tags >= 0), 3).exp().flatten().tolist()
        [0.166667, 0.083333, 0.083333, 0.0]

    Time O(K·L·B) to sample, and O(K·L²·n·B) for `log_prob`, for any |Y|.
    """

    n: int

    def __post_init__(self) -> None:
        check_count("n", self.n, 1, "2 moves two neighbouring tags")

    def _sample(
        self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int, generator: torch.Generator | None
    ) -> Tensor:
        lengths, rank = num_sites(sites), sites.mask.cumsum(0) - 1
        width = lengths.clamp(max=self.n)
        size = (2, num_samples, 1, len(lengths))
        uniform = torch.rand(size, dtype=torch.float64, generator=generator, device=lengths.device)
        source, place = (uniform * (lengths - width + 1)).long().unbind()
        is_copied = (rank >= place) & (rank < place + width)
        index = torch.where(is_copied, rank - place + source, 0)
        copied = without_holes(tags, sites).expand(num_samples, -1, -1).gather(1, index)
        return torch.where(is_copied, copied, random_tags(num_tags, num_samples, sites, generator))

    def _log_prob(self, draws: Tensor, tags: Tensor, sites: Sites, num_tags: int) -> Tensor:
        lengths = num_sites(sites)
        width = lengths.clamp(max=self.n)
        number = lengths - width + 1
        before, after = without_holes(tags, sites), without_holes(draws, sites)
        is_start = torch.arange(len(sites.mask), device=lengths.device).unsqueeze(-1) < number
        agrees = is_start.unsqueeze(1) & is_start  # (L, L, B): place in y, place in y'.
        for step in range(min(self.n, len(sites.mask))):  # After the last tag of a short sequence both are 0.
            agrees = agrees & (before.roll(-step, 1).unsqueeze(2) == after.roll(-step, 1).unsqueeze(1))
        fraction = agrees.expand(len(draws), -1, -1, -1).sum((1, 2)) / number.double().square()
        return fraction.log() - math.log(num_tags) * (lengths - width).double()
