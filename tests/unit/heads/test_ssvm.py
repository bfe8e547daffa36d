"""ChainSSVM against the maximum over all sequences written out."""

import itertools

import pytest
import torch
from torch import Tensor

from linearcore.heads import ChainSSVM
from linearcore.structures import Constraints, Cost, Hamming, ZeroOne

NUM_TAGS = 3
#: One a chain: on to the end, cut off, with holes, with a tag of −100 in front and one in between.
MASK = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 1], [1, 1, 1, 1]]).bool().t()
TAGS = torch.tensor([[0, 2, 1, 1], [2, 2, 0, 0], [1, -7, 99, 0], [-100, 2, -100, 1]]).t()
CONSTRAINTS = Constraints.forbid(NUM_TAGS, pairs=[(0, 0), (2, 0), (1, 2)], start=[], end=[])
WEIGHT = torch.tensor([0.5, 2.0, 1.25], dtype=torch.float64)
COSTS: dict[str, str | Cost] = {
    "hamming": "hamming",
    "weighted": Hamming(WEIGHT),
    "zero-one": "zero-one",
    "object": ZeroOne(),
}
every_cost = pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS.keys())
OPTIONS: dict[str, dict[str, object]] = {"free": {}, "constrained": {"constraints": CONSTRAINTS}, "low rank": {"rank": 2}}
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())


