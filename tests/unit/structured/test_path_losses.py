"""`structured_loss` over the paths of automata, against sums over all paths.

One call estimates the same loss for many copies of an example. Their values and gradients are independent, so each number is
tested by one t-test over the copies, with Bonferroni's correction: an unbiased estimate would fail one in 10,000 seeds.
"""

import math
from typing import Any

import pytest
import torch
from scipy.stats import t as student
from torch import Tensor

from linearcore import LinearCore
from linearcore.proposals.sequences import UniformSequences
from linearcore.structured import PathDistribution, structured_estimate, structured_loss
from linearcore.structures import Automaton, Bleu, Chain, EditDistance, Hamming, SpanF1, chain_arc_scores
from tests.automata import every_path, padded
from tests.cases import each

PHI = LinearCore()
#: Labels of one to three, an arc that writes nothing, parallel arcs, and two paths with the same labels.
LATTICE = Automaton.from_arcs(
    [(0, 1, 2), (0, 1, 3), (1, 2, 4), (1, 2, -1), (2, 3, 5), (0, 3, 5), (0, 2, 2), (2, 3, 4)], final=[3]
)
GRID = Automaton.from_chain(3, 3)
NAMES = ["O", "B-A", "I-A"]
COPIES, SAMPLES, ALPHA = 100, 200, 1e-4
TRUTH = {LATTICE: torch.tensor([[2, 4, 5]]), GRID: torch.tensor([[1, 2, 0]])}
CASES = {
    "lattice, edit": (LATTICE, EditDistance()),
    "lattice, bleu": (LATTICE, Bleu(2)),
    "chain, hamming": (GRID, Hamming()),
    "chain, span-f1": (GRID, SpanF1(tuple(NAMES))),
}


