"""Sentences as tensors, ready for batching."""

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
from linearcore.tagging.encoders import Encoder, WordFeatures

#: The words of a sentence and their tags.
TaggedSentence = tuple[Sequence[str], Sequence[str]]


class Batch(NamedTuple):
    """A batch of padded sentences on one device.

    Attributes:
        mask: (B, L), True at words; padding is at the end of each row.
        inputs: keyword arguments of the encoder.
        tags: (B, L), `IGNORED` at padding and at tags that do not occur in the training data.
    """

    mask: Tensor
    inputs: dict[str, Tensor]
    tags: Tensor

    def to(self, device: torch.device) -> "Batch":
        """Returns the batch on a device; copies from pinned memory do not synchronise with the GPU."""
        if device.type == "cpu":
            return self
        inputs = {name: _to_device(tensor, device) for name, tensor in self.inputs.items()}
        return Batch(_to_device(self.mask, device), inputs, _to_device(self.tags, device))


def _to_device(tensor: Tensor, device: torch.device) -> Tensor:
    return tensor.pin_memory().to(device, non_blocking=True)


@dataclass(frozen=True)
class Corpus:
    """Sentences as tensors.

    Attributes:
        encoder: the encoder that made the features.
        features: word features of each sentence, from `Encoder.featurize`.
        tags: (n,) per sentence, `UNSEEN` for a tag that does not occur in the training data.
    """

    encoder: Encoder
    features: list[WordFeatures]
    tags: list[Tensor]

    @classmethod
    def of(cls, sentences: Iterable[TaggedSentence], vocabulary: Vocabulary, encoder: Encoder) -> "Corpus":
        """Computes word features and tag indices of all sentences, once."""
        pairs = [(encoder.featurize(words), torch.tensor(vocabulary.encode(tags))) for words, tags in sentences]
        return cls(encoder, [features for features, _ in pairs], [tags for _, tags in pairs])

    def __len__(self) -> int:
        return len(self.tags)

    @property
    def lengths(self) -> list[int]:
        """Number of words of each sentence."""
        return [len(tags) for tags in self.tags]

    def batch(self, bucket: Bucket, *, full: bool = False) -> Batch:
        """Returns the sentences of a bucket, on the CPU.

        Args:
            bucket: indices of the sentences and the padded length.
            full: add empty sentences until there are `bucket.size` rows, so batches have few different shapes.
        """
        rows = [self.tags[member] for member in bucket.members]
        features = [self.features[member] for member in bucket.members]
        if full and len(rows) < bucket.size:
            features += [self.encoder.featurize([])] * (bucket.size - len(rows))
            rows += [torch.zeros(0, dtype=torch.long)] * (bucket.size - len(rows))
        tags = torch.full((len(rows), bucket.length), IGNORED)
        padded = pad_sequence(rows, batch_first=True, padding_value=IGNORED)
        tags[:, : padded.shape[1]] = padded.masked_fill(padded == UNSEEN, IGNORED)
        mask = torch.arange(bucket.length) < torch.tensor([len(row) for row in rows]).unsqueeze(-1)
        return Batch(mask, self.encoder.collate(features, bucket.length), tags)


def digest(sentences: Iterable[TaggedSentence]) -> str:
    """Returns a short hash of the words and tags of the sentences, in order."""
    sha256 = hashlib.sha256()
    for words, tags in sentences:
        sha256.update("\x1f".join([*words, "\x1e", *tags, "\x1d"]).encode("utf-8", "surrogatepass"))
    return sha256.hexdigest()[:16]


def split_dev(sentences: Sequence[TaggedSentence], every: int = 10) -> tuple[list[TaggedSentence], list[TaggedSentence]]:
    """Splits sentences into training and validation sentences; every tenth is a validation sentence.

    Raises:
        ValueError: if there are fewer than `every` sentences.
    """
    if len(sentences) < every:
        advice = "pass a validation file (--dev)"
        raise ValueError(complaint("sentences", f"be at least {every} for a validation split", len(sentences), advice))
    parts: tuple[list[TaggedSentence], list[TaggedSentence]] = ([], [])
    for number, sentence in enumerate(sentences, 1):
        parts[number % every == 0].append(sentence)
    return parts
