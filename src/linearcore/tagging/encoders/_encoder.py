"""What the tagger asks of an encoder."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import Tensor, nn

#: A sentence as an encoder sees it: tensors on the CPU whose first dimension is the encoder's own business.
WordFeatures = tuple[Tensor, ...]


class Encoder(nn.Module, ABC):
    """Hidden states (B, L, width), one for each word.

    Three steps, so that the first is done once a sentence and not once an epoch:

        numbers = [encoder.featurize(words) for words in sentences]       # look up, spell, cut into sub-words
        inputs = encoder.collate(numbers, length=max(map(len, sentences)))   # tensors of one batch, padded
        hidden = encoder(mask, **inputs)                                # mask (B, L), True at words

    What stands at positions that are off in `mask` is arbitrary, and finite.

    Attributes:
        kind: its name in saved models and on the command line.
        width: of the hidden states.
    """

    kind: ClassVar[str]
    width: int

    @abstractmethod
    def featurize(self, words: Sequence[str]) -> WordFeatures:
        """A sentence as tensors. Words may be anything, also what training has never seen."""

    @abstractmethod
    def collate(self, sentences: Sequence[WordFeatures], length: int) -> dict[str, Tensor]:
        """The keyword arguments of `forward` for a batch, on the CPU, padded to `length` words."""

    @abstractmethod
    def save(self, folder: Path) -> dict[str, Any]:
        """Writes what it needs besides weights, if anything, into `folder`; returns JSON values that `load` takes."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path, settings: dict[str, Any]) -> Self:
        """The same encoder with weights yet to be filled in.

        Raises:
            ValueError, OSError: if the settings or the files are not what `save` wrote.
        """
