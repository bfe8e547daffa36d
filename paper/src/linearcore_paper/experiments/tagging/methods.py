"""Training methods that `tagging` compares: the same encoder and projection with different losses."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from linearcore.heads import LinearCoreChain
from linearcore.proposals import InBatch
from linearcore.tagging import TaggingModel
from linearcore.tagging.encoders import Encoder

#: Samples per step, in addition to the tags of the batch.
SAMPLES = 64
#: Created at import, since torch.compile cannot trace its construction.
_PROPOSAL = InBatch()


@dataclass(frozen=True)
class Method:
    """A training method.

    Attributes:
        label: name in tables and figures.
        make: maps an encoder and a number of tags to a model.
        settings: options that differ from the default, for the result files.
    """

    label: str
    make: Callable[[Encoder, int], TaggingModel]
    settings: Mapping[str, object]


class SampledModel(TaggingModel):
    """A model trained on the tags of the batch and a few samples; only the gradient has size |Y|."""

    def loss(self, hidden: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        assert isinstance(self.head, LinearCoreChain)
        return self.head.sampled_loss(hidden, self.projection, tags, mask, proposal=_PROPOSAL, num_samples=SAMPLES)


class BroadcastCRF(nn.Module):
    """The usual linear-chain CRF with broadcasting, optimised: the baseline implementation.

    Computes log P(y | x) with one logsumexp over (B, |Y|, |Y|) per position, torchcrf's parameters and autograd.

    Optimisations: one `unbind` of the emissions (indexing each position would give a full-size gradient each time),
    emissions are added after the logsumexp, and the score of the true tags needs no loop.
    """

    def __init__(self, num_tags: int) -> None:
        super().__init__()
        self.start_transitions = nn.Parameter(torch.zeros(num_tags))
        self.transitions = nn.Parameter(torch.zeros(num_tags, num_tags))
        self.end_transitions = nn.Parameter(torch.zeros(num_tags))

    def forward(self, emissions: Tensor, tags: Tensor) -> Tensor:
        """Returns the log-likelihood of tags (L, B) given emissions (L, B, |Y|), summed over the batch."""
        first, *others = emissions.unbind(0)
        alpha = self.start_transitions + first
        for row in others:
            alpha = torch.logsumexp(alpha.unsqueeze(-1) + self.transitions, 1) + row
        log_z = torch.logsumexp(alpha + self.end_transitions, -1)
        score = emissions.gather(-1, tags.unsqueeze(-1)).sum((0, 2)) + self.transitions[tags[:-1], tags[1:]].sum(0)
        return (score + self.start_transitions[tags[0]] + self.end_transitions[tags[-1]] - log_z).sum()


class BroadcastModel(TaggingModel):
    """A model with the CRF of public libraries, for timing only: same gradient as ChainCRF, different cost.

    Padding is treated as words, which is cheaper than a mask, so the timing favours this baseline.
    """

    def __init__(self, encoder: Encoder, num_tags: int) -> None:
        super().__init__(encoder, num_tags, "ce")
        self.broadcast = BroadcastCRF(num_tags)

    def loss(self, hidden: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        emissions = self.projection(hidden).float().transpose(0, 1)
        with torch.autocast(mask.device.type, enabled=False):
            loss: Tensor = -self.broadcast(emissions, tags.clamp(min=0).t()) / tags.numel()
        return loss


def _make_model(kind: type[TaggingModel], loss: str, **options: Any) -> Callable[[Encoder, int], TaggingModel]:
    return lambda encoder, num_tags: kind(encoder, num_tags, loss, **options)


#: Options chosen in `benchmarks/chain_variants.py` on dev sentences; `linearcore tag train` has the same options.
_OURS = {"rank": 64, "unary": 0.5, "sharpness": 4.0}
#: In the order of the tables. "broadcast" is only timed; its curve is that of ChainCRF with its own seconds per step.
METHODS = {
    "broadcast": Method("broadcast CRF", BroadcastModel, {}),
    "crf": Method("ChainCRF", _make_model(TaggingModel, "crf"), {}),
    "ssvm": Method("ChainSSVM", _make_model(TaggingModel, "ssvm"), {}),
    "ce": Method("token cross-entropy", _make_model(TaggingModel, "ce"), {}),
    "lc": Method("LC all tags", _make_model(TaggingModel, "lc"), {}),
    "lc-rank": Method("LC rank 64 + unary", _make_model(TaggingModel, "lc", **_OURS), _OURS),
    "lc-sampled": Method(
        "LC sampled", _make_model(SampledModel, "lc", **_OURS), _OURS | {"proposal": "in-batch", "samples": SAMPLES}
    ),
}
