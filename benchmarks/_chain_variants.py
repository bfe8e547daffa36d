"""Variants of the local training loss of a chain: which tags the neighbours have, and which terms the loss has."""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

import linearcore as lc
from linearcore.forms import Labels, row_losses
from linearcore.heads import LinearCoreChain
from linearcore.kernels import resolve_backend
from linearcore.surrogates import Surrogate
from linearcore.tagging import TaggingModel
from linearcore.tagging.encoders import Encoder

#: Candidates per position when two adjacent positions change together, in addition to the true tag.
BEST = 8
#: Score of masked-out candidates: far below every score, but finite.
MASKED_SCORE = -1e9


@dataclass(frozen=True)
class Variant:
    """One variant.

    Attributes:
        rank: rank of the transitions; None is a full matrix.
        unary: weight of the loss on the emissions alone.
        surrogate: φ.
        neighbours: "true"; "own", the best tags by emission; "swept", the best tags given those; "absent"; "expected",
            the mean over the softmax of the emissions. All but "true" replace a true neighbour with probability `share`.
        share: probability of a replaced neighbour, see `neighbours`.
        pairs: weight of the loss on changes of two adjacent positions, among the `BEST` tags of each.
        chain_rate: learning-rate factor of the chain's parameters; None is 1.
    """

    rank: int | None = 64
    unary: float = 0.0
    surrogate: Surrogate = lc.LinearCore()  # noqa: RUF009 (it is frozen)
    neighbours: str = "true"
    share: float = 0.0
    pairs: float = 0.0
    chain_rate: float | None = None


_BASE = Variant()
_HALF = replace(_BASE, unary=0.5)
VARIANTS = {
    "full matrix": replace(_BASE, rank=None),
    "full matrix, unary ½": replace(_HALF, rank=None),
    "rank 64": _BASE,
    "rank 64, unary 0.3": replace(_BASE, unary=0.3),
    "rank 64, unary ½": _HALF,
    "rank 64, unary 0.7": replace(_BASE, unary=0.7),
    "rank 32, unary ½": replace(_HALF, rank=32),
    "rank 128, unary ½": replace(_HALF, rank=128),
    "own neighbours ½": replace(_BASE, neighbours="own", share=0.5),
    "own neighbours ½, unary ½": replace(_HALF, neighbours="own", share=0.5),
    "swept neighbours ½": replace(_BASE, neighbours="swept", share=0.5),
    "swept neighbours always": replace(_BASE, neighbours="swept", share=1.0),
    "absent neighbours 0.3": replace(_BASE, neighbours="absent", share=0.3),
    "expected neighbours ½": replace(_BASE, neighbours="expected", share=0.5),
    "pairs ½": replace(_BASE, pairs=0.5),
    "pairs ½, unary ½": replace(_HALF, pairs=0.5),
    "unary ½, τ = 0.1": replace(_HALF, surrogate=lc.LinearCore(tau=0.1)),
    "unary ½, τ = 3": replace(_HALF, surrogate=lc.LinearCore(tau=3.0)),
    "unary ½, sharpness 4": replace(_HALF, surrogate=lc.LinearCore(sharpness=4.0)),
    "unary ½, chain rate 0.3": replace(_HALF, chain_rate=0.3),
    "unary ½, chain rate 0.1": replace(_HALF, chain_rate=0.1),
    "unary ½, sharpness 4, chain rate 0.1": replace(_HALF, surrogate=lc.LinearCore(sharpness=4.0), chain_rate=0.1),
    "unary ½, gamma, sharpness 4": replace(_HALF, surrogate=lc.LinearCore("gamma", sharpness=4.0)),
}


