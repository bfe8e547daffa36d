"""Bidirectional LSTM over words and their spelling."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from linearcore._checks import complaint
from linearcore.tagging._schedule import Schedule
from linearcore.tagging._vocabulary import Vocabulary
from linearcore.tagging.encoders._encoder import Encoder, WordFeatures, copy_leading_rows
from linearcore.tagging.encoders._spelling import FEATURES, spelling
from linearcore.tagging.encoders._vectors import WordVectors

#: Indices of padding and of unknown words.
PADDING, UNKNOWN = 0, 1
_FIRST_WORD = 2
#: In training, a word with count c is replaced by UNKNOWN with probability α/(α + c), so the model learns to tag unknown
#: words. This is α.
_WORD_DROPOUT = 0.25
#: Default number of pre-trained vectors that are kept.
MAX_VECTORS = 100_000


class BiLSTM(Encoder):
    """Bidirectional LSTM over embeddings of words and of their spelling.

    The paper's encoder has 128-dimensional word embeddings, 256 hidden units per direction, one layer, and no spelling
    features: `characters=False`. With `characters=True` the embeddings of a word's prefixes, suffixes and shape are summed
    and concatenated to its word embedding, which helps with unknown and inflected words. Prefer `TransformerEncoder` if
    there is a pre-trained model for the language and a GPU.

    Args:
        words: distinct words of the training sentences.
        counts: number of occurrences of each word, for word dropout in training; None disables word dropout.
        characters: use spelling features.
        embedding, spelling: sizes of the word and spelling embeddings.
        hidden: hidden units per direction.
        layers: number of LSTM layers.
        dropout: dropout of the embeddings, between layers, and of the output.
        buckets: number of rows of the table of hashed spelling features.
        vectors: pre-trained word vectors, which are concatenated to the embeddings and not trained. Word dropout does not
            apply to them, so the model learns to tag words that have a vector but do not occur in the training data.

    Example:
        >>> encoder = BiLSTM(["the", "cat", "sat"])
        >>> sentences = [["the", "cat", "sat"], ["the", "mat"]]
        >>> inputs = encoder.collate([encoder.featurize(words) for words in sentences], length=3)
        >>> encoder(torch.tensor([[True, True, True], [True, True, False]]), **inputs).shape
        torch.Size([2, 3, 512])

    Time O(B·L·(4·hidden)·(input + hidden)); the L steps of each direction are sequential.
    """

    kind = "bilstm"
    settings: ClassVar = {
        "characters": True, "embedding": 128, "hidden": 256, "layers": 1, "dropout": 0.5,
        "vectors": None, "max_vectors": None,
    }  # fmt: skip
    default_lr = 3e-3
    schedule = Schedule(batch_tokens=(64, 400), epochs=(12, 40), min_steps=1500)
    has_few_shapes = True
    input_axes: ClassVar = {"words": ("batch", "length"), "spelling": ("batch", "length"), "vectors": ("batch", "length")}
    hiding: Tensor

    def __init__(
        self,
        words: Sequence[str],
        counts: Sequence[int] | None = None,
        *,
        characters: bool = True,
        embedding: int = 128,
        spelling: int = 64,
        hidden: int = 256,
        layers: int = 1,
        dropout: float = 0.3,
        buckets: int = 2**16,
        vectors: WordVectors | None = None,
    ) -> None:
        super().__init__()
        if counts is not None and len(counts) != len(words):
            raise ValueError(
                complaint("counts", f"have one count for each of {len(words)} words", len(counts), "pass one count per word")
            )
        self._settings: dict[str, Any] = {
            "words": list(words), "characters": characters, "embedding": embedding, "spelling": spelling, "hidden": hidden,
            "layers": layers, "dropout": dropout, "buckets": buckets,
        }  # fmt: skip
        self.buckets = buckets
        self.width = 2 * hidden
        self._word_ids = {word: index for index, word in enumerate(words, _FIRST_WORD)}
        self.words = nn.Embedding(len(words) + _FIRST_WORD, embedding, padding_idx=PADDING)
        self.vectors = vectors
        self.spelling = nn.Embedding(buckets + 1, spelling, padding_idx=0) if characters else None
        if self.spelling is not None:
            # Scaled so the sum of all features has about the norm of a word embedding.
            nn.init.normal_(self.spelling.weight, 0.0, FEATURES**-0.5)
            with torch.no_grad():
                self.spelling.weight[0] = 0.0
        input_size = embedding + (spelling if characters else 0) + (0 if vectors is None else vectors.size)
        sizes = [input_size, *([self.width] * (layers - 1))]
        # Two LSTMs per layer instead of a bidirectional one; `_reversal_index` gives the reason.
        self.forth = nn.ModuleList(nn.LSTM(size, hidden, batch_first=True) for size in sizes)
        self.back = nn.ModuleList(nn.LSTM(size, hidden, batch_first=True) for size in sizes)
        self.dropout = nn.Dropout(dropout)
        probabilities = [0.0] * _FIRST_WORD + [_WORD_DROPOUT / (_WORD_DROPOUT + count) for count in counts or []]
        hiding = torch.tensor(probabilities) if counts is not None else torch.zeros(len(words) + _FIRST_WORD)
        self.register_buffer("hiding", hiding)

    @classmethod
    def from_settings(cls, vocabulary: Vocabulary, path: str = "", **settings: Any) -> Self:
        words, file, limit = vocabulary.words, settings.pop("vectors", None), settings.pop("max_vectors", None)
        vectors = None if file is None else WordVectors.read(file, limit or MAX_VECTORS)
        if vectors is not None and not any(vectors.ids(words)):
            advice = "pass vectors of the language of the training data"
            raise ValueError(complaint("vectors", "have words of the training data", f"none of {len(words)}", advice))
        return cls(words, vocabulary.counts, buckets=_num_buckets(len(words)), vectors=vectors, **settings)

    def extend(self, vocabulary: Vocabulary) -> Self:
        settings = self._settings | {"words": vocabulary.words}
        extended = type(self)(**settings, counts=vocabulary.counts, vectors=self.vectors)
        copy_leading_rows(extended, self)
        return extended

    def featurize(self, words: Sequence[str]) -> WordFeatures:
        features = [torch.tensor([self._word_ids.get(word, UNKNOWN) for word in words], dtype=torch.int32)]
        if self.spelling is not None:
            rows = [spelling(word, self.buckets) for word in words]
            features.append(torch.tensor(rows, dtype=torch.int32).view(-1, FEATURES))
        if self.vectors is not None:
            features.append(torch.tensor(self.vectors.ids(words), dtype=torch.int32))
        return tuple(features)

    def collate(self, sentences: Sequence[WordFeatures], length: int) -> dict[str, Tensor]:
        has_input = {"words": True, "spelling": self.spelling is not None, "vectors": self.vectors is not None}
        names = [name for name, has in has_input.items() if has]
        return {name: _pad([sentence[i] for sentence in sentences], length) for i, name in enumerate(names)}

    def forward(
        self, mask: Tensor, *, words: Tensor, spelling: Tensor | None = None, vectors: Tensor | None = None
    ) -> Tensor:
        """Returns hidden states (B, L, 2·hidden) from words (B, L), spelling (B, L, FEATURES) and rows of vectors (B, L).

        Padding must be at the end of each row of `mask`.

        Raises:
            ValueError: if `spelling` or `vectors` is missing, or given although the encoder does not have it.
        """
        for name, ids, table in (("spelling", spelling, self.spelling), ("vectors", vectors, self.vectors)):
            if (ids is None) != (table is None):
                must = f"be {'None' if table is None else 'a tensor'} for this encoder"
                raise ValueError(complaint(name, must, type(ids).__name__, "pass the output of `collate`"))
        words = words.long()
        if self.training:
            words = torch.where(torch.rand_like(self.hiding[words]) < self.hiding[words], UNKNOWN, words)
        states: Tensor = self.words(words)
        if self.spelling is not None and spelling is not None:
            states = torch.cat([states, self.spelling(spelling.long()).sum(-2)], -1)
        if self.vectors is not None and vectors is not None:
            states = torch.cat([states, self.vectors(vectors.long())], -1)
        order = _reversal_index(mask)
        for forth, back in zip(self.forth, self.back, strict=True):
            states = self.dropout(states)
            states = torch.cat([forth(states)[0], _reorder(back(_reorder(states, order))[0], order)], -1)
        return self.dropout(states)  # type: ignore[no-any-return]

    def save(self, folder: Path) -> dict[str, Any]:
        if self.vectors is None:
            return dict(self._settings)
        self.vectors.save(folder)
        return self._settings | {"has_vectors": True}

    def lookup(self) -> dict[str, Any]:
        """Returns the words from `first_word` on, the number of unknown words, the buckets of spelling features, and the
        words of pre-trained vectors, from 1 on; buckets or vectors are None where the encoder has none."""
        return {
            "words": list(self._word_ids),
            "first_word": _FIRST_WORD,
            "unknown": UNKNOWN,
            "buckets": None if self.spelling is None else self.buckets,
            "vectors": None if self.vectors is None else self.vectors.words,
        }

    @classmethod
    def load(cls, folder: Path, settings: dict[str, Any]) -> Self:
        arguments = {name: value for name, value in settings.items() if name != "has_vectors"}
        return cls(**arguments, vectors=WordVectors.load(folder) if settings.get("has_vectors") else None)


def _num_buckets(num_words: int) -> int:
    """Returns the size of the spelling table: about the number of different prefixes and suffixes, between 2¹⁰ and 2¹⁶."""
    return min(2**16, max(2**10, 1 << (8 * num_words - 1).bit_length()))


def _pad(rows: Sequence[Tensor], length: int) -> Tensor:
    """Pads the rows to (B, length, …)."""
    padded = pad_sequence(list(rows), batch_first=True)
    if padded.shape[1] >= length:
        return padded
    return torch.cat([padded, padded.new_zeros(padded.shape[0], length - padded.shape[1], *padded.shape[2:])], 1)


def _reversal_index(mask: Tensor) -> Tensor:
    """Returns indices (B, L) that reverse the words of each sentence and leave the padding at the end.

    The backward direction of a bidirectional LSTM would start at the padding, unless the sequence is packed, which
    synchronises with the GPU to read the lengths. After the reversal the words come first, so padding has no effect.
    """
    positions = torch.arange(mask.shape[1], device=mask.device)
    return torch.where(mask, mask.sum(1, keepdim=True) - 1 - positions, positions)


def _reorder(states: Tensor, order: Tensor) -> Tensor:
    return states.gather(1, order.unsqueeze(-1).expand_as(states))
