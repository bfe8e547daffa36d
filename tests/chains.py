"""Small chains with enumeration of all tag sequences: a reference implementation without recursion and `Sites`."""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor

from linearcore.structures import Chain


class Case(NamedTuple):
    """A batch of chains, time first, in float64.

    Attributes:
        emissions: (L, B, |Y|).
        chain: start, transitions, end.
        mask: (L, B) booleans.
    """

    emissions: Tensor
    chain: Chain
    mask: Tensor

    def to(self, dtype: torch.dtype) -> "Case":
        """Converts all scores to `dtype`."""
        return Case(self.emissions.to(dtype), Chain(*(part.to(dtype) for part in self.chain)), self.mask)

    def times(self, factor: float) -> "Case":
        """Multiplies all scores; −inf stays −inf."""
        return Case(factor * self.emissions, Chain(*(factor * part for part in self.chain)), self.mask)

    def leaves(self) -> "Case":
        """Returns copies of the scores that require gradients."""
        return Case(
            self.emissions.detach().clone().requires_grad_(),
            Chain(*(part.detach().clone().requires_grad_() for part in self.chain)),
            self.mask,
        )

    @property
    def scores(self) -> tuple[Tensor, ...]:
        """Emissions, start, transitions and end."""
        return self.emissions, *self.chain


def sites(mask: Tensor, row: int) -> list[int]:
    """Returns the unmasked positions of a chain. Neighbours in this list are neighbours in the chain."""
    return [time for time, is_active in enumerate(mask[:, row].tolist()) if is_active]


def every_sequence(case: Case, row: int) -> list[tuple[float, tuple[int, ...]]]:
    """Returns (score, tags) of all tag sequences of one chain, including those with score −inf; only () if it is empty."""
    times = sites(case.mask, row)
    num_tags = case.emissions.shape[-1]
    emissions = case.emissions[:, row].tolist()
    start, transitions, end = (part.tolist() for part in case.chain)
    sequences = []
    for tags in itertools.product(range(num_tags), repeat=len(times)):
        score = 0.0
        for place, (time, tag) in enumerate(zip(times, tags, strict=True)):
            score += emissions[time][tag]
            score += start[tag] if place == 0 else transitions[tags[place - 1]][tag]
        if tags:
            score += end[tags[-1]]
        sequences.append((score, tags))
    return sequences


def score_of(case: Case, row: int, tags: Sequence[int]) -> float:
    """Returns the score of one sequence, given without its masked positions."""
    times = sites(case.mask, row)
    score = sum(case.emissions[time, row, tag].item() for time, tag in zip(times, tags, strict=True))
    score += sum(case.chain.transitions[pair].item() for pair in itertools.pairwise(tags))
    return score + case.chain.start[tags[0]].item() + case.chain.end[tags[-1]].item() if times else 0.0


def log_sum(case: Case) -> Tensor:
    """Returns log Σ_y exp h(x, y) (B,) over the allowed sequences, with autograd; every chain must have one."""
    totals = []
    for row in range(case.mask.shape[1]):
        times = sites(case.mask, row)
        if not times:
            totals.append(case.emissions.new_zeros(()))
            continue
        every = torch.tensor(list(itertools.product(range(case.emissions.shape[-1]), repeat=len(times))))
        scores = case.chain.start[every[:, 0]] + case.chain.end[every[:, -1]]
        for place, time in enumerate(times):
            scores = scores + case.emissions[time, row, every[:, place]]
            if place:
                scores = scores + case.chain.transitions[every[:, place - 1], every[:, place]]
        totals.append(scores[scores > -math.inf].logsumexp(0))
    return torch.stack(totals) if totals else case.emissions.new_zeros(0)


def marginals(case: Case) -> Tensor:
    """Returns P(y_j = v | x) (L, B, |Y|) by enumeration; 0 at masked positions."""
    probabilities = torch.zeros_like(case.emissions)
    for row in range(case.mask.shape[1]):
        every = every_sequence(case, row)
        highest = max(score for score, _ in every)
        total = math.fsum(math.exp(score - highest) for score, _ in every)
        for score, tags in every:
            for time, tag in zip(sites(case.mask, row), tags, strict=True):
                probabilities[time, row, tag] += math.exp(score - highest) / total
    return probabilities


def ragged(lengths: Sequence[int]) -> Tensor:
    """Returns masks (L, B) of padded sequences, as in torchcrf."""
    return torch.arange(max(lengths)).unsqueeze(-1) < torch.tensor(lengths)


def random_case(seed: int, length: int, batch: int, num_tags: int, mask: Tensor | None = None) -> Case:
    """Returns normal scores in float64 without −inf."""
    stream = torch.Generator().manual_seed(seed)
    shapes = ((length, batch, num_tags), (num_tags,), (num_tags, num_tags), (num_tags,))
    emissions, start, transitions, end = (torch.randn(shape, dtype=torch.float64, generator=stream) for shape in shapes)
    mask = torch.ones(length, batch, dtype=torch.bool) if mask is None else mask
    return Case(emissions, Chain(start, transitions, end), mask)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draws up to 3 chains of up to 4 tags and 4 positions, with inner masks, ties, and −inf that leaves one path."""
    length, batch, num_tags = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    rows = st.lists(st.booleans(), min_size=length - 1, max_size=length - 1)
    mask = torch.tensor([[True, *draw(rows)] for _ in range(batch)]).T
    seed = draw(st.integers(0, 2**20))
    case = random_case(seed, length, batch, num_tags, mask)
    if draw(st.booleans()):  # Few different scores, so that many sequences tie.
        case = Case((2 * case.emissions).round() / 2, Chain(*((2 * part).round() / 2 for part in case.chain)), mask)
    rate = draw(st.sampled_from((0.0, 0.3, 0.8)))
    return _forbid(case, rate, seed)


def _forbid(case: Case, rate: float, seed: int) -> Case:
    """Sets a fraction `rate` of the scores to −inf, but keeps one path that every chain can follow."""
    stream = torch.Generator().manual_seed(seed)
    forbidden = [torch.rand(part.shape, generator=stream) < rate for part in case.scores]
    length, batch, num_tags = case.emissions.shape
    path = torch.randint(num_tags, (length,), generator=stream).tolist()
    forbidden[1][path[0]] = False
    for before, after in itertools.pairwise(path):
        forbidden[2][before, after] = False
    for row in range(batch):
        times = sites(case.mask, row)
        forbidden[3][path[len(times) - 1]] = False
        for time, tag in zip(times, path, strict=False):
            forbidden[0][time, row, tag] = False
    emissions, *chain = (part.masked_fill(no, -math.inf) for part, no in zip(case.scores, forbidden, strict=True))
    return Case(emissions, Chain(*chain), case.mask)
