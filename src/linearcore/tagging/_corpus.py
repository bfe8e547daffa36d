"""Sentences as numbers, ready to be put into batches."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from linearcore._checks import complaint
from linearcore.tagging._batches import Bucket
from linearcore.tagging._model import IGNORED
from linearcore.tagging._vocabulary import UNSEEN, Vocabulary
from linearcore.tagging.encoders import Encoder, Numbers

#: A sentence: its words and their tags.
Tagged = tuple[Sequence[str], Sequence[str]]


class Batch(NamedTuple):
    """Sentences side by side, on one device.

    Attributes:
        mask: (B, L), True at words, which are in front.
        inputs: what the encoder takes.
        tags: (B, L), `IGNORED` at padding and at tags that training has not.
    """

    mask: Tensor
    inputs: dict[str, Tensor]
    tags: Tensor

    def to(self, device: torch.device) -> "Batch":
        """The same on a device; from pinned memory without waiting."""
        if device.type == "cpu":
            return self
        moved = [_moved(tensor, device) for tensor in (self.mask, self.tags)]
        return Batch(moved[0], {name: _moved(tensor, device) for name, tensor in self.inputs.items()}, moved[1])


def _moved(tensor: Tensor, device: torch.device) -> Tensor:
    return tensor.pin_memory().to(device, non_blocking=True)


@dataclass(frozen=True)
class Corpus:
    """Sentences as numbers.

    Attributes:
        numbers: each as its encoder sees it.
        tags: (n,) each, `UNSEEN` for a tag that training has not.
    """

    encoder: Encoder
    numbers: list[Numbers]
    tags: list[Tensor]

    @classmethod
    def of(cls, sentences: Iterable[Tagged], vocabulary: Vocabulary, encoder: Encoder) -> "Corpus":
        """Looks everything up, once."""
        pairs = [(encoder.numbers(words), torch.tensor(vocabulary.encode(tags))) for words, tags in sentences]
        return cls(encoder, [numbers for numbers, _ in pairs], [tags for _, tags in pairs])

    def __len__(self) -> int:
        return len(self.tags)

    @property
    def lengths(self) -> list[int]:
        """Words of each sentence."""
        return [len(tags) for tags in self.tags]

    def batch(self, bucket: Bucket, *, full: bool = False) -> Batch:
        """The sentences of a bucket, on the CPU.

        Args:
            full: add empty sentences until there are `bucket.size` rows, so that one shape comes back again and again.
        """
        rows = [self.tags[member] for member in bucket.members]
        numbers = [self.numbers[member] for member in bucket.members]
        if full and len(rows) < bucket.size:
            numbers += [self.encoder.numbers([])] * (bucket.size - len(rows))
            rows += [torch.zeros(0, dtype=torch.long)] * (bucket.size - len(rows))
        tags = torch.full((len(rows), bucket.length), IGNORED)
        found = pad_sequence(rows, batch_first=True, padding_value=IGNORED)
        tags[:, : found.shape[1]] = found.masked_fill(found == UNSEEN, IGNORED)
        mask = torch.arange(bucket.length) < torch.tensor([len(row) for row in rows]).unsqueeze(-1)
        return Batch(mask, self.encoder.collate(numbers, bucket.length), tags)


def digest(sentences: Iterable[Tagged]) -> str:
    """A short name of the sentences: the same words and tags in the same order have the same."""
    found = hashlib.sha256()
    for words, tags in sentences:
        found.update("\x1f".join([*words, "\x1e", *tags, "\x1d"]).encode("utf-8", "surrogatepass"))
    return found.hexdigest()[:16]


def split_dev(sentences: Sequence[Tagged], every: int = 10) -> tuple[list[Tagged], list[Tagged]]:
    """Training and dev sentences where there is one file: every tenth is held out.

    Raises:
        ValueError: if there are too few.
    """
    if len(sentences) < every:
        advice = "pass dev sentences of your own (--dev)"
        raise ValueError(complaint("sentences", f"be {every} at the least to hold some out", len(sentences), advice))
    parts: tuple[list[Tagged], list[Tagged]] = ([], [])
    for place, sentence in enumerate(sentences, 1):
        parts[place % every == 0].append(sentence)
    return parts
