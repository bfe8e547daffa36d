"""Proposals over tag sequences against their laws, written out with `itertools.product`."""

import itertools
import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from linearcore.proposals.sequences import (
    CostlySequences,
    EditedSequences,
    MixedSequences,
    MovedNgrams,
    Neighbours,
    SequenceProposal,
    SimilarSequences,
    UniformSequences,
)
from linearcore.structures import Sites
from tests.cases import each
from tests.chains import sites as times_of

NUM_TAGS = 3
# Three tags; three with a hole; two around a hole, off in front; one; none.
MASK = torch.tensor([[sign == "1" for sign in column] for column in ("1110", "1101", "0101", "0010", "0000")]).t()
SITES = Sites.of(MASK)
TAGS = torch.tensor([[0, 2, 1, 0, 1], [1, 2, 0, 2, 2], [2, 0, 1, 1, 0], [1, 0, 0, 2, 2]])
CHAINS = range(MASK.shape[1])

PROPOSALS: dict[str, SequenceProposal] = {
    "uniform": UniformSequences(),
    "similar": SimilarSequences(),
    "bigrams": SimilarSequences(2),
    "costly": CostlySequences(),
    "edited": EditedSequences(),
    "moved": MovedNgrams(2),
    "one site": Neighbours(),
    "two sites": Neighbours(2),
    "three sites": Neighbours(sites=3),
    "mixed": MixedSequences((UniformSequences(), SimilarSequences(), Neighbours(2)), (1.0, 2.0, 1.0)),
    "mixed narrow": MixedSequences([Neighbours(2), Neighbours(1)], [3, 1]),
    "mixed edits": MixedSequences((EditedSequences(), UniformSequences()), (4, 1)),
}
every_proposal = pytest.mark.parametrize("proposal", PROPOSALS.values(), ids=PROPOSALS.keys())


def listed(num_sites: int, num_tags: int = NUM_TAGS) -> list[tuple[int, ...]]:
    return list(itertools.product(range(num_tags), repeat=num_sites))


def law(proposal: SequenceProposal, truth: tuple[int, ...], num_tags: int = NUM_TAGS) -> list[float]:
    """The probability of every sequence, by definition: what it is proportional to over the sum of that."""
    if not truth:
        return [1.0]
    if isinstance(proposal, MixedSequences):
        total = sum(proposal.weights)
        parts = [law(part, truth, num_tags) for part in proposal.parts]
        mixed = zip(*parts, strict=True)
        return [sum(w / total * p for w, p in zip(proposal.weights, each, strict=True)) for each in mixed]
    measure = []
    for answer in listed(len(truth), num_tags):
        changed = [place for place, (a, b) in enumerate(zip(answer, truth, strict=True)) if a != b]
        if isinstance(proposal, UniformSequences):
            measure.append(1.0)
        elif isinstance(proposal, SimilarSequences):
            width = min(proposal.n, len(truth))
            runs = [set(range(first, first + width)) for first in range(len(truth) - width + 1)]
            measure.append(sum(run.isdisjoint(changed) for run in runs))
        elif isinstance(proposal, CostlySequences):
            measure.append(len(changed) / len(truth))
        elif isinstance(proposal, Neighbours):
            width = min(proposal.sites, len(truth))
            rows = [list(range(first, first + width)) for first in range(len(truth) - width + 1)]
            measure.append(float(changed in rows))
        elif isinstance(proposal, MovedNgrams):
            width = min(proposal.n, len(truth))
            places = list(itertools.product(range(len(truth) - width + 1), repeat=2))
            measure.append(sum(truth[i : i + width] == answer[k : k + width] for i, k in places))
        elif isinstance(proposal, EditedSequences):
            places = list(itertools.product(range(len(truth)), repeat=2))
            measure.append(sum(without(truth, i) == without(answer, k) for i, k in places))
    return [weight / sum(measure) for weight in measure]


def without(tags: tuple[int, ...], place: int) -> tuple[int, ...]:
    return tags[:place] + tags[place + 1 :]


def truth_of(chain: int, tags: Tensor = TAGS) -> tuple[int, ...]:
    return tuple(tags[time, chain].item() for time in times_of(MASK, chain))


