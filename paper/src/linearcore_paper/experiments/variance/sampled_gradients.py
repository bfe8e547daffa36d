"""How far sampled gradients stray from their mean: E ‖ĝ − ∇‖² over many runs, for estimates from uniform and other draws."""

from typing import NamedTuple

import torch
from torch import Tensor

from linearcore.proposals.sequences import SequenceProposal, UniformSequences
from linearcore.structured import (
    Draws,
    RunningSlope,
    controlled_estimate,
    draw_scores,
    mean_score,
    pair_estimate,
    pair_log_weight,
)
from linearcore.structures import Hamming
from linearcore.surrogates import Surrogate
from linearcore_paper.experiments.variance.uniform_tags import LENGTH, Losses, UniformTags, no_chain, sites_of

#: Gradients are dense; this many of their entries are held at a time.
_MOST_ENTRIES = 4_000_000


class Strays(NamedTuple):
    """E ‖ĝ − ∇‖² over runs, its standard error, and ‖∇‖²."""

    variance: float
    error: float
    mean_square: float


def stray(problem: UniformTags, losses: Losses, runs: int, exact: Tensor | None = None) -> Strays:
    """Measures an estimate whose draws differ from copy to copy.

    Args:
        problem: what is scored.
        losses: the estimate.
        runs: how many gradients are drawn.
        exact: ∇ (L·|Y|,); None takes the mean of the runs in its place, and n/(n − 1) for having done so.
    """
    batch = max(1, min(runs, _MOST_ENTRIES // problem.levels.numel()))
    around = torch.zeros(problem.levels.numel(), dtype=torch.float64) if exact is None else exact
    squares, total = [], torch.zeros_like(around)
    for start in range(0, runs, batch):
        found = problem.gradients(min(batch, runs - start), losses)
        squares.append((found - around).square().sum(-1))
        total += found.sum(0)
    square, mean = torch.cat(squares), total / runs
    error = float(square.std() / runs**0.5)
    if exact is not None:
        return Strays(float(square.mean()), error, float(exact.square().sum()))
    variance = float((square.mean() - mean.square().sum()) * runs / (runs - 1))
    # The mean of the runs has their noise in it: ‖mean‖² is too large by Var/runs.
    return Strays(variance, error, max(0.0, float(mean.square().sum()) - variance / runs))


def around_truth(surrogate: Surrogate, num_samples: int, stream: torch.Generator) -> Losses:
    """1/K Σ_k φ(h(y) − h(y_k)), y_k uniform: the estimate of the paper's theorem."""

    def losses(emissions: Tensor) -> Tensor:
        truth, scores = _uniform_scores(emissions, num_samples, stream)
        return pair_estimate(surrogate, truth.expand_as(scores), scores, torch.zeros_like(scores))

    return losses


def controlled(surrogate: Surrogate, num_samples: int, alpha: float | RunningSlope, stream: torch.Generator) -> Losses:
    """The same mean with −α m taken out and put back; α is fixed, or follows the margins from one call to the next."""

    def losses(emissions: Tensor) -> Tensor:
        truth, scores = _uniform_scores(emissions, num_samples, stream)
        mean = mean_score(emissions, no_chain(emissions.shape[-1]), sites_of(emissions.shape[1]))
        if not isinstance(alpha, RunningSlope):
            return controlled_estimate(surrogate, truth, scores, mean, alpha)
        found = controlled_estimate(surrogate, truth, scores, mean, alpha.value)
        alpha.update(surrogate, truth - scores)
        return found

    return losses


def over_pairs(
    surrogate: Surrogate, num_samples: int, outer: SequenceProposal, objective: str, stream: torch.Generator
) -> Losses:
    """1/K Σ_k w_k φ(h(y'_k) − h(y''_k)), y' from `outer`, y'' uniform, weights of Algorithm 1 or normalised ones."""

    def losses(emissions: Tensor) -> Tensor:
        _, runs, num_tags = emissions.shape
        sites, chain, tags = sites_of(runs), no_chain(num_tags), torch.zeros(LENGTH, runs, dtype=torch.long)

        def drawn(law: SequenceProposal) -> Draws:
            found = law.sample(tags, sites, num_tags, num_samples, stream)
            return Draws(found, law.log_prob(found, tags, sites, num_tags))

        left, right = drawn(outer), drawn(UniformSequences())
        weights = pair_log_weight(left, right, tags, sites, num_tags, cost=Hamming(), objective=objective)
        upper, lower = (draw_scores(emissions, chain, draws.tags, sites) for draws in (left, right))
        return pair_estimate(surrogate, upper, lower, weights)

    return losses


def _uniform_scores(emissions: Tensor, num_samples: int, stream: torch.Generator) -> tuple[Tensor, Tensor]:
    """h of the truth (B,), and of K uniform draws (K, B)."""
    _, runs, num_tags = emissions.shape
    sites, chain, tags = sites_of(runs), no_chain(num_tags), torch.zeros(LENGTH, runs, dtype=torch.long)
    draws = UniformSequences().sample(tags, sites, num_tags, num_samples, stream)
    return draw_scores(emissions, chain, tags.unsqueeze(0), sites).squeeze(0), draw_scores(emissions, chain, draws, sites)
