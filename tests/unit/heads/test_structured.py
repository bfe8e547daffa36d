"""`LinearCoreChain.structured` estimates the paper's losses over whole sequences."""

import math

import pytest
import torch
from torch import Tensor

from linearcore import Hinge, LinearCore, LinearCoreChain
from linearcore.analysis import conditional_risk
from linearcore.proposals import Uniform
from linearcore.proposals.sequences import Neighbours, UniformSequences
from linearcore.structures import Hamming, Sequences, Sites, path_score

SPACE = Sequences(3, 3)
EMISSIONS = torch.randn(3, 1, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
TAGS = torch.tensor([[0], [2], [1]])
DRAWS, BATCHES = 2000, 60


def head_of(**options: object) -> LinearCoreChain:
    torch.manual_seed(1)
    return LinearCoreChain(3, **options).double()


def every_score(head: LinearCoreChain) -> Tensor:
    sites = Sites.of(torch.ones(3, SPACE.size, dtype=torch.bool))
    emissions = EMISSIONS.expand(-1, SPACE.size, -1)
    return path_score(emissions, head.chain(emissions), SPACE.outputs.t(), sites).detach()


def exact(head: LinearCoreChain, form: str) -> float:
    """By the lab, which writes all 27 sequences out."""
    truth = (SPACE.outputs == TAGS.t()).all(-1).double()
    name = f"structured-{form}"
    return float(conditional_risk(head.surrogate, name, every_score(head), truth, outputs=SPACE, cost="hamming"))


@pytest.mark.parametrize("form", ("sum", "centered"))
@pytest.mark.parametrize("objective", ("raw", "normalised"))
def test_unbiased(form: str, objective: str) -> None:
    head, stream = head_of(), torch.Generator().manual_seed(2)
    values = torch.stack(
        [
            head.structured(EMISSIONS, TAGS, form=form, num_samples=DRAWS, objective=objective, generator=stream)
            for _ in range(BATCHES)
        ]
    ).detach()
    mass = (1 - SPACE.cost("hamming"))[0].sum() * (SPACE.size - 1) if form == "sum" else SPACE.cost("hamming")[0].sum()
    expected = exact(head, form) / (1.0 if objective == "raw" else float(mass))
    z = (float(values.mean()) - expected) / (float(values.std()) / math.sqrt(BATCHES))
    assert abs(z) < 4.0, (z, expected)
    # And the test can tell: a loss that is two per cent off is not taken for it.
    assert abs(float(values.mean()) - 1.02 * expected) / (float(values.std()) / math.sqrt(BATCHES)) > 4.0


def test_neighbours_are_averaged_over_themselves() -> None:
    head, stream = head_of(), torch.Generator().manual_seed(3)
    value = head.structured(EMISSIONS, TAGS, inner=Neighbours(1), num_samples=100_000, generator=stream)
    scores, phi = every_score(head), LinearCore()
    similarity = 1 - SPACE.cost("hamming")[:, (SPACE.outputs == TAGS.t()).all(-1)].squeeze(-1)
    changes = SPACE.changes.reshape(SPACE.size, -1)
    different = changes != torch.arange(SPACE.size).unsqueeze(-1)
    inner = (phi.value(scores.unsqueeze(-1) - scores[changes]) * different).sum(-1) / different.sum(-1)
    torch.testing.assert_close(value.detach(), (similarity * inner).sum() / similarity.sum(), rtol=0.01, atol=0.0)


def test_gradients_lower_the_loss_that_is_estimated() -> None:
    head, stream = head_of(), torch.Generator().manual_seed(4)
    before = exact(head, "sum")
    loss = head.structured(EMISSIONS, TAGS, num_samples=5000, generator=stream)
    loss.backward()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter -= 0.1 * parameter.grad
    assert exact(head, "sum") < before


def test_chains_are_masked_reduced_and_seeded_as_elsewhere() -> None:
    head = head_of(batch_first=True)
    emissions, tags = EMISSIONS.transpose(0, 1).repeat(3, 1, 1), TAGS.t().repeat(3, 1)
    tags[1, 1], tags[2] = -100, -100

    def losses(reduction: str) -> Tensor:
        stream = torch.Generator().manual_seed(5)
        return head.structured(emissions, tags, num_samples=7, reduction=reduction, generator=stream)

    each = losses("none")
    assert each.shape == (3,) and each[2] == 0
    torch.testing.assert_close(losses("sum"), each.sum())
    torch.testing.assert_close(losses("mean"), each.mean())
    torch.testing.assert_close(losses("token_mean"), each.sum() / 5)


def test_weighted_costs_count() -> None:
    heads = head_of(), head_of(cost=Hamming(torch.tensor([1.0, 1.0, 9.0])))
    values = [
        float(head.structured(EMISSIONS, TAGS, num_samples=50_000, generator=torch.Generator().manual_seed(6)).detach())
        for head in heads
    ]
    assert abs(values[0] - values[1]) > 1e-3


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"form": "triples"}, ValueError, "`form` must be one of 'sum', 'centered', got 'triples'"),
        ({"objective": "rare"}, ValueError, "`objective` must be one of 'raw', 'mean', 'normalised', .*, got 'rare'"),
        ({"proposal": Uniform()}, TypeError, "`proposal` must be a `SequenceProposal`, got Uniform; "),
        ({"form": "centered", "inner": UniformSequences()}, ValueError, "`inner` must be None for the centered form"),
        ({"num_samples": 0}, ValueError, "`num_samples` must be a positive integer, got 0; "),
        ({"reduction": "median"}, ValueError, "invalid reduction: median; choose one of"),
    ],
)
def test_messages(options: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        head_of().structured(EMISSIONS, TAGS, **{"num_samples": 3, **options})


def test_centered_wants_one_side() -> None:
    with pytest.raises(ValueError, match="`surrogate` must be one-sided"):
        head_of(surrogate=LinearCore(sides=2)).structured(EMISSIONS, TAGS, form="centered", num_samples=3)
    assert head_of(surrogate=Hinge()).structured(EMISSIONS, TAGS, form="centered", num_samples=3).isfinite()


def test_emissions_alone_are_no_part_of_it() -> None:
    plain, mixed = (
        head_of(unary=unary).structured(EMISSIONS, TAGS, num_samples=5, generator=torch.Generator().manual_seed(0))
        for unary in (0.0, 0.5)
    )
    assert torch.equal(plain, mixed)


@pytest.mark.parametrize("form", ("sum", "centered"))
def test_the_result_has_the_dtype_of_the_inputs_as_in_forward(form: str) -> None:
    head, emissions = LinearCoreChain(3).bfloat16(), EMISSIONS.bfloat16()
    loss = head.structured(emissions, TAGS, form=form, num_samples=4)
    assert loss.dtype == head(emissions, TAGS).dtype == torch.bfloat16
