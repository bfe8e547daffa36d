"""Which sentences come together, and in what order."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

#: Sentences are padded to a multiple of so many words, so that few shapes occur.
ROUND = 8


@dataclass(frozen=True)
class Bucket:
    """Sentences of one batch.

    Attributes:
        members: their places among all sentences.
        length: the number of words to which they are padded.
        size: the number of rows that a full batch of this length has.
    """

    members: list[int]
    length: int
    size: int


def padded_length(words: int) -> int:
    """The least multiple of `ROUND` that holds so many words.

    Example:
        >>> padded_length(1), padded_length(8), padded_length(9)
        (8, 8, 16)
    """
    return max(1, -(-words // ROUND)) * ROUND


def batches(lengths: Sequence[int], tokens: int, generator: torch.Generator | None = None) -> list[Bucket]:
    """All sentences once, those of like length together, about `tokens` positions a batch, padding included.

    Args:
        lengths: of the sentences, in words.
        tokens: positions of a batch; a longer sentence is a batch of its own.
        generator: shuffles who comes together and when; None keeps the order, short sentences first.

    Example:
        >>> [(bucket.members, bucket.length) for bucket in batches([3, 20, 5, 1], tokens=16)]
        [([0, 2], 8), ([3], 8), ([1], 24)]
    """
    order = list(range(len(lengths))) if generator is None else torch.randperm(len(lengths), generator=generator).tolist()
    groups: dict[int, list[int]] = {}
    for place in order:
        groups.setdefault(padded_length(lengths[place]), []).append(place)
    found = []
    for length, members in sorted(groups.items()):
        size = max(1, tokens // length)
        found += [Bucket(members[start : start + size], length, size) for start in range(0, len(members), size)]
    if generator is None:
        return found
    return [found[place] for place in torch.randperm(len(found), generator=generator).tolist()]
