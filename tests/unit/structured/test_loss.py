"""`structured_loss` against sums over all sequences, for every cost and proposal.

One call estimates the same loss for many copies of an example. Their values and gradients are independent, so each number is
tested by one t-test over the copies, with Bonferroni's correction: an unbiased estimate would fail one in 10,000 seeds.
"""

import math
from functools import cache
from typing import Any

import pytest
import torch
from scipy.stats import t as student
from torch import Tensor

from linearcore import Hinge, LinearCore, LinearCoreChain
from linearcore.proposals.sequences import (
    EditedSequences,
    ListedSequences,
    MixedSequences,
    ModelSequences,
    Neighbours,
    SequenceProposal,
    SimilarSequences,
    UniformSequences,
)
from linearcore.structured import StructuredEstimate, structured_estimate, structured_loss
from linearcore.structures import COST_NAMES, AlignedNgram, Chain, Cost, Sequences, Sites, path_score, resolve_cost
from tests.chains import random_case

NAMES, PHI = ["O", "B-A", "I-A"], LinearCore()
COSTS: dict[str, Cost] = {name: resolve_cost(name, NAMES) for name in COST_NAMES}
COPIES, SAMPLES, ALPHA = 120, 300, 1e-4
#: An example of three tags, and one of two around a hole.
CASE = random_case(0, 3, 2, 3, torch.tensor([[True, True], [True, False], [True, True]])).times(0.7)
TAGS = torch.tensor([[1, 1], [2, -100], [0, 0]])
EXAMPLES = range(2)


def copies(tensor: Tensor) -> Tensor:
    return tensor.repeat_interleave(COPIES, 1)


MODEL = ModelSequences(copies(CASE.emissions), CASE.chain)
LISTED = ListedSequences(copies(TAGS.clamp(min=0)).unsqueeze(0))
UNIFORM = UniformSequences()
PROPOSALS: dict[str, SequenceProposal] = {
    "uniform": UNIFORM,
    "bigrams": MixedSequences((SimilarSequences(2), UNIFORM), (3, 1)),
    "edited": MixedSequences((EditedSequences(), UNIFORM), (3, 1)),
    "model": MODEL,
    "listed": MixedSequences((LISTED, UNIFORM), (1, 3)),
}
ALL = MixedSequences((SimilarSequences(2), EditedSequences(), MODEL, LISTED, UNIFORM), (2, 1, 1, 1, 2))


@cache
def space(example: int) -> Sequences:
    return Sequences(3, 3 - example)


def exact(cost: Cost, form: str, example: int) -> tuple[Tensor, int]:
    """The sum over all sequences and its gradient in the emissions of the tags, in one row, and the number of terms."""
    every, number = space(example), space(example).size
    mask = CASE.mask[:, example]
    emissions = CASE.emissions[mask, example].clone().requires_grad_()
    sites = Sites.of(torch.ones(every.length, number, dtype=torch.bool))
    scores = path_score(emissions.unsqueeze(1).expand(-1, number, -1), CASE.chain, every.outputs.t(), sites)
    costs = cost.between(every.outputs, TAGS[mask, example], dtype=torch.float64)
    if form == "sum":
        losses = PHI.value(scores.unsqueeze(1) - scores)
        total = ((1 - costs) * (losses.sum(1) - losses.diagonal())).sum()
        number *= number - 1
    else:
        total = (costs * PHI.value(scores.mean() - scores)).sum()
    (gradient,) = torch.autograd.grad(total, emissions)
    return torch.cat([total.detach().reshape(1), gradient.flatten()]), number


def estimated(**options: Any) -> list[Tensor]:
    """For each example (COPIES, …): the same numbers of each copy."""
    emissions = copies(CASE.emissions).requires_grad_()
    losses = structured_loss(
        emissions, copies(TAGS), structure=CASE.chain, surrogate=PHI, reduction="none",
        generator=torch.Generator().manual_seed(0), num_samples=SAMPLES, **options,
    )  # fmt: skip
    (gradient,) = torch.autograd.grad(losses.sum(), emissions)
    assert not gradient[~copies(CASE.mask)].any()
    gradients = gradient.view(3, 2, COPIES, 3).unbind(1)
    return [
        torch.cat([values.detach().unsqueeze(-1), entries[CASE.mask[:, example]].movedim(1, 0).flatten(1)], 1)
        for example, values, entries in zip(EXAMPLES, losses.view(2, COPIES), gradients, strict=True)
    ]


