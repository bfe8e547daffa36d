"""The ways to train a tagger that `tagging` compares: one encoder and one projection, and another loss on top of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from linearcore.heads import LinearCoreChain
from linearcore.proposals import InBatch
from linearcore.tagging import TaggingModel
from linearcore.tagging.encoders import Encoder

#: Draws of a sampled step, beside the tags of the batch.
SAMPLES = 64
#: Made here, since a compiler cannot.
_PROPOSAL = InBatch()


@dataclass(frozen=True)
class Method:
    """A way to train.

    Attributes:
        label: what a reader calls it.
        make: encoder and number of tags ↦ a model.
        settings: what is not the default, for the records.
    """

    label: str
    make: Callable[[Encoder, int], TaggingModel]
    settings: Mapping[str, object]


class SampledModel(TaggingModel):
    """Trains from the tags of the batch and a few draws; nothing as wide as |Y| is made but the gradient."""

    def loss(self, hidden: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        assert isinstance(self.head, LinearCoreChain)
        return self.head.sampled_loss(hidden, self.projection, tags, mask, proposal=_PROPOSAL, num_samples=SAMPLES)


class BroadcastCRF(nn.Module):
    """The usual linear-chain CRF, as fast as broadcasting gets: the baseline that a reader would write.

    log P(y | x) with one logsumexp over (B, |Y|, |Y|) a position, torchcrf's parameters, and autograd's backward pass.

    Nothing is done that need not be: the emissions are taken apart once and not position by position (whose gradient would
    be a full array each), they are added after the sum and not before, and the score of the true tags has no loop.
    """

    def __init__(self, num_tags: int) -> None:
        super().__init__()
        self.start_transitions = nn.Parameter(torch.zeros(num_tags))
        self.transitions = nn.Parameter(torch.zeros(num_tags, num_tags))
        self.end_transitions = nn.Parameter(torch.zeros(num_tags))

    def forward(self, emissions: Tensor, tags: Tensor) -> Tensor:
        """The log-likelihood of tags (L, B) under emissions (L, B, |Y|), summed over the chains."""
        first, *others = emissions.unbind(0)
        alpha = self.start_transitions + first
        for row in others:
            alpha = torch.logsumexp(alpha.unsqueeze(-1) + self.transitions, 1) + row
        log_z = torch.logsumexp(alpha + self.end_transitions, -1)
        own = emissions.gather(-1, tags.unsqueeze(-1)).sum((0, 2)) + self.transitions[tags[:-1], tags[1:]].sum(0)
        return (own + self.start_transitions[tags[0]] + self.end_transitions[tags[-1]] - log_z).sum()


class BroadcastModel(TaggingModel):
    """The CRF of public libraries, to be timed: it has ChainCRF's gradient at another price.

    Padding is computed like words, since that is cheaper than a mask: what is timed is in its favour.
    """

    def __init__(self, encoder: Encoder, num_tags: int) -> None:
        super().__init__(encoder, num_tags, "ce")
        self.broadcast = BroadcastCRF(num_tags)

    def loss(self, hidden: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        emissions = self.projection(hidden).float().transpose(0, 1)
        with torch.autocast(mask.device.type, enabled=False):
            found: Tensor = -self.broadcast(emissions, tags.clamp(min=0).t()) / tags.numel()
        return found


def _made(kind: type[TaggingModel], loss: str, **options: Any) -> Callable[[Encoder, int], TaggingModel]:
    return lambda encoder, num_tags: kind(encoder, num_tags, loss, **options)


#: `benchmarks/chain_variants.py` compares it with others on dev sentences; `linearcore tag train` has the same options.
_OURS = {"rank": 64, "unary": 0.5, "sharpness": 4.0}
#: In the order of the tables. "broadcast" is timed only, and its curve is ChainCRF's on another clock.
METHODS = {
    "broadcast": Method("broadcast CRF", BroadcastModel, {}),
    "crf": Method("ChainCRF", _made(TaggingModel, "crf"), {}),
    "ssvm": Method("ChainSSVM", _made(TaggingModel, "ssvm"), {}),
    "ce": Method("token cross-entropy", _made(TaggingModel, "ce"), {}),
    "lc": Method("LC all tags", _made(TaggingModel, "lc"), {}),
    "lc-rank": Method("LC rank 64 + unary", _made(TaggingModel, "lc", **_OURS), _OURS),
    "lc-sampled": Method(
        "LC sampled", _made(SampledModel, "lc", **_OURS), _OURS | {"proposal": "in-batch", "samples": SAMPLES}
    ),
}