def drawn(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def head_of(seed: int = 0, **options: object) -> ChainSSVM:
    head = ChainSSVM(NUM_TAGS, **options).double()
    for place, parameter in enumerate(head.parameters()):
        parameter.data = drawn(*parameter.shape, seed=10 * seed + place)
    return head


def obeys(constraints: Constraints | None, tags: tuple[int, ...]) -> bool:
    if constraints is None:
        return True
    steps = all(bool(constraints.transitions[pair]) for pair in itertools.pairwise(tags))
    return steps and bool(constraints.start[tags[0]]) and bool(constraints.end[tags[-1]])


def loss_of_one(head: ChainSSVM, emissions: Tensor, tags: list[int], mask: list[bool]) -> Tensor:
    """What one chain loses, by looking at every sequence: emissions (L, |Y|), and lists with holes and −100."""
    places = [place for place, tag in enumerate(tags) if mask[place] and tag != -100]
    truth = tuple(tags[place] for place in places)
    matrix = head.transitions if head.rank is None else head.transitions_from @ head.transitions_to.t()

    def score(sequence: tuple[int, ...]) -> Tensor:
        total = head.start_transitions[sequence[0]] + head.end_transitions[sequence[-1]]
        total = total + sum(emissions[place, tag] for place, tag in zip(places, sequence, strict=True))
        return total + sum(matrix[pair] for pair in itertools.pairwise(sequence))

    def cost(sequence: tuple[int, ...]) -> float:
        wrong = [own for own, tag in zip(truth, sequence, strict=True) if own != tag]
        if isinstance(head.cost, ZeroOne):
            return float(bool(wrong))
        return float(len(wrong)) if head.cost.weight is None else float(sum(head.cost.weight[own] for own in wrong))

    every = itertools.product(range(NUM_TAGS), repeat=len(places))
    allowed = [sequence for sequence in every if obeys(head.constraints, sequence)]
    violations = [cost(sequence) + score(sequence) - score(truth) for sequence in allowed]
    return max(violations, key=lambda violation: violation.item())


def value_and_gradients(head: ChainSSVM, emissions: Tensor, *, by_loop: bool) -> list[Tensor]:
    leaf = emissions.clone().requires_grad_()
    if by_loop:
        rows = zip(leaf.unbind(1), TAGS.t().tolist(), MASK.t().tolist(), strict=True)
        losses = torch.stack([loss_of_one(head, *row) for row in rows])
    elif head.batch_first:
        losses = -head(leaf.transpose(0, 1), TAGS.t(), MASK.t(), reduction="none")
    else:
        losses = -head(leaf, TAGS, MASK, reduction="none")
    upstream = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    return [losses.detach(), *torch.autograd.grad(losses, [leaf, *head.parameters()], upstream)]


@every_cost
@every_option
@pytest.mark.parametrize("seed", range(4))
def test_equals_the_maximum_over_all_sequences(cost: str | Cost, options: dict[str, object], seed: int) -> None:
    """Value and all gradients; the scores are random, so that the maximum is one sequence's alone."""
    head = head_of(seed, cost=cost, batch_first=bool(seed % 2), **options)
    emissions = drawn(*TAGS.shape, NUM_TAGS, seed=100 + seed)
    expected, found = (value_and_gradients(head, emissions, by_loop=way) for way in (True, False))
    for theirs, ours in zip(expected, found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    assert (found[0] >= 0).all() and found[0].max() > 0


@every_cost
@pytest.mark.parametrize("seed", range(3))
def test_never_negative_and_zero_where_the_truth_wins_by_the_margin(cost: str | Cost, seed: int) -> None:
    head = head_of(seed, cost=cost)
    emissions = drawn(*TAGS.shape, NUM_TAGS, seed=seed)
    truth = torch.nn.functional.one_hot(TAGS.clamp(0, 2), NUM_TAGS)
    for lead in (-50.0, 0.0, 1.0, 50.0):
        leaf = (emissions + lead * truth).requires_grad_()
        losses = -head(leaf, TAGS, MASK, reduction="none")
        gradients = torch.autograd.grad(losses.sum(), [leaf, *head.parameters()])
        assert (losses >= 0).all()
        if lead == 50.0:
            assert (losses == 0).all() and all((gradient == 0).all() for gradient in gradients)
        if lead == -50.0:
            assert (losses > 40).all()


def quiet(cost: str | Cost, num_tags: int = NUM_TAGS) -> ChainSSVM:
    """A head whose chain says nothing."""
    head = ChainSSVM(num_tags, cost=cost).double()
    for parameter in head.parameters():
        parameter.data.zero_()
    return head


@pytest.mark.parametrize("lead", (0.0, 0.25, 0.75, 1.0, 2.0))
def test_hinges_without_a_chain_are_known_by_hand(lead: float) -> None:
    """Two sites at which the truth leads by `lead`: the counts add up, of zero-one the nearest rival counts."""
    emissions, tags = torch.zeros(2, 1, NUM_TAGS, dtype=torch.float64), torch.tensor([[0], [1]])
    emissions[0, 0, 0] = emissions[1, 0, 1] = lead
    weight = torch.tensor([2.0, 1.0, 5.0])
    assert -quiet("hamming")(emissions, tags) == 2 * max(0, 1 - lead)
    assert -quiet("zero-one")(emissions, tags) == max(0, 1 - lead)
    assert -quiet(Hamming(weight))(emissions, tags) == max(0, 2 - lead) + max(0, 1 - lead)


def test_the_cost_is_a_count_and_not_a_share() -> None:
    for length in (1, 2, 7):
        assert -quiet("hamming")(torch.zeros(length, 1, NUM_TAGS).double(), torch.zeros(length, 1).long()) == length


@every_cost
def test_one_tag_loses_nothing(cost: str | Cost) -> None:
    cost = Hamming(torch.ones(1)) if isinstance(cost, Hamming) else cost
    head = quiet(cost, 1)
    emissions = drawn(3, 2, 1, seed=0).requires_grad_()
    loss = -head(emissions, torch.zeros(3, 2).long())
    loss.backward()
    assert loss == 0
    for leaf in (emissions, *head.parameters()):
        assert (leaf.grad == 0).all()


@every_cost
def test_where_only_the_truth_is_allowed_nothing_is_lost(cost: str | Cost) -> None:
    pairs = [pair for pair in itertools.product(range(NUM_TAGS), repeat=2) if pair not in ((0, 1), (1, 0))]
    constraints = Constraints.forbid(NUM_TAGS, pairs=pairs, start=[1, 2], end=[])
    head = head_of(cost=cost, constraints=constraints)
    emissions = drawn(4, 1, NUM_TAGS, seed=0).requires_grad_()
    loss = -head(emissions, torch.tensor([[0], [1], [0], [1]]))
    loss.backward()
    assert loss == 0
    for leaf in (emissions, *head.parameters()):
        assert (leaf.grad == 0).all()


def test_confidence_is_the_share_of_the_softmax_over_single_changes() -> None:
    head = head_of(constraints=CONSTRAINTS)
    emissions = drawn(*TAGS.shape, NUM_TAGS, seed=1)
    found = head.confidence(emissions, MASK, tags=TAGS)
    places = [0, 3]  # Of the third chain, whose tags are 1 and 0.
    for site, place in enumerate(places):
        scores = []
        for tag in range(NUM_TAGS):
            tags = (tag, 0) if site == 0 else (1, tag)
            score = head.start_transitions[tags[0]] + head.end_transitions[tags[1]] + head.transitions[tags]
            score = score + emissions[0, 2, tags[0]] + emissions[3, 2, tags[1]]
            scores.append(score if CONSTRAINTS.transitions[tags] else torch.full_like(score, -torch.inf))
        expected = torch.stack(scores).softmax(0)[(1, 0)[site]]
        torch.testing.assert_close(found[place, 2], expected.detach())


@pytest.mark.parametrize("cost", ("hamming", "zero-one"))
@pytest.mark.parametrize("num_tags", (3, 17))
def test_nan_at_a_wrong_tag_gives_nan(cost: str, num_tags: int) -> None:
    emissions = torch.randn(5, 2, num_tags, generator=torch.Generator().manual_seed(0))
    emissions[2, 0, -1] = torch.nan
    losses = ChainSSVM(num_tags, cost=cost, validate=False).loss(emissions, torch.zeros(5, 2).long(), reduction="none")
    assert losses[0].isnan() and losses[1].isfinite()


def test_repr_is_that_of_all_heads() -> None:
    assert repr(ChainSSVM(4)) == "ChainSSVM(num_tags=4)"