def assert_unbiased(found: Tensor, expected: Tensor) -> None:
    error = found.std(0) / math.sqrt(len(found))
    distance = (found.mean(0) - expected).abs()
    limit = float(student.isf(ALPHA / 2 / len(expected), len(found) - 1))
    assert bool((distance <= limit * error + 1e-12).all()), (distance / error, limit)
    # A value that is a fifth too large is noticed.
    assert abs(float(found[:, 0].mean() - 1.2 * expected[0])) > limit * float(error[0])


@pytest.mark.parametrize("form", ("sum", "centered"))
@pytest.mark.parametrize("name", COST_NAMES)
def test_every_cost_is_unbiased(name: str, form: str) -> None:
    found = estimated(cost=COSTS[name], form=form, proposal=ALL, objective="mean")
    for example in EXAMPLES:
        expected, number = exact(COSTS[name], form, example)
        assert_unbiased(found[example], expected / number)


@pytest.mark.parametrize("proposal", PROPOSALS.values(), ids=PROPOSALS.keys())
def test_every_proposal_is_unbiased(proposal: SequenceProposal) -> None:
    assert proposal.has_full_support
    found = estimated(cost=COSTS["span-f1"], proposal=proposal, objective="raw")
    for example in EXAMPLES:
        assert_unbiased(found[example], exact(COSTS["span-f1"], "sum", example)[0])


def test_without_full_support_a_sum_is_incomplete() -> None:
    """The test above can tell: without uniform samples the estimate is that of another sum."""
    expected, number = exact(COSTS["edit"], "sum", 0)
    found = estimated(cost=COSTS["edit"], proposal=SimilarSequences(2), objective="mean")[0]
    with pytest.raises(AssertionError):
        assert_unbiased(found, expected / number)


LARGER = random_case(1, 6, 4, 5)
LARGER_TAGS = torch.randint(5, (6, 4), generator=torch.Generator().manual_seed(0))


def on_larger(function: Any = structured_estimate, **options: Any) -> Any:
    """A chain of six tags out of five for each of four examples."""
    stream = torch.Generator().manual_seed(0)
    options = {"structure": LARGER.chain, "num_samples": 200, "generator": stream, **options}
    return function(options.pop("scores", LARGER.emissions), options.pop("truth", LARGER_TAGS), **options)


@pytest.mark.parametrize("n", (1, 2, 3))
def test_the_default_is_exact_for_n_grams(n: int) -> None:
    """The weights differ only where y'' equals y', which has weight 0."""
    weight = on_larger(cost=AlignedNgram(n)).log_weight.exp()
    assert bool(((weight == 0) | ((weight - weight.amax(0)).abs() < 1e-9)).all())
    mass = 3.0 ** (3 - n) * 26
    assert_unbiased(estimated(cost=AlignedNgram(n))[0], exact(AlignedNgram(n), "sum", 0)[0] / mass)


@pytest.mark.parametrize("form", ("sum", "centered"))
def test_means_are_sums_over_the_number_of_terms(form: str) -> None:
    raw, mean = (on_larger(form=form, cost="edit", proposal=UNIFORM, objective=objective) for objective in ("raw", "mean"))
    number = 5**6 * (5**6 - 1) if form == "sum" else 5**6
    torch.testing.assert_close(mean.losses, raw.losses / number)
    near = on_larger(inner=Neighbours(), objective="raw").losses / (5**6 * 24)
    torch.testing.assert_close(on_larger(inner=Neighbours(), objective="mean").losses, near)


def test_means_of_long_sequences_do_not_overflow() -> None:
    case, tags = random_case(1, 200, 1, 50).to(torch.float32), torch.zeros(200, 1).long()
    proposal = MixedSequences((SimilarSequences(2), UNIFORM), (3, 1))
    options = {"structure": case.chain, "cost": "bleu", "proposal": proposal, "num_samples": 50}
    loss, raw = (structured_loss(case.emissions, tags, objective=name, **options) for name in ("mean", "raw"))
    assert loss.isfinite() and loss > 0 and not raw.isfinite()


def test_self_normalised_weights_have_mean_one() -> None:
    weight = on_larger(cost="edit", proposal=UNIFORM, objective="self-normalised").log_weight.exp()
    torch.testing.assert_close(weight.mean(0), torch.ones(4).double())


