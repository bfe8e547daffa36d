"""A bidirectional LSTM over words and their spelling."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from linearcore._checks import complaint
from linearcore.tagging.encoders._encoder import Encoder, WordFeatures
from linearcore.tagging.encoders._spelling import FEATURES, spelling

#: WordFeatures of words: padding, and every word that training has not.
PADDING, UNKNOWN = 0, 1
_FIRST = 2
#: A word seen c times in training is hidden from the network with probability α/(α + c), so that it learns what to do with
#: words that it has never seen.
_HIDDEN = 0.25


class BiLSTM(Encoder):
    """Embeddings of words, and of their spelling, through LSTMs in both directions.

    The paper's encoder has embeddings of 128 numbers, 256 hidden units in each direction, one layer, and words only:
    `characters=False`. With characters, a word's endings, beginnings and shape have embeddings as well, whose sum stands
    beside the word's own: unknown and inflected words are tagged by what they look like.

    Args:
        words: distinct words of the training sentences.
        counts: how often each occurs; None hides no word in training.
        characters: look at the spelling, too.
        embedding, spelling: width of the embeddings of words and of spelling.
        hidden: units in each direction.
        layers: of LSTMs.
        dropout: of the embeddings, between layers, and of what comes out.
        buckets: rows of the table of hashed spelling.

    Example:
        >>> encoder = BiLSTM(["the", "cat", "sat"])
        >>> sentences = [["the", "cat", "sat"], ["the", "mat"]]
        >>> inputs = encoder.collate([encoder.featurize(words) for words in sentences], length=3)
        >>> encoder(torch.tensor([[True, True, True], [True, True, False]]), **inputs).shape
        torch.Size([2, 3, 512])

    Time O(B·L·(4·hidden)·(input + hidden)); the L steps of each direction follow one another.
    """

    kind = "bilstm"
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
    ) -> None:
        super().__init__()
        if counts is not None and len(counts) != len(words):
            raise ValueError(complaint("counts", f"be one for each of {len(words)} words", len(counts), "count them again"))
        self._settings = {
            "words": list(words), "characters": characters, "embedding": embedding, "spelling": spelling, "hidden": hidden,
            "layers": layers, "dropout": dropout, "buckets": buckets,
        }  # fmt: skip
        self.buckets = buckets
        self.width = 2 * hidden
        self._places = {word: place for place, word in enumerate(words, _FIRST)}
        self.words = nn.Embedding(len(words) + _FIRST, embedding, padding_idx=PADDING)
        self.spelling = nn.Embedding(buckets + 1, spelling, padding_idx=0) if characters else None
        if self.spelling is not None:
            # A sum of many: each a little, so that the sum is about as large as a word's embedding.
            nn.init.normal_(self.spelling.weight, 0.0, FEATURES**-0.5)
            with torch.no_grad():
                self.spelling.weight[0] = 0.0
        sizes = [embedding + (spelling if characters else 0), *([self.width] * (layers - 1))]
        # Two LSTMs a layer and not a bidirectional one: see `_reversed`.
        self.forth = nn.ModuleList(nn.LSTM(size, hidden, batch_first=True) for size in sizes)
        self.back = nn.ModuleList(nn.LSTM(size, hidden, batch_first=True) for size in sizes)
        self.dropout = nn.Dropout(dropout)
        chances = [0.0] * _FIRST + [_HIDDEN / (_HIDDEN + count) for count in counts or []]
        hiding = torch.tensor(chances) if counts is not None else torch.zeros(len(words) + _FIRST)
        self.register_buffer("hiding", hiding)

    def featurize(self, words: Sequence[str]) -> WordFeatures:
        places = torch.tensor([self._places.get(word, UNKNOWN) for word in words], dtype=torch.int32)
        if self.spelling is None:
            return (places,)
        return places, torch.tensor([spelling(word, self.buckets) for word in words], dtype=torch.int32).view(-1, FEATURES)

    def collate(self, sentences: Sequence[WordFeatures], length: int) -> dict[str, Tensor]:
        names = ("words",) if self.spelling is None else ("words", "spelling")
        return {name: _padded([sentence[i] for sentence in sentences], length) for i, name in enumerate(names)}

    def forward(self, mask: Tensor, *, words: Tensor, spelling: Tensor | None = None) -> Tensor:
        """(B, L, 2·hidden) from words (B, L) and their spelling (B, L, FEATURES); `mask` has its words in front.

        Raises:
            ValueError: if the spelling is missing, or not wanted.
        """
        if (spelling is None) != (self.spelling is None):
            must = "be None without characters" if self.spelling is None else "be there"
            raise ValueError(complaint("spelling", must, type(spelling).__name__, "take what `collate` gives"))
        words = words.long()
        if self.training:
            words = torch.where(torch.rand_like(self.hiding[words]) < self.hiding[words], UNKNOWN, words)
        states: Tensor = self.words(words)
        if self.spelling is not None and spelling is not None:
            states = torch.cat([states, self.spelling(spelling.long()).sum(-2)], -1)
        order = _reversed(mask)
        for forth, back in zip(self.forth, self.back, strict=True):
            states = self.dropout(states)
            states = torch.cat([forth(states)[0], _reordered(back(_reordered(states, order))[0], order)], -1)
        return self.dropout(states)  # type: ignore[no-any-return]

    def save(self, folder: Path) -> dict[str, Any]:
        return dict(self._settings)

    @classmethod
    def load(cls, folder: Path, settings: dict[str, Any]) -> Self:
        return cls(**settings)


def _padded(rows: Sequence[Tensor], length: int) -> Tensor:
    """(B, length, …)."""
    found = pad_sequence(list(rows), batch_first=True)
    if found.shape[1] >= length:
        return found
    return torch.cat([found, found.new_zeros(found.shape[0], length - found.shape[1], *found.shape[2:])], 1)


def _reversed(mask: Tensor) -> Tensor:
    """(B, L): for each place the one with which it changes when the words of each sentence are turned round.

    A bidirectional LSTM would begin at the padding of a short sentence, unless it is packed, which has to read lengths from
    the device. Turned round, words are in front again, and whatever follows them changes nothing.
    """
    places = torch.arange(mask.shape[1], device=mask.device)
    return torch.where(mask, mask.sum(1, keepdim=True) - 1 - places, places)


def _reordered(states: Tensor, order: Tensor) -> Tensor:
    return states.gather(1, order.unsqueeze(-1).expand_as(states))
