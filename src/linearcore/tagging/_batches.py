"""Batches of sentences with similar length."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

#: Sentences are padded to a multiple of this number of words, so batches have few different shapes.
LENGTH_MULTIPLE = 8


@dataclass(frozen=True)
class Bucket:
    """The sentences of one batch.

    Attributes:
        members: indices of the sentences.
        length: number of words to which the sentences are padded.
        size: number of rows of a full batch of this length.
    """

    members: list[int]
    length: int
    size: int


def padded_length(words: int) -> int:
    """Returns `words` rounded up to a multiple of `LENGTH_MULTIPLE`.

    Example:
        >>> padded_length(1), padded_length(8), padded_length(9)
        (8, 8, 16)
    """
    return max(1, -(-words // LENGTH_MULTIPLE)) * LENGTH_MULTIPLE


def batches(lengths: Sequence[int], tokens: int, generator: torch.Generator | None = None) -> list[Bucket]:
    """Returns batches of sentences with similar length that together contain each sentence once.

    Args:
        lengths: number of words of each sentence.
        tokens: batch size in words, padding included; a sentence with more words is a batch of its own.
        generator: shuffles the sentences and the batches; None keeps the order, short sentences first.

    Example:
        >>> [(bucket.members, bucket.length) for bucket in batches([3, 20, 5, 1], tokens=16)]
        [([0, 2], 8), ([3], 8), ([1], 24)]
    """
    order = list(range(len(lengths))) if generator is None else torch.randperm(len(lengths), generator=generator).tolist()
    groups: dict[int, list[int]] = {}
    for index in order:
        groups.setdefault(padded_length(lengths[index]), []).append(index)
    buckets = []
    for length, members in sorted(groups.items()):
        size = max(1, tokens // length)
        buckets += [Bucket(members[start : start + size], length, size) for start in range(0, len(members), size)]
    if generator is None:
        return buckets
    return [buckets[index] for index in torch.randperm(len(buckets), generator=generator).tolist()]


def batches_by_length(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Returns batches of sentence indices, short sentences first, with little padding; for prediction.

    Args:
        lengths: number of words of each sentence.
        tokens: batch size in words, padding included; a sentence with more words is a batch of its own.

    Example:
        >>> batches_by_length([3, 20, 5, 1], tokens=16)
        [[3, 0, 2], [1]]
    """
    groups: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        # Sorted by length, so this sentence would be the longest of its batch.
        if not groups or (len(groups[-1]) + 1) * lengths[index] > tokens:
            groups.append([])
        groups[-1].append(index)
    return groups
