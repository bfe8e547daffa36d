"""One tag deleted and one inserted: the neighbours of a sequence in edit distance that have the same length."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore.proposals.sequences._base import SequenceProposal, num_sites
from linearcore.proposals.sequences._random_tags import random_tags, without_holes
from linearcore.structures import Sites


@dataclass(frozen=True)
class EditedSequences(SequenceProposal):
    """Deletes a random tag of the reference and inserts a random tag at a random place; the tags in between move by one.

        D(y' | y) = (number of pairs (i, k) for which y without y_i equals y' without y'_k) / (J² |Y|)

    The support is the reference, its single substitutions, and the sequences that are one deletion and one insertion away.
    Use it, mixed with `UniformSequences`, for costs that forgive a shift, such as the edit distance. `Neighbours` only
    substitutes.

    Example:
        >>> tags = torch.tensor([[0], [1], [2]])
        >>> sequences = torch.tensor([[[0], [1], [2]], [[1], [2], [0]], [[0], [0], [2]], [[2], [1], [0]]])
        >>> EditedSequences().log_prob(sequences, tags, Sites.of(tags >= 0), 3).exp().flatten().tolist()
        [0.111111, 0.037037, 0.074074, 0.0]

    Time and memory O(K·L·B) for any |Y|.
    """

    def _sample(
        self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int, generator: torch.Generator | None
    ) -> Tensor:
        lengths, rank = num_sites(sites), sites.mask.cumsum(0) - 1
        size = (2, num_samples, 1, len(lengths))
        uniform = torch.rand(size, dtype=torch.float64, generator=generator, device=lengths.device)
        deleted, inserted = (uniform * lengths).long().unbind()
        moves_back = (rank >= deleted) & (rank < inserted)
        moves_on = (rank > inserted) & (rank <= deleted)
        source = (rank + moves_back.long() - moves_on.long()).clamp(min=0)
        moved = without_holes(tags, sites).expand(num_samples, -1, -1).gather(1, source)
        return torch.where(rank == inserted, random_tags(num_tags, num_samples, sites, generator), moved)

    def _log_prob(self, draws: Tensor, tags: Tensor, sites: Sites, num_tags: int) -> Tensor:
        lengths = num_sites(sites)
        before, after = without_holes(tags, sites), without_holes(draws, sites)
        place = torch.arange(len(sites.mask), device=lengths.device).unsqueeze(-1)
        is_inside = place < lengths
        differs = (before != after) & is_inside
        is_start = is_inside & (differs.cumsum(1) == differs)  # No tag before differs.
        last = torch.where(differs, place, -1).cummax(1).values[:, -1:]
        # Pairs i ≤ k: the tags from i + 1 to k moved back by one. Pairs k < i: the tags from k to i − 1 moved on by one.
        pairs = _run_end(before, after, lengths) - torch.maximum(place, last)
        pairs_on = _run_end(after, before, lengths) - torch.maximum(place + 1, last)
        number = (pairs + 1).clamp(min=0) + (pairs_on + 1).clamp(min=0)
        log_total = 2 * lengths.double().log() + math.log(num_tags)
        return torch.where(is_start, number, 0).sum(1).double().log() - log_total


def _run_end(moved: Tensor, kept: Tensor, lengths: Tensor) -> Tensor:
    """Returns (K, L, B): the first place, from each place on, where the next tag of `moved` is not the tag of `kept`."""
    following = torch.cat([moved[:, 1:], moved[:, :1]], 1)
    place = torch.arange(moved.shape[1], device=moved.device).unsqueeze(-1)
    stops = (following != kept) | (place >= lengths - 1)
    return torch.where(stops, place, moved.shape[1]).flip(1).cummin(1).values.flip(1)