def spread(sequences: Sequence[tuple[int, ...]], chain: int, padding: int = 0) -> Tensor:
    """(M, L, B): sequences of one chain at its sites; the other chains get `padding`."""
    found = torch.full((len(sequences), *MASK.shape), padding)
    for place, time in enumerate(times_of(MASK, chain)):
        found[:, time, chain] = torch.tensor([sequence[place] for sequence in sequences])
    return found


def surprise(index: Tensor, expected: list[float]) -> float:
    """The chance of frequencies at least this far from a law: Pearson's χ²; 0 if the impossible happened."""
    counts = torch.bincount(index, minlength=len(expected)).double()
    mean = len(index) * torch.tensor(expected, dtype=torch.float64)
    possible = mean > 0
    if counts[~possible].any():
        return 0.0
    distance = ((counts - mean)[possible] ** 2 / mean[possible]).sum().item()
    freedom = int(possible.sum()) - 1
    return float(chi2.sf(distance, freedom)) if freedom else 1.0


def index_of(draws: Tensor, chain: int) -> Tensor:
    """(K,): the place of one chain's draws in `listed`."""
    times = times_of(MASK, chain)
    return (draws[:, times, chain] * NUM_TAGS ** torch.arange(len(times) - 1, -1, -1)).sum(-1)


@every_proposal
@pytest.mark.parametrize("padding", (0, -100))
def test_probabilities_are_the_law(proposal: SequenceProposal, padding: int) -> None:
    tags = TAGS.where(MASK, padding)
    for chain in CHAINS:
        truth = truth_of(chain)
        found = proposal.log_prob(spread(listed(len(truth)), chain, padding), tags, SITES, NUM_TAGS)[:, chain]
        assert found.dtype == torch.float64
        torch.testing.assert_close(found.exp().tolist(), law(proposal, truth), rtol=1e-13, atol=0)
        assert math.isclose(found.exp().sum().item(), 1, rel_tol=1e-13)


@every_proposal
def test_probabilities_of_two_tags(proposal: SequenceProposal) -> None:
    truth = (1, 0, 0)
    sites = Sites.of(torch.ones(3, 1, dtype=torch.bool), is_full=True)
    draws = torch.tensor(listed(3, 2)).unsqueeze(-1)
    found = proposal.log_prob(draws, torch.tensor(truth).unsqueeze(-1), sites, 2).exp().flatten().tolist()
    torch.testing.assert_close(found, law(proposal, truth, 2), rtol=1e-13, atol=0)


@every_proposal
def test_draws_follow_the_law(proposal: SequenceProposal) -> None:
    draws = proposal.sample(TAGS, SITES, NUM_TAGS, 200_000, torch.Generator().manual_seed(0))
    assert draws.shape == (200_000, *MASK.shape) and draws.dtype == torch.long
    assert not draws[:, ~MASK].any()
    for chain in CHAINS:
        assert surprise(index_of(draws, chain), law(proposal, truth_of(chain))) > 1e-4 / len(CHAINS), chain


@each("proposal", PROPOSALS, ("uniform", "bigrams", "costly", "two sites", "mixed"))
def test_draws_around_references_of_their_own(proposal: SequenceProposal) -> None:
    others = (TAGS + torch.tensor([[1], [2], [0], [1]])) % NUM_TAGS
    references = torch.stack([TAGS, others]).repeat_interleave(100_000, 0)
    draws = proposal.sample(references, SITES, NUM_TAGS, 200_000, torch.Generator().manual_seed(1))
    together = proposal.log_prob(draws, references, SITES, NUM_TAGS)
    for half, tags in ((slice(None, 100_000), TAGS), (slice(100_000, None), others)):
        assert torch.equal(together[half], proposal.log_prob(draws[half], tags, SITES, NUM_TAGS))
        for chain in CHAINS:
            assert surprise(index_of(draws[half], chain), law(proposal, truth_of(chain, tags))) > 1e-4 / (2 * len(CHAINS)), (
                chain
            )


