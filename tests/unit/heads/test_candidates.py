"""The loss against the model's candidates, compared with enumeration of all sequences."""

import pytest
import torch

from linearcore.heads import LinearCoreChain
from linearcore.structures import EditDistance, SpanF1, bio
from tests.chains import Case, every_sequence

NAMES = ("O", "B-X", "I-X")
COST = SpanF1(NAMES)
TAGS = torch.tensor([[1, 2, 0, 1], [0, 1, 0, -100], [0, 0, 0, 0]])
EMISSIONS = torch.randn(3, 4, 3, generator=torch.Generator().manual_seed(0)).double()
ALL = 3**4


def make(**options: object) -> LinearCoreChain:
    torch.manual_seed(1)
    return LinearCoreChain(3, batch_first=True, **options).double()


def second_term(head: LinearCoreChain, emissions: torch.Tensor = EMISSIONS, **options: object) -> torch.Tensor:
    arguments = {"cost": COST, "candidates": ALL, "weight": 1.0} | options
    loss = head.candidate_loss(emissions, TAGS, reduction="none", **arguments)
    return loss - head.loss(emissions, TAGS, reduction="none")


@pytest.mark.parametrize("options", [{}, {"rank": 2}, {"constraints": bio(NAMES)}], ids=["full", "rank", "constrained"])
@pytest.mark.parametrize("cost", [COST, EditDistance()], ids=["span-f1", "edit"])
def test_with_all_sequences_it_is_the_definition(options, cost):
    head = make(**options)
    found = second_term(head, cost=cost)
    case = Case(EMISSIONS.transpose(0, 1), head.chain(EMISSIONS), TAGS.t() >= 0)
    for row, tags in enumerate(TAGS):
        target = tags[tags >= 0]
        values, sequences = zip(*every_sequence(case, row), strict=True)
        scores, outputs = torch.tensor(values, dtype=torch.float64), torch.tensor(sequences)
        costs = cost.between(outputs, target, dtype=torch.float64)
        margin = scores[(outputs == target).all(-1)] - (costs * scores.exp()).sum().log()
        torch.testing.assert_close(found[row], head.surrogate.value(margin).squeeze())


def test_without_wrong_candidates_the_term_is_zero_with_finite_gradients():
    head = make()
    certain = 50.0 * torch.nn.functional.one_hot(TAGS.clamp(min=0), 3).double()
    certain.requires_grad_()
    found = second_term(head, certain, candidates=1)
    assert found.tolist() == [0, 0, 0]
    head.candidate_loss(certain, TAGS, cost=COST, candidates=1).backward()
    assert certain.grad.isfinite().all()


def test_padding_may_hold_nan_and_its_gradient_is_zero():
    emissions = EMISSIONS.clone()
    emissions[1, 3] = float("nan")
    emissions.requires_grad_()
    loss = make().candidate_loss(emissions, TAGS, cost=COST)
    loss.backward()
    assert loss.isfinite() and emissions.grad.isfinite().all() and (emissions.grad[1, 3] == 0).all()


def test_gradient_is_that_of_finite_differences():
    head, emissions = make(), EMISSIONS[:1].clone().requires_grad_()

    def loss(values):
        return head.candidate_loss(values, TAGS[:1], cost=COST, candidates=ALL)

    assert torch.autograd.gradcheck(loss, emissions)


def test_only_the_best_sequences_are_candidates():
    head = make()
    best, scores = head.kbest(EMISSIONS, TAGS >= 0, k=1)
    costs = COST.between(best[0].clamp(min=0), TAGS.clamp(min=0), TAGS >= 0, dtype=torch.float64)
    case = Case(EMISSIONS.transpose(0, 1), head.chain(EMISSIONS), TAGS.t() >= 0)
    true = [dict((tags, score) for score, tags in every_sequence(case, row))[tuple(TAGS[row][TAGS[row] >= 0].tolist())]
            for row in range(len(TAGS))]  # fmt: skip
    expected = head.surrogate.value(torch.tensor(true, dtype=torch.float64) - scores[0] - costs.log())
    torch.testing.assert_close(second_term(head, candidates=1, weight=3.0), 3 * torch.where(costs > 0, expected, 0.0))


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"candidates": 0}, "candidates"),
        ({"candidates": 1.5}, "candidates"),
        ({"weight": 0.0}, "weight"),
        ({"cost": SpanF1(["O", "B-X"])}, "names"),
    ],
)
def test_options_out_of_range_are_refused(options, argument):
    with pytest.raises(ValueError, match=f"`{argument}`"):
        make().candidate_loss(EMISSIONS, TAGS, **({"cost": COST} | options))
