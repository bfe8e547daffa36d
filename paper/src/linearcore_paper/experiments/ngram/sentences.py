"""Numbers for the sentences of the appendix: additivity, variance, the linear rate and the cost of a step."""

import time
from itertools import product
from typing import Any

import torch

from linearcore.analysis import named_form, rate
from linearcore.proposals.sequences import (
    MixedSequences,
    ModelSequences,
    MovedNgrams,
    SequenceProposal,
    SimilarSequences,
    UniformSequences,
)
from linearcore.structured import structured_loss
from linearcore.structures import AlignedNgram, Bleu, Chain, ClippedNgram, Cost, Sequences, SpanF1, TokenF1
from linearcore.surrogates import LinearCore
from linearcore_paper.experiments._numbers import round_values

WINDOWS = (2, 3, 4)
DELTAS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
TAGS = (50, 500, 5000)
LENGTH, BATCH, SAMPLES = 20, 8, 64


def additivity() -> dict[str, list[float]]:
    """Returns for each cost and window the largest difference that no sum over windows of this many tags can have.

    For sequences of window + 1 tags, ℓ(a…b) − ℓ(a'…b) − ℓ(a…b') + ℓ(a'…b') is 0 for such a sum, since no window has both ends.
    """
    names = ("O", "B-X")
    costs: dict[str, Cost] = {
        "aligned pairs": AlignedNgram(2),
        "clipped pairs": ClippedNgram(2),
        "token F1": TokenF1(0),
        "span F1": SpanF1(names),
        "BLEU": Bleu(2),
    }
    return {name: [_mixed_difference(cost, window + 1) for window in WINDOWS] for name, cost in costs.items()}


def _mixed_difference(cost: Cost, length: int) -> float:
    outputs = Sequences(2, length).outputs
    middles = list(product((0, 1), repeat=length - 2))
    corners = torch.tensor([[(a, *middle, b) for middle in middles] for a, b in ((0, 0), (0, 1), (1, 0), (1, 1))])
    values = cost.between(corners.unsqueeze(2), outputs, dtype=torch.float64)
    return float(round_values((values[0] - values[1] - values[2] + values[3]).abs().max().item(), 4)) + 0.0


def linear_rate() -> dict[str, Any]:
    """Returns surrogate regret / target regret of the structured sum for aligned pairs, two tags of two labels, free scores."""
    found = rate(
        LinearCore(),
        named_form("structured-sum").normalized(False),
        lambda delta: [0.4 + delta, 0.4 - delta, 0.2, 0.0],
        deltas=DELTAS,
        outputs=Sequences(2, 2),
        cost=AlignedNgram(2),
    )
    return {"deltas": list(DELTAS), "ratios": round_values(found.surrogate / found.target, 4)}


def variances(repeats: int) -> dict[str, dict[str, float]]:
    """Returns by cost how many times fewer samples than uniform ones give the same variance of the gradient."""
    tags, names = TAGS[0] + 1, ["O", *(f"{prefix}-{kind}" for kind in range(TAGS[0] // 2) for prefix in "BI")]
    generator = torch.Generator().manual_seed(0)
    emissions = torch.randn(LENGTH, BATCH, tags, generator=generator)
    truth = torch.randint(tags, (LENGTH, BATCH), generator=generator)
    chain = _chain(tags)
    proposals: dict[str, SequenceProposal] = {
        "aligned n-grams": SimilarSequences(2),
        "moved n-grams": MovedNgrams(2),
        "model": ModelSequences(emissions, chain),
    }
    costs: dict[str, Cost] = {"aligned pairs": AlignedNgram(2), "span F1": SpanF1(names), "BLEU": Bleu(2)}
    found: dict[str, dict[str, float]] = {}
    for label, cost in costs.items():
        uniform = _variance(emissions, truth, chain, cost, UniformSequences(), repeats)
        found[label] = {
            name: float(round_values(uniform / _variance(emissions, truth, chain, cost, _with_uniform(each), repeats), 3))
            for name, each in proposals.items()
        }
    return found


def _with_uniform(proposal: SequenceProposal) -> SequenceProposal:
    return MixedSequences((proposal, UniformSequences()), (3, 1))


def _variance(
    emissions: torch.Tensor, truth: torch.Tensor, chain: Chain, cost: Cost, proposal: SequenceProposal, repeats: int
) -> float:
    gradients = []
    for seed in range(repeats):
        scores = emissions.clone().requires_grad_()
        loss = structured_loss(
            scores, truth, structure=chain, cost=cost, proposal=proposal, num_samples=SAMPLES, objective="mean",
            generator=torch.Generator().manual_seed(seed),
        )  # fmt: skip
        gradients.append(torch.autograd.grad(loss, scores)[0].double().flatten())
    return float(torch.stack(gradients).var(0).sum())


def step_times(repeats: int) -> list[dict[str, float]]:
    """Returns microseconds of a sample and of a sample's share of a step with gradient, by number of tags."""
    rows = []
    for tags in TAGS:
        generator = torch.Generator().manual_seed(0)
        truth = torch.randint(tags, (LENGTH, BATCH), generator=generator)
        scores, chain = torch.zeros(LENGTH, BATCH, tags, requires_grad=True), _chain(tags)
        proposal, sites = SimilarSequences(2), truth >= 0
        options: dict[str, Any] = {"cost": AlignedNgram(2), "num_samples": SAMPLES, "generator": generator}

        def draw() -> None:
            from linearcore.structures import Sites

            proposal.sample(truth, Sites.of(sites), tags, SAMPLES, generator)

        def step() -> None:
            structured_loss(scores, truth, structure=chain, **options).backward()

        microseconds = {name: 1e6 * _median_time(each, repeats) / (SAMPLES * BATCH) for name, each in (("sample", draw), ("step", step))}
        rows.append({"tags": tags, **{name: float(round_values(value, 3)) for name, value in microseconds.items()}})
    return rows