def scores_of(automaton: Automaton, seed: int = 0) -> Tensor:
    return torch.randn(automaton.num_arcs, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def exact(automaton: Automaton, cost: Any, form: str, objective: str, scores: Tensor) -> Tensor:
    """The sum over all paths, by loops; the weights of "self-normalised" add up to 1."""
    arcs = padded(automaton, every_path(automaton))
    h = PathDistribution(automaton, scores).path_score(arcs)
    truth = TRUTH[automaton][0].tolist()
    total, weights, count = scores.new_zeros(()), 0.0, len(arcs)
    for place, row in enumerate(arcs):
        labels = [label for label in automaton.labels(row).tolist() if label >= 0]
        value = cost_of(cost, labels, truth)
        if form == "centered":
            total, weights = total + value * PHI.value(h.mean() - h[place]), weights + value
        else:
            others = torch.arange(count) != place
            total = total + (1 - value) * PHI.value(h[place] - h[others]).sum()
            weights += (1 - value) * (count - 1)
    terms = count if form == "centered" else count * (count - 1)
    return total / {"raw": 1, "mean": terms, "self-normalised": weights}[objective]


def cost_of(cost: Any, labels: list[int], truth: list[int]) -> float:
    options = {"dtype": torch.float64}
    return float(cost.between(torch.tensor(labels), torch.tensor(truth), **options))


def check(found: Tensor, expected: Tensor) -> None:
    """Tests the means of (COPIES, …) against `expected`."""
    found, expected = found.reshape(len(found), -1), expected.reshape(-1)
    error = (found.mean(0) - expected) / (found.std(0) / math.sqrt(len(found))).clamp(min=1e-12)
    limit = float(student.ppf(1 - ALPHA / 2 / found.shape[1], len(found) - 1))
    assert error.abs().max() < limit, (error, limit)


def proposals(name: str, automaton: Automaton) -> dict[str, PathDistribution]:
    if name == "uniform":
        return {}
    one, other = (PathDistribution(automaton, scores_of(automaton, seed).repeat(COPIES, 1)) for seed in (1, 2))
    return {"proposal": one, "inner": other}


ESTIMATES = {
    f"{case}, {form}, {proposal}, {objective}": (*CASES[case], form, proposal, objective)
    for case in CASES
    for form in ("sum", "centered")
    for proposal in ("uniform", "weighted")
    for objective in ("raw", "mean")
}
QUICK = [
    "lattice, edit, sum, uniform, mean",
    "lattice, edit, sum, weighted, raw",
    "lattice, bleu, centered, weighted, mean",
    "chain, hamming, centered, uniform, raw",
    "chain, span-f1, sum, weighted, mean",
]


@each(("automaton", "cost", "form", "proposal", "objective"), ESTIMATES, QUICK)
def test_values_and_gradients_are_unbiased(
    automaton: Automaton, cost: Any, form: str, proposal: str, objective: str
) -> None:
    scores = scores_of(automaton).repeat(COPIES, 1).requires_grad_()
    options = proposals(proposal, automaton)
    if form == "centered":
        options.pop("inner", None)
    losses = structured_loss(
        scores, TRUTH[automaton].repeat(COPIES, 1), structure=automaton, cost=cost, num_samples=SAMPLES, form=form,
        objective=objective, reduction="none", generator=torch.Generator().manual_seed(0), **options,
    )  # fmt: skip
    (gradient,) = torch.autograd.grad(losses.sum(), scores)
    leaf = scores_of(automaton).requires_grad_()
    value = exact(automaton, cost, form, objective, leaf)
    (slope,) = torch.autograd.grad(value, leaf)
    check(losses.detach(), value.detach())
    check(gradient, slope)


def test_self_normalised_weights_give_the_weighted_mean() -> None:
    scores, truth = scores_of(LATTICE).unsqueeze(0), TRUTH[LATTICE]
    found = structured_loss(
        scores, truth, structure=LATTICE, cost="edit", num_samples=200_000, objective="self-normalised",
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    torch.testing.assert_close(found, exact(LATTICE, EditDistance(), "sum", "self-normalised", scores[0]), rtol=0.01, atol=0)


class RoundedUp(Hamming):
    """A cost that is above 1 by a rounding error if all labels are wrong."""

    def between(self, *arguments: Any, **options: Any) -> Tensor:
        return super().between(*arguments, **options) * (1 + 1e-15)


def test_costs_above_one_by_rounding_have_weight_zero() -> None:
    found = structured_estimate(
        torch.zeros(1, GRID.num_arcs), TRUTH[GRID], structure=GRID, cost=RoundedUp(), num_samples=100, objective="mean",
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    assert found.log_weight.isneginf().any() and not found.log_weight.isnan().any()


def test_proposals_get_no_gradient() -> None:
    weights = scores_of(GRID, 1).unsqueeze(0).requires_grad_()
    found = structured_estimate(
        scores_of(GRID).unsqueeze(0).requires_grad_(), TRUTH[GRID], structure=GRID, num_samples=2, objective="mean",
        proposal=PathDistribution(GRID, weights),
    )  # fmt: skip
    found.losses.sum().backward()
    assert weights.grad is None and not found.log_weight.requires_grad


def test_an_automaton_of_a_chain_gives_the_loss_of_the_chain() -> None:
    stream = torch.Generator().manual_seed(0)
    sizes = (3, 1, 3), (3,), (3, 3), (3,)
    emissions, *parts = (torch.randn(size, dtype=torch.float64, generator=stream) for size in sizes)
    chain = Chain(*parts)
    arc_scores = chain_arc_scores(GRID, emissions, chain)
    how: dict[str, Any] = {"cost": SpanF1(tuple(NAMES)), "num_samples": 200_000, "objective": "mean", "generator": stream}
    ours = structured_loss(arc_scores, TRUTH[GRID], structure=GRID, **how)
    theirs = structured_loss(emissions, TRUTH[GRID].t(), structure=chain, **how)
    torch.testing.assert_close(ours, theirs, rtol=0.02, atol=0)


def test_a_list_of_automata_is_one_for_each_row() -> None:
    words = Automaton.from_lexicon(["ab", "abc", "b"])
    automata, truth = [LATTICE, words], torch.tensor([[2, 4, 5], [0, 1, -100]])
    scores = [scores_of(LATTICE).requires_grad_(), scores_of(words).requires_grad_()]
    proposal = [PathDistribution(each, scores_of(each, 1)) for each in automata]
    how: dict[str, Any] = {"cost": "edit", "num_samples": 20, "objective": "mean", "proposal": proposal}
    found = structured_estimate(scores, truth, structure=automata, generator=torch.Generator().manual_seed(3), **how)
    stream = torch.Generator().manual_seed(3)
    rows = [
        structured_estimate(
            scores[row].unsqueeze(0), truth[row : row + 1], structure=automata[row], generator=stream,
            **how | {"proposal": proposal[row]},
        )
        for row in (0, 1)
    ]  # fmt: skip
    assert torch.equal(found.losses, torch.cat([row.losses for row in rows]))
    assert found.log_weight.shape == (20, 2) and (found.effective_sample_size > 1).all()
    total = structured_loss(scores, truth, structure=automata, reduction="sum", **how)
    assert all(gradient.abs().sum() > 0 for gradient in torch.autograd.grad(total, scores))


def test_sizes_at_the_ends() -> None:
    single = Automaton.from_arcs([(0, 1, 2)], final=[1])
    found = structured_loss(torch.ones(2, 1), torch.tensor([[2], [0]]), structure=single, num_samples=3, objective="mean")
    assert found == 0  # There is no other path.
    empty = structured_loss(
        torch.ones(0, 1), torch.ones(0, 1).long(), structure=single, num_samples=3, objective="mean", reduction="none"
    )
    assert empty.shape == (0,)
    half = structured_loss(
        scores_of(GRID).unsqueeze(0).bfloat16(), TRUTH[GRID], structure=GRID, num_samples=3, objective="raw"
    )
    assert half.dtype == torch.bfloat16 and half.isfinite()


FORBIDDEN = torch.full((GRID.num_arcs,), -math.inf)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"objective": "normalised"}, ValueError, "`objective` must be one of 'raw', 'mean', 'self-normalised' for an auto"),
        ({"mask": torch.ones(1, 3).bool()}, ValueError, "`mask` must be None for an automaton"),
        ({"structure": [GRID, "chain"]}, TypeError, "`structure` must be a `Chain`, an `Automaton`"),
        ({"structure": []}, TypeError, "`structure` must be a `Chain`, an `Automaton`"),
        ({"structure": [GRID, GRID]}, ValueError, "`scores` must have one vector for each of 2 automata, got 1"),
        ({"scores": torch.zeros(1, 3)}, ValueError, rf"`scores` must have shape \(B, {GRID.num_arcs}\), got \(1, 3\)"),
        ({"scores": FORBIDDEN.unsqueeze(0)}, ValueError, "`scores` must be finite"),
        ({"scores": [0.0]}, TypeError, "`scores` must be a torch tensor"),
        ({"truth": torch.zeros(1, 3)}, TypeError, "`truth` must be a tensor of integers, got torch.float32"),
        ({"truth": [[0, 1, 2]]}, TypeError, "`truth` must be a tensor of integers, got list"),
        ({"truth": torch.zeros(2, 3).long()}, ValueError, "`truth` must have shape"),
        ({"truth": torch.zeros(3).long()}, ValueError, "`truth` must have shape"),
        ({"truth": torch.tensor([[0, -100, 1]])}, ValueError, "`truth` must be labels from 0, and -100 after their end"),
        ({"truth": torch.tensor([[0, 1, -1]])}, ValueError, "`truth` must be labels from 0, and -100 after their end"),
        ({"truth": torch.tensor([[0, 1]])}, ValueError, "`cost` must compare outputs of different lengths, got 'hamming'"),
        ({"cost": SpanF1(("O", "B-A"))}, ValueError, "`names` must have one name for each of 3 tags, got 2"),
        ({"cost": SpanF1(("O", "B-A")), "truth": torch.tensor([[0, 1, 0]])}, ValueError, "`names` must have one name"),
        ({"cost": "span-f1"}, ValueError, "`cost` must come with the names of the tags"),
        ({"proposal": UniformSequences()}, TypeError, "`proposal` must be a `PathDistribution` for an automaton"),
        ({"inner": PathDistribution.uniform(LATTICE)}, ValueError, "`inner` must have the automaton of `structure`"),
        ({"proposal": PathDistribution(GRID, torch.zeros(3, GRID.num_arcs))}, ValueError, "`proposal` must have scores of"),
        ({"proposal": PathDistribution(GRID, FORBIDDEN)}, ValueError, "`proposal` must have a path with positive prob"),
        ({"form": "centered", "inner": PathDistribution.uniform(GRID)}, ValueError, "`inner` must be None for the centered"),
    ],
)  # fmt: skip
def test_messages(options: dict[str, Any], error: type[Exception], message: str) -> None:
    how: dict[str, Any] = {
        "scores": torch.zeros(1, GRID.num_arcs), "truth": TRUTH[GRID], "structure": GRID, "num_samples": 2,
        "objective": "mean",
    } | options  # fmt: skip
    with pytest.raises(error, match=message) as found:
        structured_loss(how.pop("scores"), how.pop("truth"), **how)
    assert "\n" not in str(found.value)


