"""Base class of the encoders."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from linearcore._checks import complaint
from linearcore.tagging._schedule import Schedule
from linearcore.tagging._vocabulary import Vocabulary

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
        takes_path: whether `--encoder` names a pre-trained model: "kind:PATH" instead of "kind".
        settings: the fields of `Training` that only some encoders take and this one does, with their defaults.
        default_lr: default of the field `lr`.
        schedule: defaults of the fields `batch_tokens`, `epochs` and `patience`.
        has_few_shapes: whether batches of the same padded size have inputs of the same shapes, so that training steps can
            be replayed as CUDA graphs.
        width: size of a hidden state.
    """

    kind: ClassVar[str]
    input_axes: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    takes_path: ClassVar[bool] = False
    settings: ClassVar[Mapping[str, Any]] = {}
    default_lr: ClassVar[float]
    schedule: ClassVar[Schedule]
    has_few_shapes: ClassVar[bool] = False
    width: int

    @classmethod
    @abstractmethod
    def from_settings(cls, vocabulary: Vocabulary, path: str = "", **settings: Any) -> Self:
        """Returns a new encoder for training.

        Args:
            vocabulary: words and tags of the training sentences.
            path: the pre-trained model, if `takes_path`.
            settings: values for the names in `cls.settings`.
        """

    def extend(self, vocabulary: Vocabulary) -> Self:
        """Returns the encoder with more words, to continue training on other sentences. The weights are kept.

        Args:
            vocabulary: the words of this encoder, in the same order, and new words after them.
        """
        # Encoders without a table of words, such as transformers, know all words.
        return self

    @abstractmethod
    def featurize(self, words: Sequence[str]) -> WordFeatures:
        """Returns the features of a sentence. Words may be unknown, that is, not in the training data."""

    @abstractmethod
    def collate(self, sentences: Sequence[WordFeatures], length: int) -> dict[str, Tensor]:
        """Returns the keyword arguments of `forward` for a batch, on the CPU, padded to `length` words."""

    @abstractmethod
    def save(self, folder: Path) -> dict[str, Any]:
        """Writes files other than weights, such as a tokenizer, into `folder`; returns JSON values for `load`."""

    def lookup(self) -> dict[str, Any]:
        """Returns JSON values from which `linearcore.tagging.export.make_inputs` computes the inputs without torch.

        Raises:
            ValueError: if the encoder cannot be exported, which is the default.
        """
        must = "be 'bilstm' or 'transformer' for export"
        raise ValueError(complaint("encoder", must, repr(self.kind), "implement `lookup` and `input_axes`"))

    @classmethod
    @abstractmethod
    def load(cls, folder: Path, settings: dict[str, Any]) -> Self:
        """Returns the encoder with weights that are not loaded yet.

        Raises:
            ValueError, OSError: if the settings or the files are not those of `save`.
        """


@torch.no_grad()
def copy_leading_rows(target: nn.Module, source: nn.Module) -> None:
    """Copies parameters to a module of the same structure with more rows or columns, whose other entries are not changed.

    Example:
        >>> small, large = nn.Linear(2, 3), nn.Linear(2, 5)
        >>> copy_leading_rows(large, small)
        >>> torch.equal(large.weight[:3], small.weight)
        True
    """
    parameters = dict(target.named_parameters())
    for name, values in source.named_parameters():
        parameters[name][tuple(slice(size) for size in values.shape)] = values
