"""A tagging model: encoder, projection to tags, and head."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from linearcore.tagging._composition import Composition
from linearcore.tagging._decoding import best_tags
from linearcore.tagging._heads import HeadSettings
from linearcore.tagging.encoders import Encoder

#: Index of padding and of tags that do not occur in the training data; the default `ignore_index` of PyTorch.
IGNORED = -100
#: Number of emission scores in a batch from which a head computes them in chunks and keeps none: 256 MiB in float32.
LARGE_EMISSIONS = 2**26


class TaggingModel(nn.Module):
    """A sequence tagger: an encoder, a linear projection and a chain head, or token cross-entropy without a chain.

    Args:
        encoder: computes hidden states of words.
        tags: names of the tags, or their number |Y|; `constraints` and `cost` need the names.
        loss: "lc", "crf", "ssvm" or "ce".
        composition: the parts of the tags, whose scores are summed; None gives each tag a score of its own.
        options: options of the head, as in `HeadSettings`: rank, unary, sharpness, beam, constraints, cost.
    """

    def __init__(
        self,
        encoder: Encoder,
        tags: Sequence[str] | int,
        loss: str = "lc",
        *,
        composition: Composition | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        self._settings = HeadSettings(loss, **options)
        num_tags = tags if isinstance(tags, int) else len(tags)
        self.encoder = encoder
        self.projection = nn.Linear(encoder.width, num_tags)
        # Tags are checked when they are read; checking them here would synchronise with the GPU.
        self.head = self._settings.make_head(tags, validate=False)
        self.beam = self._settings.beam_width(num_tags)
        self.cost = self._settings.make_cost(tags)
        self.composition = composition
        if composition is not None:
            composition.apply(self.projection, self.head)

    @property
    def device(self) -> torch.device:
        """The device of the parameters."""
        # Not `projection.weight`: to read a composed parameter computes it, with random numbers in training.
        return next(self.parameters()).device

    def settings(self) -> dict[str, Any]:
        """Returns the arguments after `tags`, as JSON values."""
        return self._settings.head_options()

    def emissions(self, mask: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        """Returns the emission scores (B, L, |Y|)."""
        scores: Tensor = self.projection(self.encoder(mask, **inputs))
        return scores

    def forward(self, mask: Tensor, inputs: Mapping[str, Tensor], tags: Tensor) -> Tensor:
        """Returns the mean loss per tag; `tags` (B, L) are `IGNORED` where `mask` is False."""
        return self.loss(self.encoder(mask, **inputs), mask, tags)

    def loss(self, hidden: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        """Returns the mean loss per tag from hidden states (B, L, width). This part is compiled; the encoder is not.

        With `LARGE_EMISSIONS` or more, `linear_loss` of the head computes them in chunks. The result is the same. With a
        cost all are kept, since the search for candidates needs them.
        """
        if self.head is not None and self.cost is None and self._is_large(hidden, self.head.num_tags):
            return self.head.linear_loss(hidden, self.projection, tags, mask)
        emissions: Tensor = self.projection(hidden)
        if self.head is None:
            return F.cross_entropy(emissions.flatten(0, 1).float(), tags.flatten(), ignore_index=IGNORED)
        # The mask marks the same positions as the tags, and it is cheaper for the head to use.
        head: Any = self.head
        loss: Tensor
        if self.cost is None:
            loss = head.loss(emissions, tags, mask)
        else:  # `HEADS` says which heads take a cost; those have a `candidate_loss`.
            loss = head.candidate_loss(emissions, tags, mask, cost=self.cost)
        return loss

    @staticmethod
    def _is_large(hidden: Tensor, num_tags: int) -> bool:
        return not torch.compiler.is_compiling() and hidden.shape[:2].numel() * num_tags >= LARGE_EMISSIONS

    @torch.no_grad()
    def decode(self, mask: Tensor, inputs: Mapping[str, Tensor]) -> Tensor:
        """Returns the best tags (B, L); `IGNORED` where `mask` is False."""
        return best_tags(self.head, self.emissions(mask, inputs).float(), mask, self.beam)