def test_paths_of_different_lengths_need_a_cost_that_compares_them() -> None:
    how: dict[str, Any] = {"structure": LATTICE, "num_samples": 2, "objective": "mean"}
    scores = scores_of(LATTICE).unsqueeze(0)
    for cost in ("hamming", "ngram", "clipped-ngram", "zero-one"):
        with pytest.raises(ValueError, match=f"got '{cost}' for outputs of 1 to 3 labels"):
            structured_loss(scores, TRUTH[LATTICE], cost=cost, **how)


def test_a_cost_for_more_tags_than_the_automaton_has_labels_is_accepted() -> None:
    pair = Automaton.from_arcs([(0, 1, 0), (0, 1, 1)], final=[1])
    how: dict[str, Any] = {"structure": pair, "num_samples": 2, "objective": "mean"}
    for cost in (SpanF1(tuple(NAMES)), Hamming(torch.tensor([1.0, 2.0, 3.0]))):
        assert structured_loss(torch.zeros(1, 2), torch.tensor([[1]]), cost=cost, **how).isfinite()


def test_a_chain_refuses_a_distribution_over_paths() -> None:
    chain = Chain(torch.zeros(3), torch.zeros(3, 3), torch.zeros(3))
    with pytest.raises(TypeError, match="`proposal` must be a `SequenceProposal`, got PathDistribution"):
        structured_loss(
            torch.zeros(3, 1, 3), TRUTH[GRID].t(), structure=chain, num_samples=2, proposal=PathDistribution.uniform(GRID)
        )
