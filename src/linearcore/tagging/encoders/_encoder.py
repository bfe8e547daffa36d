"""Base class of the encoders."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import Tensor, nn

#: Features of one sentence: tensors on the CPU; their shapes depend on the encoder.
WordFeatures = tuple[Tensor, ...]


class Encoder(nn.Module, ABC):
    """Base class of encoders, which compute one hidden state per word: (B, L, width).

    An encoder works in three steps. The first is done once per sentence, not once per epoch.

        features = [encoder.featurize(words) for words in sentences]          # word indices, spelling, sub-words
        inputs = encoder.collate(features, length=max(map(len, sentences)))   # padded tensors of a batch
        hidden = encoder(mask, **inputs)                                      # mask (B, L), True at words

    Hidden states where `mask` is False are arbitrary but finite.

    Attributes:
        kind: name of the encoder in saved models and on the command line.
        input_axes: names of the axes of each input of `forward` that depend on the batch, for `Tagger.export`.
        width: size of a hidden state.
    """

    kind: ClassVar[str]
    input_axes: ClassVar[Mapping[str, tuple[str, ...]]]
    width: int

    @abstractmethod
    def featurize(self, words: Sequence[str]) -> WordFeatures:
        """Returns the features of a sentence. Words may be unknown, that is, not in the training data."""

    @abstractmethod
    def collate(self, sentences: Sequence[WordFeatures], length: int) -> dict[str, Tensor]:
        """Returns the keyword arguments of `forward` for a batch, on the CPU, padded to `length` words."""

    @abstractmethod
    def save(self, folder: Path) -> dict[str, Any]:
        """Writes files other than weights, such as a tokenizer, into `folder`; returns JSON values for `load`."""

    @abstractmethod
    def lookup(self) -> dict[str, Any]:
        """Returns JSON values from which `linearcore.tagging.export.make_inputs` computes the inputs without torch."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path, settings: dict[str, Any]) -> Self:
        """Returns the encoder with weights that are not loaded yet.

        Raises:
            ValueError, OSError: if the settings or the files are not those of `save`.
        """
