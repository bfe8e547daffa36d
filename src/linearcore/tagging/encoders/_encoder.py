"""Base class of the encoders."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import Tensor, nn

from linearcore._checks import complaint
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
        settings: the fields of `Training` that only some encoders take and this one does.
        default_lr, default_batch_tokens, default_epochs: defaults of the fields `lr`, `batch_tokens` and `epochs`.
        has_few_shapes: whether batches of the same padded size have inputs of the same shapes, so that training steps can
            be replayed as CUDA graphs.
        width: size of a hidden state.
    """

    kind: ClassVar[str]
    input_axes: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    takes_path: ClassVar[bool] = False
    settings: ClassVar[tuple[str, ...]] = ()
    default_lr: ClassVar[float]
    default_batch_tokens: ClassVar[int]
    default_epochs: ClassVar[int]
    has_few_shapes: ClassVar[bool] = False
    width: int

    @classmethod
    @abstractmethod
    def from_settings(cls, vocabulary: Vocabulary, path: str = "", **settings: Any) -> Self:
        """Returns a new encoder for training.

        Args:
            vocabulary: words and tags of the training sentences.
            path: the pre-trained model, if `takes_path`.
            settings: values for the names in `cls.settings`; a name that is missing has the encoder's default.
        """

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
