"""Proposals that hold the scores or the candidates of one batch."""

import math

import pytest
import torch
from scipy.stats import chi2
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from linearcore import LinearCoreChain
from linearcore.proposals.sequences import (
    ListedSequences,
    MixedSequences,
    ModelSequences,
    SequenceProposal,
    UniformSequences,
)
from linearcore.structures import Sites
from tests.chains import every_sequence, random_case
from tests.chains import sites as times_of

NUM_TAGS = 3
# Three tags, two around a hole, one, none.
MASK = torch.tensor([[sign == "1" for sign in column] for column in ("111", "101", "010", "000")]).t()
SITES, CHAINS = Sites.of(MASK), range(MASK.shape[1])
CASE = random_case(0, *MASK.shape, NUM_TAGS, MASK)
CASE.chain.transitions[0, 2] = -math.inf
TAGS = torch.zeros_like(MASK, dtype=torch.long)
# Three candidates, the first twice; the last is absent in the first two chains.
FIRST, SECOND = torch.tensor([[0, 1, 2, 0], [1, 1, 0, 0], [2, 2, 2, 0]]), torch.tensor([[1, 0, 2, 0], [1, 0, 1, 0], [0] * 4])
CANDIDATES = torch.stack([FIRST, FIRST, SECOND, SECOND])
CANDIDATES[3, :, :2] = -100

MODEL, LISTED = ModelSequences(*CASE[:2]), ListedSequences(CANDIDATES)
PROPOSALS: dict[str, SequenceProposal] = {
    "model": MODEL,
    "listed": LISTED,
    "mixed": MixedSequences((LISTED, MODEL, UniformSequences()), (2, 2, 1)),
}
every_proposal = pytest.mark.parametrize("proposal", PROPOSALS.values(), ids=PROPOSALS.keys())


def law(proposal: SequenceProposal, row: int) -> dict[tuple[int, ...], float]:
    """The probability of every sequence of one chain, by its definition."""
    every, times = every_sequence(CASE, row), times_of(MASK, row)
    if isinstance(proposal, MixedSequences):
        parts = [law(part, row) for part in proposal.parts]
        share = proposal.probabilities
        return {tags: sum(p * part[tags] for p, part in zip(share, parts, strict=True)) for _, tags in every}
    measure = {tags: 1.0 for _, tags in every}
    if isinstance(proposal, ModelSequences):
        measure = {tags: math.exp(score) for score, tags in every}
    elif isinstance(proposal, ListedSequences):
        listed = [tuple(candidate[times, row].tolist()) for candidate in CANDIDATES]
        measure = {tags: float(listed.count(tags)) for _, tags in every}
    return {tags: weight / sum(measure.values()) for tags, weight in measure.items()}


def spread(row: int) -> Tensor:
    """(M, L, B): every sequence of one chain; −100 at masked positions, 0 in the other chains."""
    every, times = every_sequence(CASE, row), times_of(MASK, row)
    found = TAGS.masked_fill(~MASK, -100).repeat(len(every), 1, 1)
    for place, time in enumerate(times):
        found[:, time, row] = torch.tensor([tags[place] for _, tags in every])
    return found


@every_proposal
def test_probabilities_are_the_law(proposal: SequenceProposal) -> None:
    for row in CHAINS:
        found = proposal.log_prob(spread(row), TAGS, SITES, NUM_TAGS)[:, row]
        assert found.dtype == torch.float64
        torch.testing.assert_close(found.exp().tolist(), list(law(proposal, row).values()), rtol=1e-12, atol=0)


@every_proposal
def test_draws_follow_the_law_and_the_generator(proposal: SequenceProposal) -> None:
    draws, again = (proposal.sample(TAGS, SITES, NUM_TAGS, 40_000, torch.Generator().manual_seed(0)) for _ in range(2))
    assert torch.equal(draws, again) and not draws[:, ~MASK].any()
    for row in CHAINS:
        counts = dict.fromkeys(law(proposal, row), 0)
        for tags in draws[:, times_of(MASK, row), row].tolist():
            counts[tuple(tags)] += 1
        mean = {tags: len(draws) * p for tags, p in law(proposal, row).items()}
        assert all(counts[tags] == 0 for tags in mean if mean[tags] == 0)
        distance = sum((counts[tags] - m) ** 2 / m for tags, m in mean.items() if m)
        assert chi2.sf(distance, sum(m > 0 for m in mean.values()) - 1) > 1e-4 or len(mean) == 1


def test_full_support_is_declared() -> None:
    """The model samples every sequence with a finite score."""
    assert not LISTED.has_full_support and PROPOSALS["mixed"].has_full_support
    free = random_case(0, *MASK.shape, NUM_TAGS, MASK)
    assert ModelSequences(*free[:2]).has_full_support
    assert ModelSequences(*free[:2]).log_prob(spread(0), TAGS, SITES, NUM_TAGS).isfinite().all()


def test_probabilities_have_no_gradient() -> None:
    leaves = CASE.leaves()
    assert not ModelSequences(*leaves[:2]).log_prob(spread(0), TAGS, SITES, NUM_TAGS).requires_grad


def test_candidates_are_the_k_best_of_a_head() -> None:
    head = LinearCoreChain(2)
    emissions, tags = torch.randn(3, 2, 2, generator=torch.Generator().manual_seed(0)), torch.zeros(3, 2).long()
    best, _ = head.kbest(emissions, k=20)  # There are eight.
    sites = Sites.of(torch.ones(3, 2, dtype=torch.bool))
    proposal = ListedSequences(best)
    draws = proposal.sample(tags, sites, 2, 50, torch.Generator().manual_seed(0))
    assert (draws >= 0).all()
    torch.testing.assert_close(proposal.log_prob(draws, tags, sites, 2).exp(), torch.full((50, 2), 1 / 8).double())


def test_an_example_without_any_candidate_is_nan() -> None:
    proposal = ListedSequences(CANDIDATES.clone())
    proposal.candidates[:, :, 0] = -100
    draws = proposal.sample(TAGS, SITES, NUM_TAGS, 5)
    log_prob = proposal.log_prob(draws, TAGS, SITES, NUM_TAGS)
    assert (draws >= 0).all() and log_prob[:, 0].isnan().all() and log_prob[:, 1:].isfinite().all()


def test_a_list_is_not_read_back_from_the_device() -> None:
    with FakeTensorMode():
        tags, sites = torch.zeros(4, 3, dtype=torch.long), Sites.of(torch.ones(4, 3, dtype=torch.bool))
        proposal = ListedSequences(torch.zeros(6, 4, 3, dtype=torch.long))
        assert proposal.log_prob(proposal.sample(tags, sites, NUM_TAGS, 7), tags, sites, NUM_TAGS).shape == (7, 3)


@pytest.mark.parametrize("proposal", (ModelSequences(torch.zeros(2, 1, 3), CASE.chain), ListedSequences(TAGS[None, :2])))
def test_another_batch(proposal: SequenceProposal) -> None:
    name = "emissions" if isinstance(proposal, ModelSequences) else "candidates"
    with pytest.raises(ValueError, match=rf"`{name}` must have shape \(.*3, 4.*\), got \("):
        proposal.sample(TAGS, SITES, NUM_TAGS, 5)
    with pytest.raises(ValueError, match=f"`{name}` must have shape"):
        proposal.log_prob(TAGS.unsqueeze(0), TAGS, SITES, NUM_TAGS)