@every_proposal
def test_draws_are_independent(proposal: SequenceProposal) -> None:
    """Two draws of one chain, and the draws of two chains, follow the product of their laws."""
    draws = proposal.sample(TAGS, SITES, NUM_TAGS, 100_000, torch.Generator().manual_seed(2))
    two, other = law(proposal, truth_of(2)), law(proposal, truth_of(3))
    successive = index_of(draws[0::2], 2) * len(two) + index_of(draws[1::2], 2)
    assert surprise(successive, [p * q for p, q in itertools.product(two, two)]) > 1e-4
    side_by_side = index_of(draws, 2) * len(other) + index_of(draws, 3)
    assert surprise(side_by_side, [p * q for p, q in itertools.product(two, other)]) > 1e-4


@every_proposal
def test_a_generator_decides_and_nothing_else_moves(proposal: SequenceProposal) -> None:
    before = torch.get_rng_state()
    first, again, other = (
        proposal.sample(TAGS, SITES, NUM_TAGS, 50, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)
    )
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


@every_proposal
@pytest.mark.parametrize("shape", ((0, 2), (3, 0), (0, 0)), ids=str)
def test_nothing_to_draw(proposal: SequenceProposal, shape: tuple[int, int]) -> None:
    tags = torch.zeros(shape).long()
    sites = Sites.of(torch.ones(shape, dtype=torch.bool))
    draws = proposal.sample(tags, sites, NUM_TAGS, 5)
    assert draws.shape == (5, *shape)
    assert torch.equal(proposal.log_prob(draws, tags, sites, NUM_TAGS), torch.zeros(5, shape[1], dtype=torch.float64))


@every_proposal
def test_nothing_is_read_back_from_the_device(proposal: SequenceProposal) -> None:
    """Tensors without numbers in them refuse to be looked at."""
    with FakeTensorMode():
        mask = torch.ones(4, 3, dtype=torch.bool)
        tags, sites = torch.zeros(4, 3, dtype=torch.long), Sites.of(mask)
        draws = proposal.sample(tags, sites, NUM_TAGS, 7)
        assert proposal.log_prob(draws, tags, sites, NUM_TAGS).shape == (7, 3)


def test_long_chains_have_finite_logarithms() -> None:
    tags = torch.zeros(2000, 1).long()
    sites = Sites.of(torch.ones(2000, 1, dtype=torch.bool))
    for proposal in PROPOSALS.values():
        draws = proposal.sample(tags, sites, 4000, 3, torch.Generator().manual_seed(0))
        assert proposal.log_prob(draws, tags, sites, 4000).isfinite().all()


@pytest.mark.parametrize("sites", (1, 2, 3))
def test_number_of_neighbours(sites: int) -> None:
    found = Neighbours(sites).log_count(SITES, NUM_TAGS).exp().tolist()
    expected = [sum(p > 0 for p in law(Neighbours(sites), truth_of(chain))) for chain in CHAINS]
    torch.testing.assert_close(found, [float(count) for count in expected])


@pytest.mark.parametrize("proposal", (CostlySequences(), Neighbours(), MixedSequences((Neighbours(2),), (1,))))
def test_a_single_tag_has_no_other(proposal: SequenceProposal) -> None:
    message = "`num_tags` must be at least 2, got 1; "
    zeros = torch.zeros_like(TAGS)
    with pytest.raises(ValueError, match=message):
        proposal.sample(zeros, SITES, 1, 5)
    with pytest.raises(ValueError, match=message):
        proposal.log_prob(zeros.unsqueeze(0), zeros, SITES, 1)
    with pytest.raises(ValueError, match=message):
        Neighbours().log_count(SITES, 1)


@every_proposal
def test_full_support_is_declared(proposal: SequenceProposal) -> None:
    assert proposal.has_full_support == all(p > 0 for p in law(proposal, truth_of(0)))


@pytest.mark.parametrize("kind", (SimilarSequences, MovedNgrams))
@pytest.mark.parametrize("n", (1, 3, 4, 9))
def test_longer_n_grams(n: int, kind: type[SimilarSequences] | type[MovedNgrams]) -> None:
    truth = (0, 1, 1, 0, 1, 0)
    sites, tags = Sites.of(torch.ones(6, 1, dtype=torch.bool)), torch.tensor(truth).unsqueeze(-1)
    found = kind(n).log_prob(torch.tensor(listed(6, 2)).unsqueeze(-1), tags, sites, 2)
    torch.testing.assert_close(found.exp().flatten().tolist(), law(kind(n), truth, 2), rtol=1e-13, atol=0)


