"""Numbers for the sentences of the appendix: additivity, bias, variance, the linear rate and the cost of a step."""

import time
from collections.abc import Callable
from functools import partial
from itertools import product
from statistics import median
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
from linearcore.structures import AlignedNgram, Bleu, Chain, ClippedNgram, Cost, Sequences, Sites, SpanF1, TokenF1
from linearcore.surrogates import LinearCore
from linearcore_paper.experiments._numbers import round_values

WINDOWS = (2, 3, 4)
DELTAS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1)
TAGS = (50, 500, 5000)
LENGTH, BATCH, SAMPLES = 20, 8, 64
#: The true sequence of `expectations` and `variances`.
TRUTH = torch.tensor([1, 2, 0])


def additivity() -> dict[str, list[float]]:
    """Returns for each cost and window the largest difference that no sum over windows of this many tags can have.

    For sequences of window + 1 tags, ℓ(a…b) − ℓ(a'…b) − ℓ(a…b') + ℓ(a'…b') is 0 for such a sum: no window has both ends.
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
    targets = Sequences(2, length).outputs[1:]  # Without the empty one, for which F1 is not defined.
    middles = list(product((0, 1), repeat=length - 2))
    corners = torch.tensor([[(a, *middle, b) for middle in middles] for a, b in ((0, 0), (0, 1), (1, 0), (1, 1))])
    values = cost.between(corners.unsqueeze(2), targets, dtype=torch.float64)
    return float(round_values((values[0] - values[1] - values[2] + values[3]).abs().max().item(), 4)) + 0.0


def linear_rate() -> dict[str, Any]:
    """Returns surrogate regret / target regret of the structured sum for aligned pairs: length 2, two tags, free scores."""
    found = rate(
        LinearCore(),
        named_form("structured-sum").normalized(False),
        lambda delta: [0.4 + delta, 0.4 - delta, 0.2, 0.0],
        deltas=DELTAS,
        outputs=Sequences(2, 2),
        cost=AlignedNgram(2),
    )
    return {"deltas": list(DELTAS), "ratios": round_values(found.surrogate / found.target, 4)}


def expectations(tags: int) -> dict[str, dict[str, float]]:
    """Returns by cost the expected estimate of the structured sum, divided by the sum: 1 if the estimate is unbiased.

    Exact, by enumeration as in `variances`. The outer sequence is sampled from those that share an aligned pair of tags with
    the truth, or from a mixture with uniform samples.
    """
    space, scores = Sequences(tags, 3), _unary_scores(tags)
    losses = LinearCore().value(scores.unsqueeze(1) - scores).fill_diagonal_(0.0).sum(1)
    aligned = SimilarSequences(2)
    probabilities = {"aligned": _probabilities(aligned, space), "with uniform": _probabilities(_mixed(aligned), space)}
    found = {}
    for label, similarity in _similarities(space).items():
        terms = similarity * losses
        shares = {name: terms[each > 0].sum() / terms.sum() for name, each in probabilities.items()}
        found[label] = {name: float(round_values(share.item(), 4)) for name, share in shares.items()}
    return found


def variances(tags: int) -> dict[str, dict[str, float]]:
    """Returns by cost how many times fewer samples than uniform ones give the same variance of the gradient.

    Exact, by enumeration of all sequences of three tags: the structured sum with its inner sum computed, unary scores, and
    samples of the outer sequence from proposals of which one quarter is uniform.
    """
    space, scores, phi = Sequences(tags, 3), _unary_scores(tags), LinearCore()
    features = space.features("unary")
    slopes = phi.derivative(scores.unsqueeze(1) - scores).fill_diagonal_(0.0)
    gradients = (slopes.sum(1, keepdim=True) * features - slopes @ features) / (space.size - 1)
    proposals: dict[str, SequenceProposal] = {
        "aligned": SimilarSequences(2),
        "moved": MovedNgrams(2),
        "model": ModelSequences(_emissions(tags), _chain(tags)),
    }
    probabilities = {name: _probabilities(_mixed(proposal), space) for name, proposal in proposals.items()}
    found = {}
    for label, similarity in _similarities(space).items():
        terms = (similarity / space.size).unsqueeze(1) * gradients
        mean, squares = terms.sum(0).square().sum(), terms.square().sum(1)
        uniform = space.size * squares.sum() - mean
        found[label] = {
            name: float(round_values(uniform / ((squares / each).sum() - mean), 3)) for name, each in probabilities.items()
        }
    return found


def _emissions(tags: int) -> torch.Tensor:
    return torch.randn(3, 1, tags, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def _unary_scores(tags: int) -> torch.Tensor:
    return Sequences(tags, 3).features("unary") @ _emissions(tags).flatten()


def _similarities(space: Sequences) -> dict[str, torch.Tensor]:
    """Returns 1 − ℓ of all sequences by cost."""
    names = ["O", *(f"{prefix}-{kind}" for kind in range(space.num_tags // 2) for prefix in "BI")]
    costs: dict[str, Cost] = {"aligned pairs": AlignedNgram(2), "span F1": SpanF1(names), "BLEU": Bleu(2)}
    return {label: 1 - cost.between(space.outputs, TRUTH, dtype=torch.float64) for label, cost in costs.items()}


def _mixed(proposal: SequenceProposal) -> SequenceProposal:
    return MixedSequences((proposal, UniformSequences()), (3, 1))


def _probabilities(proposal: SequenceProposal, space: Sequences) -> torch.Tensor:
    tags = TRUTH.unsqueeze(1)
    return proposal.log_prob(space.outputs.unsqueeze(-1), tags, Sites.of(tags >= 0), space.num_tags).squeeze(1).exp()


def step_times(repeats: int) -> list[dict[str, float]]:
    """Returns microseconds of a sample, and of a sample's share of a step with gradients, by number of tags."""
    rows = []
    for tags in TAGS:
        generator = torch.Generator().manual_seed(0)
        truth = torch.randint(tags, (LENGTH, BATCH), generator=generator)
        scores, chain = torch.zeros(LENGTH, BATCH, tags, requires_grad=True), _chain(tags)
        calls: dict[str, Callable[[], object]] = {
            "sample": partial(SimilarSequences(2).sample, truth, Sites.of(truth >= 0), tags, SAMPLES, generator),
            "step": partial(_step, scores, truth, chain, generator),
        }
        share = 1e6 / (SAMPLES * BATCH)
        rows.append({"tags": tags} | {name: round_values(share * _time(call, repeats), 3) for name, call in calls.items()})
    return rows


def _step(scores: torch.Tensor, truth: torch.Tensor, chain: Chain, generator: torch.Generator) -> None:
    cost = AlignedNgram(2)
    structured_loss(scores, truth, structure=chain, cost=cost, num_samples=SAMPLES, generator=generator).backward()


def _time(call: Callable[[], object], repeats: int) -> float:
    """Returns the median of the seconds of a call, after one that is not counted."""
    call()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return median(seconds)


def _chain(tags: int) -> Chain:
    return Chain(torch.zeros(tags), torch.zeros(tags, tags), torch.zeros(tags))
