"""An encoder, a projection to tags, and the loss on top."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from linearcore._checks import complaint, one_of
from linearcore.heads import ChainCRF, ChainHead, ChainSSVM, LinearCoreChain
from linearcore.losses import DEFAULT_SURROGATE
from linearcore.tagging.encoders import Encoder

#: What `--loss` may be; "ce" is token cross-entropy, which has no chain.
LOSSES: dict[str, Callable[..., ChainHead] | None] = {
    "lc": LinearCoreChain,
    "crf": ChainCRF,
    "ssvm": ChainSSVM,
    "ce": None,
}
#: A padded position, and a tag that training has not; torch's and Hugging Face's number for it.
IGNORED = -100
#: With more tags than this, a beam of `BEAM` decodes by default: on real text it finds what an exact search finds
#: (docs/replace-a-crf.md), and does not slow down where scores are flat.
MOST_EXACT, BEAM = 600, 16


class TaggingModel(nn.Module):
    """Tags of sentences from an encoder's hidden states, by a linear chain or each on its own.

    Args:
        encoder: hidden states of words.
        num_tags: |Y|.
        loss: "lc", "crf", "ssvm" or "ce".
        rank: of the chain's transitions, as in `linearcore.heads.ChainHead`; None is a full matrix.
        beam: width of the beam that decodes; 0 is exact search, None is exact for up to `MOST_EXACT` tags.
        unary: of loss "lc": the share of it that is put on the emissions alone, as in `LinearCoreChain`; None is 0.
        sharpness: of loss "lc": how fast its surrogate bends behind the core, as in `LinearCore`; None is 1.
    """

    def __init__(
        self,
        encoder: Encoder,
        num_tags: int,
        loss: str = "lc",
        *,
        rank: int | None = None,
        beam: int | None = None,
        unary: float | None = None,
        sharpness: float | None = None,
    ) -> None:
        super().__init__()
        one_of("loss", loss, LOSSES)
        options = linear_core_options(loss, unary, sharpness)
        if loss == "ce" and (rank is not None or beam is not None):
            option = "rank" if rank is not None else "beam"
            advice = "token cross-entropy has no transitions: leave it out, or take another loss"
            raise ValueError(complaint(option, "be None with loss 'ce'", rank if beam is None else beam, advice))
        self.encoder = encoder
        self.projection = nn.Linear(encoder.width, num_tags)
        make = LOSSES[loss]
        # What the numbers are is checked where they are read; here a look would wait for the device.
        self.head = None if make is None else make(num_tags, batch_first=True, rank=rank, validate=False, **options)
        self._settings = {"loss": loss, "rank": rank, "beam": beam, "unary": unary, "sharpness": sharpness}
        self.beam = (0 if num_tags <= MOST_EXACT else BEAM) if beam is None else beam

    def settings(self) -> dict[str, Any]:
        """The arguments after `num_tags`, as JSON values."""
        return dict(self._settings)

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


def linear_core_options(loss: str, unary: float | None, sharpness: float | None) -> dict[str, Any]:
    """What `LinearCoreChain` is made with, beside what all heads are.

    Raises:
        ValueError: if one is given for another loss, or `sharpness` is not positive.
    """
    for name, value in (("unary", unary), ("sharpness", sharpness)):
        if loss != "lc" and value is not None:
            advice = "it is an option of loss 'lc': leave it out, or take that"
            raise ValueError(complaint(name, f"be None with loss {loss!r}", value, advice))
    options: dict[str, Any] = {} if unary is None else {"unary": unary}
    return options if sharpness is None else options | {"surrogate": replace(DEFAULT_SURROGATE, sharpness=sharpness)}