class VariantModel(TaggingModel):
    """A tagger that is trained with a variant of the loss; decoding is unchanged."""

    def __init__(self, encoder: Encoder, num_tags: int, variant: Variant) -> None:
        super().__init__(encoder, num_tags, "lc", rank=variant.rank)
        self.variant = variant
        self.head = LinearCoreChain(
            num_tags, batch_first=True, rank=variant.rank, unary=variant.unary, surrogate=variant.surrogate, validate=False
        )

    def loss(self, hidden: Tensor, mask: Tensor, tags: Tensor) -> Tensor:
        """Computes the mean loss per tag."""
        variant = self.variant
        if variant.neighbours == "true" and not variant.pairs:
            return super().loss(hidden, mask, tags)
        emissions, truth = self.projection(hidden).float(), tags.clamp(min=0)
        left, right = self._neighbours(emissions, truth, mask)
        scores = emissions + self._spread(left, right, mask)
        loss = (1 - variant.unary) * self._mean(scores, truth, mask)
        if variant.unary:
            loss = loss + variant.unary * self._mean(emissions, truth, mask)
        if variant.pairs:
            loss = (1 - variant.pairs) * loss + variant.pairs * self._pairs(scores, truth, mask)
        return loss

    def _mean(self, scores: Tensor, truth: Tensor, mask: Tensor) -> Tensor:
        rows, backend = scores.flatten(0, 1), resolve_backend("auto", (scores,))
        losses = row_losses(self.head.form, self.head.surrogate, rows, Labels(truth.flatten()), backend).view(mask.shape)
        return losses.masked_fill(~mask, 0.0).sum() / mask.sum()

    def _neighbours(self, emissions: Tensor, truth: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the factors (B, L, r) of each position as left neighbour and as right neighbour."""
        source, target = self.head.transitions_from, self.head.transitions_to
        kind, share = self.variant.neighbours, self.variant.share
        left, right = F.embedding(truth, source), F.embedding(truth, target)
        if kind == "true":
            return left, right
        swap = (torch.rand(mask.shape, device=mask.device) < share).unsqueeze(-1)
        if kind == "absent":
            return left.masked_fill(swap, 0.0), right.masked_fill(swap, 0.0)
        if kind == "expected":
            weights = emissions.detach().softmax(-1)
            return torch.where(swap, weights @ source, left), torch.where(swap, weights @ target, right)
        with torch.no_grad():
            own = emissions.argmax(-1)
            if kind == "swept":
                around = self._spread(F.embedding(own, source), F.embedding(own, target), mask)
                own = (emissions + around).argmax(-1)
        return torch.where(swap, F.embedding(own, source), left), torch.where(swap, F.embedding(own, target), right)

    def _spread(self, left: Tensor, right: Tensor, mask: Tensor) -> Tensor:
        """Computes the scores (B, L, |Y|) that neighbours and sequence ends add to every tag."""
        here = mask.unsqueeze(-1)
        before = F.pad(left.masked_fill(~here, 0.0), (0, 0, 1, 0))[:, :-1]
        after = F.pad(right.masked_fill(~here, 0.0), (0, 0, 0, 1))[:, 1:]
        found = (before @ self.head.transitions_to.t() + after @ self.head.transitions_from.t()).float()
        is_last = (mask & ~F.pad(mask, (0, 1))[:, 1:]).unsqueeze(-1)
        is_first = torch.zeros_like(is_last).index_fill(1, torch.zeros(1, dtype=torch.long, device=mask.device), True)
        return found + is_first * self.head.start_transitions + is_last * self.head.end_transitions

    def _pairs(self, scores: Tensor, truth: Tensor, mask: Tensor) -> Tensor:
        """Computes the mean over adjacent pairs of φ(h(y) − logsumexp of h over the best other tags at both positions)."""
        own = truth.unsqueeze(-1)
        others = scores.detach().scatter(-1, own, MASKED_SCORE).topk(BEST, -1).indices
        tags = torch.cat([own, others], -1)
        picked = scores.gather(-1, tags)
        source, target = self.head.transitions_from, self.head.transitions_to
        first, second = tags[:, :-1], tags[:, 1:]
        between = F.embedding(first, source) @ F.embedding(second, target).transpose(-1, -2)
        # Local scores contain the transition to the true neighbour; a changed pair needs its own transition instead.
        rows = picked[:, :-1].unsqueeze(-1) - between[..., :1]
        columns = picked[:, 1:].unsqueeze(-2) - between[..., :1, :]
        joint = (rows + columns + between).flatten(-2)
        margin = joint[..., 0] - joint[..., 1:].logsumexp(-1)
        linked = mask[:, 1:]
        return self.head.surrogate.value(margin).masked_fill(~linked, 0.0).sum() / linked.sum().clamp(min=1)
