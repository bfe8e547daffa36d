"""Monte Carlo estimates of sums over all tag sequences: the paper's structured sum and the centered structured sum.

With score h, cost ℓ in [0, 1], true sequence y, and M = |Y|^J sequences of J tags, the two exact sums are

    pairs      Σ_{y'} (1 − ℓ(y', y)) Σ_{y''≠y'} φ(h(y') − h(y''))           section 5 of the paper
    centered   Σ_{y'} ℓ(y', y) φ(−(h(y') − mean h))

The sums have too many terms, so they are estimated by importance sampling: y' and y'' are sampled from proposals, and each
sampled term is weighted by its coefficient divided by its probability. `*_log_weight` computes the log weights, which
depend on the objective; `*_estimate` averages.

    "raw"               coefficient / probability, of order M² for pairs and M for centered: unbiased for the sums above
    "mean"              raw weights divided by M·(M − 1) for pairs and by M for centered: unbiased for the means over all
                        terms, which are the sums above divided by the number of their terms, for every cost
    "normalised"        raw weights divided by Z(y)·(M − 1) for pairs and by M − Z(y) for centered: unbiased for the
                        weighted means, which are the sums above divided by this normaliser
    "self-normalised"   raw weights divided by their mean, which needs no Z(y): bias O(1/K) for the same means

Z(y) = Σ_{y'} (1 − ℓ(y', y)) is the sum of the similarities 1 − ℓ. The costs `ngram`, `hamming` and `zero-one` have a closed
form of it. For a single sequence "raw", "mean" and "normalised" differ by a constant factor and have the same minimiser.
Over a batch they weight sequences differently, since M and Z(y) grow with the length. To weight each sequence by Z(y),
multiply its mean by exp(`log_similarity_mass`).

"Unbiased" refers to value and gradient. It requires proposals with positive probability for every term: y' with 1 − ℓ > 0
(pairs) or ℓ > 0 (centered), and every y'' ≠ y'. Otherwise the estimate is unbiased for the sum over the terms that the
proposals can sample.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from linearcore._checks import complaint, one_of
from linearcore.structures import Chain, Cost, Sites
from linearcore.surrogates import Surrogate

OBJECTIVES = ("raw", "mean", "normalised", "self-normalised")
#: Objectives that divide by a number of terms.
MEANS = ("mean", "normalised")


class Draws(NamedTuple):
    """K sampled sequences for each of B examples, and their log-probabilities.

    Attributes:
        tags: (K, L, B) in [0, |Y|), arbitrary where masked; for paths of an automaton their arcs (K, B, M).
        log_prob: (K, B), float64, under the proposal that generated them; always finite.
    """

    tags: Tensor
    log_prob: Tensor


def mean_score(emissions: Tensor, chain: Chain, sites: Sites) -> Tensor:
    """Returns the exact mean score (B,) over all |Y|^J sequences, differentiable; 0 for an empty sequence.

        mean h = Σ_j mean emissions[j] + (J − 1) · mean transitions + mean start + mean end

    Under the uniform distribution each tag and each pair of neighbours is uniform. −inf if any score is −inf.

    Args:
        emissions: (L, B, |Y|).
        chain: start, transition and end scores.
        sites: positions of the tags and their neighbours. Masked positions are skipped.

    Example:
        >>> emissions = torch.tensor([[[1.0, 3.0]], [[0.0, 4.0]]])
        >>> chain = Chain(torch.zeros(2), torch.tensor([[5.0, 0.0], [0.0, 5.0]]), torch.zeros(2))
        >>> mean_score(emissions, chain, Sites.of(torch.tensor([[True], [True]])))
        tensor([6.5000])

    Time O(L·B·|Y| + |Y|²).
    """
    zero = emissions.new_zeros(())
    has_previous = sites.mask & ~sites.is_first
    total = torch.where(sites.mask, emissions.mean(-1), zero)
    total = total + torch.where(has_previous, chain.transitions.mean(), zero)
    total = total + torch.where(sites.is_first, chain.start.mean(), zero)
    return (total + torch.where(sites.is_last, chain.end.mean(), zero)).sum(0)


def log_similarity_mass(tags: Tensor, sites: Sites, num_tags: int, *, cost: Cost) -> Tensor:
    """Returns log Z(y) (B,), float64, with Z(y) = Σ_{y'} (1 − ℓ(y', y)) over all sequences.

    Z is |Y|^{J−n} for aligned n-grams, |Y|^{J−1} for Hamming with any weights (|Y|^J if all true tags have weight 0), and 1
    for zero-one.

    Args:
        tags: (L, B), the true tags; arbitrary where masked.
        sites: positions of the tags and their neighbours.
        num_tags: |Y|.
        cost: ℓ.

    Raises:
        ValueError: if `cost` has no closed form.

    Example:
        >>> tags = torch.tensor([[0, 0], [1, 0], [2, 0]])
        >>> sites = Sites.of(torch.tensor([[True, True], [True, False], [True, False]]))
        >>> from linearcore.structures import Hamming
        >>> log_similarity_mass(tags, sites, 4, cost=Hamming()).exp().tolist()
        [16.0, 1.0]

    Time O(L·B).
    """
    log_mass = cost.log_similarity_mass(tags.t(), sites.mask.t(), num_tags)
    if log_mass is None:
        advice = 'use objective="mean" or "self-normalised", which work for every cost'
        raise ValueError(complaint("cost", "define `log_similarity_mass` for the normalised objective", repr(cost), advice))
    return log_mass


def pair_log_weight(
    outer: Draws,
    inner: Draws,
    tags: Tensor,
    sites: Sites,
    num_tags: int,
    *,
    cost: Cost,
    objective: str = "normalised",
    log_count: Tensor | None = None,
) -> Tensor:
    """Returns log weights (K, B), float64, with which `pair_estimate` estimates the paper's structured sum.

        log w = log((1 − ℓ(y', y)) / D₁(y')) + log(1[y'' ≠ y'] / D₂(y''))      w₁ w₂ of Algorithm 1, for "raw"

    and −inf for pairs with y'' = y' or ℓ(y', y) = 1. D₁ and D₂ are the proposals of y' and y''. The module docstring
    describes the other objectives.

    Args:
        outer: y' and log D₁(y'). D₁ must be positive for every y' with ℓ(y', y) < 1, including the true sequence. Do
            not use the proposal of Algorithm 1, proportional to the cost: it never samples the true sequence.
        inner: y'' and log D₂(y''), which may depend on y'. If D₂ is supported on the neighbours of y', the estimate is
            unbiased for the sum over these y''.
        tags: (L, B), the true tags y; arbitrary where masked.
        sites: positions of the tags and their neighbours.
        num_tags: |Y|.
        cost: ℓ.
        objective: one of `OBJECTIVES`.
        log_count: (B,), only for "mean" and "normalised": log of the number of y'' in the inner sum. None for all M − 1;
            if D₂ covers fewer sequences, pass their number, for example `Neighbours(…).log_count(…)`.

    Raises:
        ValueError: if `objective` is unknown, if `log_count` is given with another objective than these two, or if
            "normalised" is used with a cost without `log_similarity_mass`.

    Time and memory O(K·L·B).
    """
    one_of("objective", objective, OBJECTIVES)
    if log_count is not None and objective not in MEANS:
        must = f"be None unless the objective is one of {', '.join(MEANS)}"
        raise ValueError(complaint("log_count", must, f"objective {objective!r}", "omit it"))
    differs = ((outer.tags != inner.tags) & sites.mask).any(1)
    # A cost of 1 may exceed 1 by a rounding error.
    similarity = (1 - _costs(outer.tags, tags, sites, cost)).clamp(min=0)
    log_weight = similarity.log().masked_fill(~differs, -math.inf) - outer.log_prob - inner.log_prob
    log_terms = _log_size(sites, num_tags)
    if log_count is None:
        log_count = log_difference(log_terms, torch.zeros_like(log_terms))
    if objective == "normalised":
        log_terms = log_similarity_mass(tags, sites, num_tags, cost=cost)
    return scale_weights(log_weight, objective, log_terms + log_count)


def centered_log_weight(
    draws: Draws, tags: Tensor, sites: Sites, num_tags: int, *, cost: Cost, objective: str = "normalised"
) -> Tensor:
    """Returns log weights (K, B), float64, with which `centered_estimate` estimates the centered structured sum.

        log w = log(ℓ(y', y) / D(y'))      for "raw"

    and −inf for samples with cost 0. The module docstring describes the other objectives.

    Args:
        draws: y' and log D(y'). D must be positive for every y' with ℓ(y', y) > 0.
        tags: (L, B), the true tags y; arbitrary where masked.
        sites: positions of the tags and their neighbours.
        num_tags: |Y|.
        cost: ℓ.
        objective: one of `OBJECTIVES`.

    Raises:
        ValueError: if `objective` is unknown, or if "normalised" is used with a cost without `log_similarity_mass`.

    Time and memory O(K·L·B).
    """
    one_of("objective", objective, OBJECTIVES)
    log_weight = _costs(draws.tags, tags, sites, cost).log() - draws.log_prob
    log_terms = _log_size(sites, num_tags)
    if objective == "normalised":
        log_terms = log_difference(log_terms, log_similarity_mass(tags, sites, num_tags, cost=cost))
    return scale_weights(log_weight, objective, log_terms)


def pair_estimate(surrogate: Surrogate, outer_scores: Tensor, inner_scores: Tensor, log_weight: Tensor) -> Tensor:
    """Estimates the paper's structured sum (B,), differentiable in the scores; the weights are detached.

        1/K Σ_k w_k φ(h(y'_k) − h(y''_k))

    With weights from `pair_log_weight`, "raw" is unbiased for Σ_{y'} (1 − ℓ(y', y)) Σ_{y''≠y'} φ(h(y') − h(y'')), and
    "normalised" for this sum divided by Z(y)·(M − 1), both in value and gradient. "self-normalised" has a bias of O(1/K) for
    the latter. Pairs with weight 0 are ignored.

    The gradient is w φ'(h(y') − h(y'')) (∇h(y') − ∇h(y'')); Algorithm 1 of the paper prints the opposite sign.

    Args:
        surrogate: φ.
        outer_scores: (K, B), h(y'), float32 or float64.
        inner_scores: (K, B), h(y''), of the same dtype.
        log_weight: (K, B). Raw weights grow like |Y|^{2J}. They are cast to the scores' dtype and overflow in float32 if
            log w > 88.7 (41 positions with 3 tags), so the estimate is infinite or NaN. Normalised weights are of order 1 if
            the proposals are nearly proportional to the coefficients 1 − ℓ(y', y) and 1[y'' ≠ y'].

    Example:
        >>> from linearcore.surrogates import Hinge
        >>> outer_scores, inner_scores = torch.tensor([[0.5], [2.0]]), torch.tensor([[0.0], [0.0]])
        >>> pair_estimate(Hinge(), outer_scores, inner_scores, torch.tensor([[3.0], [1.0]]).log())
        tensor([0.7500])

    Time and memory O(K·B).
    """
    return _average(surrogate, outer_scores - inner_scores, log_weight)


def centered_estimate(surrogate: Surrogate, scores: Tensor, mean: Tensor, log_weight: Tensor) -> Tensor:
    """Estimates the centered structured sum (B,), differentiable in scores and mean; the weights are detached.

        1/K Σ_k w_k φ(−(h(y'_k) − mean h))

    With weights from `centered_log_weight`, "raw" is unbiased for Σ_{y'} ℓ(y', y) φ(−(h(y') − mean h)), and "normalised" for
    this sum divided by M − Z(y) = Σ_{y'} ℓ(y', y), both in value and gradient. "self-normalised" has a bias of O(1/K) for
    the latter. `mean` must be exact: a sampled mean would bias the estimate, because φ is not linear.

    Args:
        surrogate: φ.
        scores: (K, B), h(y'), float32 or float64.
        mean: (B,), from `mean_score`.
        log_weight: (K, B). Raw weights grow like |Y|^J and overflow as in `pair_estimate`.

    Time and memory O(K·B).
    """
    return _average(surrogate, mean - scores, log_weight)


def _average(surrogate: Surrogate, margin: Tensor, log_weight: Tensor) -> Tensor:
    # Exponentiate in float64 before the cast: casting log w ≈ 80 first would lose four digits.
    weight = log_weight.detach().exp().to(margin.dtype)
    # Avoids 0 · NaN and 0 · inf: the margin of two forbidden sequences is −inf − (−inf).
    losses = surrogate._value(margin.masked_fill(weight == 0, 0.0))
    return (weight * losses).mean(0)


def _costs(sampled_tags: Tensor, tags: Tensor, sites: Sites, cost: Cost) -> Tensor:
    """Returns ℓ(y', y) (K, B), float64."""
    return cost.between(sampled_tags.movedim(1, -1), tags.t(), sites.mask.t(), dtype=torch.float64)


def _log_size(sites: Sites, num_tags: int) -> Tensor:
    """Returns log M (B,), float64, for M = |Y|^J sequences."""
    return math.log(num_tags) * sites.mask.sum(0).double()


def log_difference(larger: Tensor, smaller: Tensor) -> Tensor:
    """Returns log(e^larger − e^smaller) without overflow."""
    return larger + torch.log1p(-(smaller - larger).exp())


def scale_weights(log_weight: Tensor, objective: str, log_terms: Tensor) -> Tensor:
    """Divides raw weights (K, B) by the normaliser of an objective. Weights of 0 stay 0, also if the normaliser is 0.

    Args:
        log_weight: (K, B), log of the raw weights.
        objective: one of `OBJECTIVES`.
        log_terms: (B,), the log normaliser of "mean" and "normalised".
    """
    if objective == "raw":
        return log_weight
    log_mean = log_weight.logsumexp(0) - math.log(len(log_weight))
    log_normaliser = log_terms if objective in MEANS else log_mean
    return (log_weight - log_normaliser).masked_fill(log_weight == -math.inf, -math.inf)
