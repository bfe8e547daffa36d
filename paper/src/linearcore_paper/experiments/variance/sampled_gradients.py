"""Measures the variance E ‖ĝ − ∇‖² of sampled gradients over many runs, for several estimates."""

from typing import NamedTuple

import torch
from torch import Tensor

from linearcore.proposals.sequences import SequenceProposal, UniformSequences
from linearcore.structured import (
    Draws,
    RunningSlope,
    controlled_estimate,
    mean_score,
    pair_estimate,
    pair_log_weight,
    sequence_scores,
)
from linearcore.structures import Hamming
from linearcore.surrogates import Surrogate
from linearcore_paper.experiments.variance.uniform_tags import LENGTH, Losses, UniformTags, no_chain, sites_of

#: Gradients are dense; at most this many of their entries are in memory at a time.
_MOST_ENTRIES = 4_000_000


class Variance(NamedTuple):
    """E ‖ĝ − ∇‖² over runs, its standard error, and ‖∇‖²."""

    variance: float
    error: float
    mean_square: float


def measure_variance(problem: UniformTags, losses: Losses, runs: int, exact: Tensor | None = None) -> Variance:
    """Measures the variance of an estimate whose samples differ from copy to copy.

    Args:
        problem: scores of one input.
        losses: the estimate.
        runs: number of sampled gradients.
        exact: ∇ (L·|Y|,); with None the mean of the runs is used, with the correction n/(n − 1).
    """
    batch = max(1, min(runs, _MOST_ENTRIES // problem.levels.numel()))
    around = torch.zeros(problem.levels.numel(), dtype=torch.float64) if exact is None else exact
    squares, total = [], torch.zeros_like(around)
    for start in range(0, runs, batch):
        gradients = problem.gradients(min(batch, runs - start), losses)
        squares.append((gradients - around).square().sum(-1))
        total += gradients.sum(0)
    square, mean = torch.cat(squares), total / runs
    error = float(square.std() / runs**0.5)
    if exact is not None:
        return Variance(float(square.mean()), error, float(exact.square().sum()))
    variance = float((square.mean() - mean.square().sum()) * runs / (runs - 1))
    # The mean of the runs is noisy: ‖mean‖² is too large by Var/runs.
    return Variance(variance, error, max(0.0, float(mean.square().sum()) - variance / runs))


def around_truth(surrogate: Surrogate, num_samples: int, stream: torch.Generator) -> Losses:
    """Returns 1/K Σ_k φ(h(y) − h(y_k)) with uniform y_k: the estimate of the paper's theorem."""

    def losses(emissions: Tensor) -> Tensor:
        true_scores, scores = _uniform_scores(emissions, num_samples, stream)
        return pair_estimate(surrogate, true_scores.expand_as(scores), scores, torch.zeros_like(scores))

    return losses


def controlled(surrogate: Surrogate, num_samples: int, alpha: float | RunningSlope, stream: torch.Generator) -> Losses:
    """Returns the same estimate with the control variate −α m. α is fixed or a running mean that each call updates."""

    def losses(emissions: Tensor) -> Tensor:
        true_scores, scores = _uniform_scores(emissions, num_samples, stream)
        mean = mean_score(emissions, no_chain(emissions.shape[-1]), sites_of(emissions.shape[1]))
        if not isinstance(alpha, RunningSlope):
            return controlled_estimate(surrogate, true_scores, scores, mean, alpha)
        estimate = controlled_estimate(surrogate, true_scores, scores, mean, alpha.value)
        alpha.update(surrogate, true_scores - scores)
        return estimate

    return losses


def over_pairs(
    surrogate: Surrogate, num_samples: int, outer: SequenceProposal, objective: str, stream: torch.Generator
) -> Losses:
    """Returns 1/K Σ_k w_k φ(h(y'_k) − h(y''_k)), y' from `outer`, y'' uniform, w_k raw (Algorithm 1) or normalised."""

    def losses(emissions: Tensor) -> Tensor:
        _, runs, num_tags = emissions.shape
        sites, chain, tags = sites_of(runs), no_chain(num_tags), torch.zeros(LENGTH, runs, dtype=torch.long)

        def sample(proposal: SequenceProposal) -> Draws:
            sequences = proposal.sample(tags, sites, num_tags, num_samples, stream)
            return Draws(sequences, proposal.log_prob(sequences, tags, sites, num_tags))

        left, right = sample(outer), sample(UniformSequences())
        weights = pair_log_weight(left, right, tags, sites, num_tags, cost=Hamming(), objective=objective)
        upper, lower = (sequence_scores(emissions, chain, draws.tags, sites) for draws in (left, right))
        return pair_estimate(surrogate, upper, lower, weights)

    return losses


def _uniform_scores(emissions: Tensor, num_samples: int, stream: torch.Generator) -> tuple[Tensor, Tensor]:
    """Returns h of the true sequence (B,) and of K uniform samples (K, B)."""
    _, runs, num_tags = emissions.shape
    sites, chain, tags = sites_of(runs), no_chain(num_tags), torch.zeros(LENGTH, runs, dtype=torch.long)
    draws = UniformSequences().sample(tags, sites, num_tags, num_samples, stream)
    true_scores = sequence_scores(emissions, chain, tags.unsqueeze(0), sites).squeeze(0)
    return true_scores, sequence_scores(emissions, chain, draws, sites)
