"""Decoders for export: their number of steps is dynamic, and their results are those of the heads' decoders."""

import torch
from torch import Tensor, nn

from linearcore._torch import scan
from linearcore.heads import ChainHead
from linearcore.structures import Chain
from linearcore.tagging._composition import plain_copy
from linearcore.tagging._model import IGNORED, TaggingModel


def make_decoder(model: TaggingModel) -> nn.Module:
    """Returns a module (emissions (B, L, |Y|), mask (B, L)) ↦ tags (B, L) that decodes as `TaggingModel.decode` does."""
    if model.head is None:
        return Argmax()
    # In training mode composed scores are random.
    head = plain_copy(model.head)
    assert isinstance(head, ChainHead)
    with torch.no_grad():
        chain = head.chain()
    if not model.beam:
        return Viterbi(chain)
    return Beam(chain, model.beam) if model.head.constraints is None else BeamOrExact(chain, model.beam)


class Argmax(nn.Module):
    """Decoding without a chain: the best tag of each word."""

    def forward(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Returns tags (B, L), −100 where masked."""
        return emissions.argmax(-1).masked_fill(~mask, IGNORED)


class _ChainDecoder(nn.Module):
    """Holds the scores of a chain; forbidden entries are −inf, so constraints are part of them."""

    start: Tensor
    columns: Tensor
    end: Tensor

    def __init__(self, chain: Chain) -> None:
        super().__init__()
        self.register_buffer("start", chain.start.detach().clone())
        self.register_buffer("columns", chain.transitions.detach().t().contiguous())
        self.register_buffer("end", chain.end.detach().clone())

    @staticmethod
    def _times(emissions: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns emissions (L, B, |Y|), mask (L, B, 1) and the initial value (B, 1) of "a word came before"."""
        is_word = mask.t().unsqueeze(-1)
        return emissions.transpose(0, 1), is_word, torch.zeros_like(mask[:, :1], memory_format=torch.contiguous_format)

    @staticmethod
    def _finish(tags: Tensor, scores: Tensor, mask: Tensor) -> Tensor:
        """Returns tags (B, L) from (L, B); −100 where masked, and in sequences for which no tags are allowed."""
        return tags.t().masked_fill(~(mask & (scores > -torch.inf).unsqueeze(-1)), IGNORED)


class Viterbi(_ChainDecoder):
    """Exact decoding, as `linearcore.kernels.viterbi`. Time O(L·B·|Y|²)."""

    def forward(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Returns the best tags (B, L), −100 where masked."""
        start, columns = self.start, self.columns

        def forth(carry: tuple[Tensor, ...], now: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
            (alpha, has_previous), (scores, is_word) = carry, now
            incoming = torch.where(has_previous, (alpha.unsqueeze(1) + columns).amax(-1), start)
            best = torch.where(is_word, incoming + scores, alpha)
            return (best, has_previous | is_word), (alpha.clone(), is_word & has_previous)

        def back(carry: tuple[Tensor, ...], now: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
            (tag,), (alpha, is_linked) = carry, now
            previous = (alpha + columns[tag]).argmax(-1)
            return (torch.where(is_linked.squeeze(-1), previous, tag),), (tag.clone(),)

        emissions, is_word, no_word = self._times(emissions, mask)
        zeros = emissions.new_zeros(emissions.shape[1], emissions.shape[2])
        (alpha, _), (before, is_linked) = scan(forth, (zeros, no_word), (emissions, is_word))
        scores, tag = (alpha + self.end).max(-1)
        _, (tags,) = scan(back, (tag,), (before.flip(0), is_linked.flip(0)))
        return self._finish(tags.flip(0), scores, mask)


class Beam(_ChainDecoder):
    """Beam search, as `linearcore.kernels.beam`. Time O(L·B·|Y|·width)."""

    transitions: Tensor

    def __init__(self, chain: Chain, width: int) -> None:
        super().__init__(chain)
        self.width = min(width, len(chain.start))
        self.register_buffer("transitions", chain.transitions.detach().clone())

    def forward(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Returns the tags (B, L) of the best sequence in the beam, −100 where masked."""
        start, columns, transitions, width = self.start, self.columns, self.transitions, self.width

        def forth(carry: tuple[Tensor, ...], now: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
            (value, state, has_previous), (scores, is_word) = carry, now
            best = (transitions[state] + value.unsqueeze(-1)).amax(1)
            new_value, new_state = (torch.where(has_previous, best, start) + scores).topk(width)
            kept = torch.where(is_word, new_value, value), torch.where(is_word, new_state, state)
            return (*kept, has_previous | is_word), (value.clone(), state.clone(), is_word & has_previous)

        def back(carry: tuple[Tensor, ...], now: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
            (tag,), (value, state, is_linked) = carry, now
            index = (value + columns[tag].gather(-1, state)).argmax(-1, keepdim=True)
            previous = state.gather(-1, index).squeeze(-1)
            return (torch.where(is_linked.squeeze(-1), previous, tag),), (tag.clone(),)

        emissions, is_word, no_word = self._times(emissions, mask)
        value = emissions.new_zeros(emissions.shape[1], width)
        state = torch.zeros_like(value, dtype=torch.long)
        (value, state, _), steps = scan(forth, (value, state, no_word), (emissions, is_word))
        scores, index = (value + self.end[state]).max(-1)
        tag = state.gather(-1, index.unsqueeze(-1)).squeeze(-1)
        _, (tags,) = scan(back, (tag,), tuple(step.flip(0) for step in steps))
        return self._finish(tags.flip(0), scores, mask)


class BeamOrExact(nn.Module):
    """Beam search with constraints: a sequence for which the beam has no allowed tags is decoded exactly.

    The graph computes both for every sequence, so it takes the time of exact search.
    """

    def __init__(self, chain: Chain, width: int) -> None:
        super().__init__()
        self.beam, self.viterbi = Beam(chain, width), Viterbi(chain)

    def forward(self, emissions: Tensor, mask: Tensor) -> Tensor:
        """Returns tags (B, L), −100 where masked."""
        tags: Tensor = self.beam(emissions, mask)
        has_no_tags = (mask & (tags == IGNORED)).any(1, keepdim=True)
        return torch.where(has_no_tags, self.viterbi(emissions, mask), tags)
