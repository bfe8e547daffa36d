"""An encoder, a projection to tags, and the loss on top."""

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from linearcore.tagging._heads import HeadSettings
from linearcore.tagging.encoders import Encoder

#: A padded position, and a tag that training has not; torch's and Hugging Face's number for it.
IGNORED = -100


class TaggingModel(nn.Module):
    """Tags of sentences from an encoder's hidden states, by a linear chain or each on its own.

    Args:
        encoder: hidden states of words.
        num_tags: |Y|.
        loss: "lc", "crf", "ssvm" or "ce".
        options: of the head, as in `HeadSettings`: rank, unary, sharpness, beam.
    """

    def __init__(self, encoder: Encoder, num_tags: int, loss: str = "lc", **options: Any) -> None:
        super().__init__()
        self._settings = HeadSettings(loss, **options)
        self.encoder = encoder
        self.projection = nn.Linear(encoder.width, num_tags)
        # What the numbers are is checked where they are read; here a look would wait for the device.
        self.head = self._settings.make_head(num_tags, validate=False)
        self.beam = self._settings.width(num_tags)

    def settings(self) -> dict[str, Any]:
        """The arguments after `num_tags`, as JSON values."""
        return self._settings.head_options()

    def emissions(self, mask: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        """(B, L, |Y|)."""
        found: Tensor = self.projection(self.encoder(mask, **inputs))
        return found

    def forward(self, mask: Tensor, inputs: Mapping[str, Tensor], tags: Tensor) -> Tensor:
        """The mean loss of a tag; `tags` (B, L) are `IGNORED` where `mask` is off."""
        return self.loss(self.encoder(mask, **inputs), mask, tags)

    def loss(self, hidden: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        """The same from hidden states (B, L, width); apart, since a compiler has more to gain here than in an LSTM."""
        emissions: Tensor = self.projection(hidden)
        if self.head is None:
            return F.cross_entropy(emissions.flatten(0, 1).float(), tags.flatten(), ignore_index=IGNORED)
        # `mask` is prefix-shaped and tells the head the same as the tags do, at less cost.
        loss: Tensor = self.head.loss(emissions, tags, mask)
        return loss

    @torch.no_grad()
    def decode(self, mask: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        """(B, L): the best tags; `IGNORED` where `mask` is off."""
        emissions = self.emissions(mask, inputs).float()
        if self.head is None:
            return emissions.argmax(-1).masked_fill(~mask, IGNORED)
        return (self.head.beam(emissions, self.beam, mask) if self.beam else self.head.viterbi(emissions, mask))[0]
