"""Samples of a chain against the probabilities of all sequences."""

import math

import pytest
import torch

from linearcore.kernels import log_partition, sample_chain
from linearcore.structures import Chain, Sites, path_score
from tests.chains import Case, every_sequence, sites

MASK = torch.tensor([[1, 1, 0, 0, 1], [1, 0, 1, 0, 0], [1, 1, 1, 0, 0], [1, 0, 0, 0, 1]]).bool()


def make(forbidden: bool = False) -> Case:
    stream = torch.Generator().manual_seed(0)
    emissions, *parts = (torch.randn(size, generator=stream).double() for size in ((4, 5, 3), (3,), (3, 3), (3,)))
    chain = Chain(*parts)
    if forbidden:
        for part, place in ((chain.start, 0), (chain.transitions, (1, 2)), (chain.transitions, (2, 2)), (chain.end, 1)):
            part[place] = -math.inf
    return Case(emissions, chain, MASK)


@pytest.mark.parametrize(("forbidden", "is_shared"), ((False, False), (True, True)))
def test_sequences_are_drawn_with_their_probabilities(forbidden: bool, is_shared: bool) -> None:
    case, size = make(forbidden), 20_000
    stream = torch.Generator().manual_seed(1)
    drawn, log_probs = sample_chain(case.emissions, case.chain, Sites.of(MASK), size, stream, is_shared=is_shared)
    assert torch.equal(drawn == -100, (~MASK).expand_as(drawn))
    for row in range(MASK.shape[1]):
        scored = every_sequence(case, row)
        scores = torch.tensor([score for score, _ in scored]).double()
        probs = dict(zip((tags for _, tags in scored), scores.softmax(0).tolist(), strict=True))
        found = [tuple(tags) for tags in drawn[:, sites(MASK, row), row].tolist()]
        for tags, prob in probs.items():
            deviation = math.sqrt(size * prob * (1 - prob))
            assert abs(found.count(tags) - size * prob) <= 4.5 * deviation + 1e-9
        expected = torch.tensor([probs[tags] for tags in found[:200]]).double()
        torch.testing.assert_close(log_probs[:200, row].exp(), expected)


@pytest.mark.parametrize("scale", (1.0, 1e3, 1e5))
def test_log_probabilities_are_scores_minus_log_z(scale: float) -> None:
    case = make(forbidden=True).times(scale)
    where = Sites.of(MASK)
    drawn, log_probs = sample_chain(case.emissions, case.chain, where, 5, torch.Generator().manual_seed(0))
    log_z = log_partition(case.emissions, case.chain, MASK, "reference")
    for tags, log_prob in zip(drawn.clamp(min=0), log_probs, strict=True):
        torch.testing.assert_close(
            log_prob, path_score(case.emissions, case.chain, tags, where) - log_z, atol=1e-6, rtol=1e-9
        )


def test_the_same_generator_draws_the_same() -> None:
    case = make().to(torch.float32)
    runs = [sample_chain(*case[:2], Sites.of(MASK), 4, torch.Generator().manual_seed(3))[0] for _ in range(2)]
    assert torch.equal(*runs)
    other = sample_chain(*case[:2], Sites.of(MASK), 4, torch.Generator().manual_seed(4))[0]
    assert not torch.equal(runs[0], other)


def test_shared_random_numbers_do_not_depend_on_the_batch() -> None:
    case = make()
    draw = lambda rows: sample_chain(  # noqa: E731
        case.emissions[:, rows], case.chain, Sites.of(MASK[:, rows]), 6, torch.Generator().manual_seed(0), is_shared=True
    )[0]
    together = draw(slice(None))
    for row in range(MASK.shape[1]):
        assert torch.equal(draw(slice(row, row + 1))[..., 0], together[..., row])
    # Further padding changes nothing.
    padded = Case(torch.cat([case.emissions, case.emissions[:2]]), case.chain, torch.cat([MASK, torch.zeros(2, 5).bool()]))
    stream = torch.Generator().manual_seed(0)
    assert torch.equal(sample_chain(*padded[:2], Sites.of(padded.mask), 6, stream, is_shared=True)[0][:, :4], together)


def test_chains_without_sequences_and_without_positions() -> None:
    case = make()
    case.emissions[0, 0] = -math.inf
    drawn, log_probs = sample_chain(*case[:2], Sites.of(MASK), 3)
    assert bool((drawn[:, :, 0] == -100).all()) and bool((log_probs[:, 0] == -math.inf).all())
    assert log_probs[:, 3].tolist() == [0.0] * 3  # Row 3 is empty.
    drawn, log_probs = sample_chain(torch.zeros(0, 2, 3), case.chain, Sites.of(torch.zeros(0, 2).bool()), 3)
    assert drawn.shape == (3, 0, 2) and log_probs.tolist() == [[0.0, 0.0]] * 3


def test_a_tag_that_becomes_likely_late_is_not_lost() -> None:
    # At the first position tag 1 is e^2000 times less likely than tag 0, which cannot be followed by tag 1.
    emissions = torch.tensor([[[0.0, -2000.0]], [[0.0, 4000.0]]])
    chain = Chain(torch.zeros(2), torch.tensor([[0.0, -math.inf], [0.0, 0.0]]), torch.zeros(2))
    drawn, log_probs = sample_chain(emissions, chain, Sites.of(torch.ones(2, 1).bool()), 3)
    assert drawn.unique().tolist() == [1]
    assert log_probs.tolist() == [[0.0]] * 3