def test_effective_sample_size() -> None:
    weight = torch.tensor([[1.0, 3.0, 0.0, 1e-300], [1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    estimate = StructuredEstimate(torch.zeros(4), weight.log())
    torch.testing.assert_close(estimate.effective_sample_size, torch.tensor([3.0, 1.6, 0.0, 1.0]).double())
    better, worse = (on_larger(cost="ngram", proposal=proposal) for proposal in (None, UNIFORM))
    assert bool((better.effective_sample_size > 5 * worse.effective_sample_size).all())


def test_the_head_computes_the_same() -> None:
    head = LinearCoreChain(5, batch_first=True, surrogate=Hinge(), cost="ngram").double()
    mask = torch.arange(6) < torch.tensor([[6], [1], [4], [5]])
    options: dict[str, Any] = {"num_samples": 20, "proposal": UNIFORM, "inner": Neighbours()}
    stream, emissions = torch.Generator().manual_seed(0), LARGER.emissions
    found = head.structured(emissions.transpose(0, 1), LARGER_TAGS.t(), mask, generator=stream, reduction="mean", **options)
    chain = head.chain(emissions)
    expected = on_larger(structured_loss, structure=chain, mask=mask.t(), cost="ngram", surrogate=Hinge(), **options)
    assert torch.equal(found, expected)


def test_masked_tags_and_padding() -> None:
    mask = torch.arange(6).unsqueeze(-1) < torch.tensor([6, 1, 4, 0])
    padded = LARGER_TAGS.masked_fill(~mask, -100)
    by_mask, by_tag = on_larger(mask=mask).losses, on_larger(truth=padded.int()).losses
    assert torch.equal(by_mask, by_tag) and by_tag[3] == 0
    each = on_larger(structured_loss, mask=mask, reduction="none")
    assert torch.equal(each, by_mask)
    torch.testing.assert_close(on_larger(structured_loss, mask=mask, reduction="sum"), each.sum())
    torch.testing.assert_close(on_larger(structured_loss, mask=mask), each.mean())


def test_half_precision_is_computed_in_single() -> None:
    scores, chain = LARGER.emissions.bfloat16(), Chain(*(part.bfloat16() for part in LARGER.chain))
    half = on_larger(structured_loss, scores=scores, structure=chain)
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.double(), on_larger(structured_loss), rtol=0.05, atol=0.0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"scores": torch.zeros(6, 4, 5).long()}, TypeError, "`scores` must be floating point, got torch.int64"),
        ({"scores": torch.zeros(6, 5)}, ValueError, r"`scores` must have shape \(L, B, \|Y\|\), got \(6, 5\)"),
        ({"structure": tuple(LARGER.chain)}, TypeError, "`structure` must be a `Chain`, an `Automaton` or .*, got tuple"),
        ({"structure": LARGER.chain._replace(end=torch.zeros(4))}, ValueError, r"`structure.end` must have shape \(5,\)"),
        ({"truth": LARGER_TAGS.t()}, ValueError, r"`truth` must have shape \(6, 4\), got \(4, 6\)"),
        ({"truth": LARGER_TAGS.double()}, TypeError, "`truth` must be integers, got torch.float64"),
        ({"truth": LARGER_TAGS + 4}, ValueError, r"`truth` must be in \[0, 5\) or -100"),
        ({"mask": torch.ones(4, 6)}, ValueError, r"`mask` must have shape \(6, 4\)"),
        ({"cost": "span-f1"}, ValueError, "`cost` must come with the names of the tags"),
        ({"cost": COSTS["span-f1"]}, ValueError, "`names` must have one name for each of 5 tags, got 3"),
        ({"cost": "edit"}, ValueError, "`cost` must define `log_similarity_mass` for the normalised objective"),
        ({"num_samples": 0}, ValueError, "`num_samples` must be a positive integer, got 0"),
        ({"proposal": "uniform"}, TypeError, "`proposal` must be a `SequenceProposal`, got str"),
        ({"inner": UniformSequences}, TypeError, "`inner` must be a `SequenceProposal`"),
        ({"form": "centered", "inner": UNIFORM}, ValueError, "`inner` must be None for the centered form"),
        ({"form": "centered", "surrogate": LinearCore(sides=2)}, ValueError, "`surrogate` must be one-sided"),
        ({"objective": "median"}, ValueError, "`objective` must be one of 'raw', 'mean', .*, got 'median'"),
        ({"form": "pairs"}, ValueError, "`form` must be one of 'sum', 'centered', got 'pairs'"),
    ],
)  # fmt: skip
def test_messages(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        on_larger(structured_loss, **options)
