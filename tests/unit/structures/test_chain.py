"""Sites and path scores against plain loops."""

import math

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from linearcore.structures import Chain, Sites, path_score

NUM_TAGS = 3


@st.composite
def masks(draw: st.DrawFn) -> Tensor:
    """(L, B) of any pattern: holes, off in front, nothing on, no positions, no chains."""
    length, batch = draw(st.integers(0, 6)), draw(st.integers(0, 4))
    rows = draw(st.lists(st.booleans(), min_size=length * batch, max_size=length * batch))
    return torch.tensor(rows, dtype=torch.bool).reshape(length, batch)


def of(*columns: str) -> Tensor:
    """(L, B), one string of 0 and 1 a chain."""
    return torch.tensor([[sign == "1" for sign in column] for column in columns]).t()


def with_examples(test):
    empty = (torch.zeros(shape).bool() for shape in ((0, 3), (4, 0), (0, 0)))
    for mask in (of("10110", "00100", "00000"), *empty):
        test = example(mask=mask)(test)
    return given(mask=masks())(test)


def drawn(mask: Tensor) -> tuple[Tensor, Chain, Tensor]:
    """Emissions, a chain and tags for a mask."""
    generator = torch.Generator().manual_seed(int(mask.sum()))
    length, batch = mask.shape
    sizes = ((length, batch, NUM_TAGS), (NUM_TAGS,), (NUM_TAGS, NUM_TAGS), (NUM_TAGS,))
    emissions, *own = (torch.randn(size, dtype=torch.float64, generator=generator) for size in sizes)
    return emissions, Chain(*own), torch.randint(NUM_TAGS, (length, batch), generator=generator)


def score_of_one(emissions: Tensor, chain: Chain, tags: list[int], mask: list[bool]) -> Tensor:
    """h of one chain: along the positions that are on, adding up what is met."""
    total, last = torch.zeros((), dtype=torch.float64), None
    for time, (tag, is_on) in enumerate(zip(tags, mask, strict=True)):
        if is_on:
            total = total + emissions[time, tag] + (chain.start[tag] if last is None else chain.transitions[last, tag])
            last = tag
    return total if last is None else total + chain.end[last]


@with_examples
def test_neighbours_are_the_nearest_positions_that_are_on(mask: Tensor) -> None:
    sites, (length, batch) = Sites.of(mask), mask.shape
    assert sites.previous.shape == sites.following.shape == mask.shape
    assert sites.previous.dtype == sites.following.dtype == torch.long
    for chain in range(batch):
        places = [time for time in range(length) if mask[time, chain]]
        for time in range(length):
            assert sites.previous[time, chain] == max([place for place in places if place < time], default=-1)
            assert sites.following[time, chain] == min([place for place in places if place > time], default=length)
            assert sites.is_first[time, chain] == (places[:1] == [time])
            assert sites.is_last[time, chain] == (places[-1:] == [time])


@with_examples
def test_tags_of_neighbours(mask: Tensor) -> None:
    sites, tags = Sites.of(mask), drawn(mask)[2]
    length = len(mask)
    for found, place in ((sites.before(tags), sites.previous), (sites.after(tags), sites.following)):
        assert found.shape == mask.shape
        assert ((found >= 0) & (found < NUM_TAGS)).all()  # Also where there is none: it will be looked up.
        for time, chain in ((place >= 0) & (place < length)).nonzero().tolist():
            assert found[time, chain] == tags[place[time, chain], chain]


@pytest.mark.parametrize("shape", ((4, 3), (1, 2), (3, 0), (0, 2)), ids=str)
def test_knowing_that_all_is_on_changes_nothing(shape: tuple[int, int]) -> None:
    mask = torch.ones(shape, dtype=torch.bool)
    looked, told = Sites.of(mask), Sites.of(mask, is_full=True)
    tags = drawn(mask)[2]
    for name in ("mask", "previous", "following", "is_first", "is_last"):
        assert torch.equal(getattr(looked, name), getattr(told, name)), name
    for sites in (looked, told):
        assert sites.before(tags).shape == sites.after(tags).shape == mask.shape
    assert torch.equal(looked.before(tags)[1:], told.before(tags)[1:])
    assert torch.equal(looked.after(tags)[:-1], told.after(tags)[:-1])


def test_sites_do_not_change_what_they_are_made_of() -> None:
    mask = of("101", "011")
    before = mask.clone()
    sites = Sites.of(mask)
    sites.before(torch.zeros(3, 2).long())
    assert torch.equal(mask, before) and torch.equal(sites.mask, before)


@with_examples
def test_path_score_is_the_sum_along_the_path(mask: Tensor) -> None:
    emissions, chain, tags = drawn(mask)
    found = path_score(emissions, chain, tags, Sites.of(mask))
    assert found.shape == mask.shape[1:]
    for column, score in enumerate(found):
        ours = score_of_one(emissions[:, column], chain, tags[:, column].tolist(), mask[:, column].tolist())
        torch.testing.assert_close(score, ours, rtol=1e-13, atol=1e-13)


def test_the_gradient_of_a_path_score_counts_what_is_met() -> None:
    mask, tags = of("1101"), torch.tensor([[2], [0], [1], [0]])
    sizes = ((4, 1, NUM_TAGS), (NUM_TAGS,), (NUM_TAGS, NUM_TAGS), (NUM_TAGS,))
    leaves = [torch.zeros(size, requires_grad=True) for size in sizes]
    path_score(leaves[0], Chain(*leaves[1:]), tags, Sites.of(mask)).sum().backward()
    emissions, start, transitions, end = (leaf.grad for leaf in leaves)
    assert emissions[:, 0].tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 0], [1, 0, 0]]
    assert start.tolist() == [0, 0, 1] and end.tolist() == [1, 0, 0]
    assert transitions.tolist() == [[1, 0, 0], [0, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("padding", (math.nan, math.inf, 1e30))
def test_what_is_off_does_not_reach_a_path_score(padding: float) -> None:
    mask = of("1011", "0110", "0000")
    emissions, chain, tags = drawn(mask)
    expected = path_score(emissions, chain, tags, Sites.of(mask))
    leaf = emissions.masked_fill(~mask.unsqueeze(-1), padding).requires_grad_()
    own = Chain(*(part.clone().requires_grad_() for part in chain))
    found = path_score(leaf, own, tags, Sites.of(mask))
    assert torch.equal(found, expected) and found[2] == 0
    for gradient in torch.autograd.grad(found.sum(), [leaf, *own]):
        assert gradient.isfinite().all()


def test_a_forbidden_step_scores_minus_infinity() -> None:
    """Also where the forbidden entry is met at one chain only, and without NaN in any gradient."""
    mask = of("11", "11")
    emissions, chain, _ = drawn(mask)
    transitions = chain.transitions.clone()
    transitions[0, 1] = -math.inf
    leaf = emissions.clone().requires_grad_()
    scores = path_score(leaf, chain._replace(transitions=transitions), torch.tensor([[0, 0], [1, 2]]), Sites.of(mask))
    assert scores[0] == -math.inf and scores[1].isfinite()
    assert torch.autograd.grad(scores.sum(), leaf)[0].isfinite().all()