@given(st.data())
def test_edits_of_longer_sequences(data: st.DataObject) -> None:
    """Few tags, so that many pairs of places give the same sequence."""
    length = data.draw(st.integers(1, 9))
    truth = tuple(data.draw(st.lists(st.integers(0, 1), min_size=length, max_size=length)))
    answer = list(without(truth, data.draw(st.integers(0, length - 1))))
    answer.insert(data.draw(st.integers(0, length - 1)), data.draw(st.integers(0, 1)))
    places = list(itertools.product(range(length), repeat=2))
    expected = sum(without(truth, i) == without(tuple(answer), k) for i, k in places) / (length**2 * 2)
    tags, draws = torch.tensor(truth).unsqueeze(-1), torch.tensor(answer)[None, :, None]
    found = EditedSequences().log_prob(draws, tags, Sites.of(torch.ones(length, 1, dtype=torch.bool)), 2)
    assert math.isclose(found.exp().item(), expected, rel_tol=1e-12)


@pytest.mark.parametrize("proposal", (UniformSequences(), SimilarSequences(2), MovedNgrams(2), EditedSequences()), ids=repr)
def test_a_single_tag_is_certain(proposal: SequenceProposal) -> None:
    zeros = torch.zeros_like(TAGS)
    draws = proposal.sample(zeros, SITES, 1, 5)
    assert not draws.any() and not proposal.log_prob(draws, zeros, SITES, 1).any()


def test_messages() -> None:
    uniform, draws = UniformSequences(), TAGS.expand(5, -1, -1)
    with pytest.raises(ValueError, match="`num_samples` must be at least 1, got 0; "):
        uniform.sample(TAGS, SITES, NUM_TAGS, 0)
    with pytest.raises(TypeError, match=r"`num_tags` must be an integer, got 3\.0"):
        uniform.sample(TAGS, SITES, 3.0, 1)
    with pytest.raises(ValueError, match=r"`tags` must have shape \(4, 5\), got \(5, 4\); "):
        uniform.sample(TAGS.t(), SITES, NUM_TAGS, 5)
    with pytest.raises(ValueError, match=r"`tags` must have shape \(2, 4, 5\), got \(5, 4, 5\)"):
        uniform.sample(draws, SITES, NUM_TAGS, 2)
    with pytest.raises(ValueError, match=r"`tags` must have shape \(5, 4, 5\), got \(2, 4, 5\)"):
        uniform.log_prob(draws, draws[:2], SITES, NUM_TAGS)
    with pytest.raises(ValueError, match=r"`draws` must have shape \(1, 4, 5\), got \(4, 5\); "):
        uniform.log_prob(TAGS, TAGS, SITES, NUM_TAGS)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    (
        (lambda: Neighbours(0), ValueError, "`sites` must be at least 1, got 0; "),
        (lambda: Neighbours(1.0), TypeError, r"`sites` must be an integer, got 1\.0"),
        (lambda: SimilarSequences(0), ValueError, "`n` must be at least 1, got 0; "),
        (lambda: MovedNgrams(0), ValueError, "`n` must be at least 1, got 0; "),
        (lambda: MovedNgrams(2.0), TypeError, r"`n` must be an integer, got 2\.0"),
        (lambda: SimilarSequences(True), TypeError, "`n` must be an integer, got True"),
        (lambda: MixedSequences((), ()), ValueError, "`parts` must hold at least one proposal, got none"),
        (lambda: MixedSequences(("uniform",), (1,)), TypeError, "`parts` must hold sequence proposals, got 'uniform'"),
        (lambda: MixedSequences((Neighbours(),), (1, 2)), ValueError, "`weights` must hold one number for each of 1 parts"),
        (lambda: MixedSequences((Neighbours(),), (0,)), ValueError, "`weights` must be a positive number, got 0; "),
    ),
)  # fmt: skip
def test_messages_of_what_cannot_be_made(make, kind, message: str) -> None:
    with pytest.raises(kind, match=message):
        make()


def test_equal_proposals_are_equal() -> None:
    assert MixedSequences([Neighbours(2)], [1.0]) == MixedSequences((Neighbours(2),), (1.0,))
    assert len({Neighbours(1), Neighbours(), Neighbours(2), UniformSequences(), UniformSequences()}) == 3
