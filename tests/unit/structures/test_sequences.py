"""Small output spaces against plain loops over `itertools.product`."""

import itertools

import pytest
import torch

from linearcore.structures import COST_NAMES, FAMILIES, Cost, Hamming, Sequences, ZeroOne

SHAPES = {"classes": (4, 1), "pairs": (2, 2), "triples": (3, 3), "long": (2, 5)}
every_shape = pytest.mark.parametrize(("num_tags", "length"), SHAPES.values(), ids=SHAPES.keys())


def listed(num_tags: int, length: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(num_tags), repeat=length))


@every_shape
def test_outputs_come_in_lexicographic_order(num_tags: int, length: int) -> None:
    space = Sequences(num_tags, length)
    assert [tuple(row) for row in space.outputs.tolist()] == listed(num_tags, length)
    assert space.size == num_tags**length


@every_shape
def test_costs(num_tags: int, length: int) -> None:
    space, outputs = Sequences(num_tags, length), listed(num_tags, length)
    hamming = [[sum(a != b for a, b in zip(y, z, strict=True)) / length for z in outputs] for y in outputs]
    assert space.cost("hamming").tolist() == hamming
    assert space.cost("zero-one").tolist() == [[float(y != z) for z in outputs] for y in outputs]


@every_shape
def test_costs_that_are_no_names(num_tags: int, length: int) -> None:
    space, outputs = Sequences(num_tags, length), listed(num_tags, length)
    assert torch.equal(space.cost(ZeroOne()), space.cost("zero-one"))
    # Powers of two add up and divide the same way in any order; the rows are answers, the columns truths.
    weight = [2.0**tag for tag in range(num_tags)]
    expected = [
        [sum(weight[b] for a, b in zip(y, z, strict=True) if a != b) / sum(weight[b] for b in z) for z in outputs]
        for y in outputs
    ]
    assert space.cost(Hamming(torch.tensor(weight))).tolist() == expected


@every_shape
def test_changes_set_one_site(num_tags: int, length: int) -> None:
    space, outputs = Sequences(num_tags, length), listed(num_tags, length)
    place = {output: index for index, output in enumerate(outputs)}
    for index, output in enumerate(outputs):
        for site in range(length):
            for tag in range(num_tags):
                changed = (*output[:site], tag, *output[site + 1 :])
                assert space.changes[index, site, tag] == place[changed]


@every_shape
def test_free_scores_are_all_scores(num_tags: int, length: int) -> None:
    space = Sequences(num_tags, length)
    assert torch.equal(space.features("free"), torch.eye(space.size, dtype=torch.float64))


@every_shape
def test_unary_scores_are_sums_over_sites(num_tags: int, length: int) -> None:
    space = Sequences(num_tags, length)
    local = torch.randn(length, num_tags, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    scores = space.features("unary") @ local.reshape(-1)
    expected = [sum(float(local[site, tag]) for site, tag in enumerate(output)) for output in listed(num_tags, length)]
    torch.testing.assert_close(scores.tolist(), expected)


def test_chain_scores_add_the_same_transitions_at_every_site() -> None:
    space = Sequences(3, 3)
    stream = torch.Generator().manual_seed(0)
    local = torch.randn(3, 3, dtype=torch.float64, generator=stream)
    transitions = torch.randn(3, 3, dtype=torch.float64, generator=stream)
    scores = space.features("chain") @ torch.cat([local.reshape(-1), transitions.reshape(-1)])
    expected = [
        sum(float(local[site, tag]) for site, tag in enumerate(output))
        + sum(float(transitions[a, b]) for a, b in itertools.pairwise(output))
        for output in listed(3, 3)
    ]
    torch.testing.assert_close(scores.tolist(), expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_site_can_be_scored_freely_by_every_family(family: str) -> None:
    assert torch.linalg.matrix_rank(Sequences(4).features(family)) == 4


def test_families_of_two_sites_have_the_sizes_they_should() -> None:
    # Two sites with two tags: 2 + 2 − 1 unary, one transition more makes them free.
    ranks = [int(torch.linalg.matrix_rank(Sequences(2, 2).features(family))) for family in ("unary", "chain", "free")]
    assert ranks == [3, 4, 4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    (
        ((1,), "`num_tags` must be at least 2, got 1"),
        ((2, 0), "`length` must be at least 1, got 0"),
        ((10, 5), "`length` must span at most 20000 outputs, got 10^5 = 100000; "),
    ),
)
def test_messages_of_the_space(arguments: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError) as error:
        Sequences(*arguments)
    assert message in str(error.value)


def test_a_cost_above_one_is_refused() -> None:
    class WrongTags(Cost):
        name = "wrong-tags"

        def between(self, prediction, target, mask=None, *, dtype=torch.float32):
            return (prediction != target).sum(-1).to(dtype)

    with pytest.raises(ValueError, match="`cost` must be between 0 and 1"):
        Sequences(2, 2).cost(WrongTags())
    assert Sequences(2, 1).cost(WrongTags()).tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_messages_of_costs_and_families() -> None:
    with pytest.raises(ValueError, match=f"`cost` must be one of {', '.join(map(repr, COST_NAMES))}, got 'f2'"):
        Sequences(2).cost("f2")
    with pytest.raises(ValueError, match=r"`weight` must have shape \(2,\), got \(3,\); "):
        Sequences(2, 2).cost(Hamming(torch.ones(3)))
    with pytest.raises(ValueError, match="`family` must be one of 'free', 'unary', 'chain', got 'tree'"):
        Sequences(2).features("tree")
