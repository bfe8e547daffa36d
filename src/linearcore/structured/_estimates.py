"""Sums over all tag sequences of a chain, estimated from draws: the paper's structured sum and the centered one.

With score h, cost ℓ in [0, 1], truth y, and M = |Y|^J sequences for a chain of J tags, the two exact objectives are

    pairs      Σ_{y'} (1 − ℓ(y', y)) Σ_{y''≠y'} φ(h(y') − h(y''))           section 5 of the paper
    centered   Σ_{y'} ℓ(y', y) φ(−(h(y') − mean h))

Neither is written out for long chains. Draws y' and y'' from proposals with known probabilities stand in for the sums, each
term being weighted by what it counts over how likely it was. A weight function makes the logarithms of the weights, and
with them decides which objective is estimated; an estimate function averages.

    "raw"               term / probability, of the order of M² for pairs and M for centered: unbiased for the sums above
    "normalised"        raw weights over Z(y)·(M − 1) for pairs, over M − Z(y) for centered: unbiased for the sums above
                        divided by that, which are means; Z(y) = Σ_{y'} (1 − ℓ(y', y))
    "self-normalised"   raw weights over their own mean, which needs no Z(y): *biased* for those means, by O(1/K)

At one chain the first two differ by a factor, so that they have the same minimiser. But they weigh chains differently
against each other: a mean forgets Z(y), which grows with the length. `log_similarity_mass` has it, to be put back.

Unbiased means of value and gradient, which needs a proposal that reaches every term: y' wherever 1 − ℓ > 0 (pairs) or ℓ > 0
(centered), and every y'' ≠ y'. Draws that reach fewer terms are unbiased for the sum over the terms that they reach.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from linearcore._checks import complaint, one_of
from linearcore.structures import Chain, Cost, Sites
from linearcore.surrogates import Surrogate

OBJECTIVES = ("raw", "normalised", "self-normalised")


class Draws(NamedTuple):
    """K drawn sequences for each of B chains, and how likely each was.

    Attributes:
        tags: (K, L, B) in [0, |Y|), any tag where masked.
        log_prob: (K, B), float64, under the proposal that they were drawn from, so never −inf.
    """

    tags: Tensor
    log_prob: Tensor


def draw_scores(emissions: Tensor, chain: Chain, draws: Tensor, sites: Sites) -> Tensor:
    """(K, B): h(x, y') of `draws`, differentiable: `path_score` for several sequences of each chain.

    Args:
        emissions: (L, B, |Y|).
        chain: the chain's own scores.
        draws: (K, L, B) in [0, |Y|), any tag where masked.
        sites: where they sit.

    Time and memory O(K·L·B) forward; the gradients of emissions and transitions are dense.
    """
    nothing = emissions.new_zeros(())
    # Draws last, so that the emissions need no copy for each of them, here or in the backward pass.
    own = emissions.gather(-1, draws.permute(1, 2, 0)).permute(2, 0, 1)
    before = draws.gather(1, sites.previous.clamp(min=0).expand_as(draws))
    total = torch.where(sites.mask, own, nothing)
    total = total + torch.where(sites.mask & ~sites.is_first, chain.transitions[before, draws], nothing)
    total = total + torch.where(sites.is_first, chain.start[draws], nothing)
    return (total + torch.where(sites.is_last, chain.end[draws], nothing)).sum(1)


def mean_score(emissions: Tensor, chain: Chain, sites: Sites) -> Tensor:
    """(B,): the exact mean of h over all |Y|^J sequences of every chain, differentiable; 0 for a chain without tags.

        mean h = Σ_j mean emissions[j] + (J − 1) · mean transitions + mean start + mean end

    Under the uniform law each tag is uniform, and so is each pair of neighbours. A forbidden score makes it −inf.

    Args:
        emissions: (L, B, |Y|).
        chain: the chain's own scores.
        sites: where the tags sit. What is masked out is skipped.

    Example:
        >>> emissions = torch.tensor([[[1.0, 3.0]], [[0.0, 4.0]]])
        >>> chain = Chain(torch.zeros(2), torch.tensor([[5.0, 0.0], [0.0, 5.0]]), torch.zeros(2))
        >>> mean_score(emissions, chain, Sites.of(torch.tensor([[True], [True]])))
        tensor([6.5000])

    Time O(L·B·|Y| + |Y|²).
    """
    nothing = emissions.new_zeros(())
    linked = sites.mask & ~sites.is_first
    total = torch.where(sites.mask, emissions.mean(-1), nothing)
    total = total + torch.where(linked, chain.transitions.mean(), nothing)
    total = total + torch.where(sites.is_first, chain.start.mean(), nothing)
    return (total + torch.where(sites.is_last, chain.end.mean(), nothing)).sum(0)


def log_similarity_mass(tags: Tensor, sites: Sites, num_tags: int, *, cost: Cost) -> Tensor:
    """(B,), float64: log Z(y), with Z(y) = Σ_{y'} (1 − ℓ(y', y)) over all sequences of a chain.

    |Y|^{J−1} for Hamming, whatever its weights, and |Y|^J where they leave nothing that counts; 1 for zero-one.

    Args:
        tags: (L, B), the truth; any tag where masked.
        sites: where the tags sit.
        num_tags: |Y|.
        cost: ℓ.

    Raises:
        ValueError: if no closed form is known for `cost`.

    Example:
        >>> tags = torch.tensor([[0, 0], [1, 0], [2, 0]])
        >>> sites = Sites.of(torch.tensor([[True, True], [True, False], [True, False]]))
        >>> from linearcore.structures import Hamming
        >>> log_similarity_mass(tags, sites, 4, cost=Hamming()).exp().tolist()
        [16.0, 1.0]

    Time O(L·B).
    """
    found = cost.log_similarity_mass(tags.t(), sites.mask.t(), num_tags)
    if found is None:
        advice = 'take the objective "raw" or "self-normalised", which need no normaliser'
        raise ValueError(complaint("cost", "declare its `log_similarity_mass` to be normalised", repr(cost), advice))
    return found


def pair_log_weight(
    outer: Draws,
    inner: Draws,
    tags: Tensor,
    sites: Sites,
    num_tags: int,
    *,
    cost: Cost,
    objective: str = "normalised",
    log_rivals: Tensor | None = None,
) -> Tensor:
    """(K, B), float64: the logarithms of the weights that make `pair_estimate` an estimate of the paper's structured sum.

        log w = log((1 − ℓ(y', y)) / D₁(y')) + log(1[y'' ≠ y'] / D₂(y''))      w₁ w₂ of Algorithm 1, for "raw"

    and −inf for a pair that does not count. For the other objectives see the top of this file.

    Args:
        outer: y' and log D₁(y'). D₁ must reach every y' with ℓ(y', y) < 1, the truth above all; a proposal in proportion
            to the cost, which Algorithm 1 suggests, does not.
        inner: y'' and log D₂(y''), given y' or not. With D₂ on the neighbours of y' the estimate is unbiased for the sum
            over these y'', not for the full one.
        tags: (L, B), the truth y; any tag where masked.
        sites: where the tags sit.
        num_tags: |Y|.
        cost: ℓ.
        objective: "raw", "normalised" or "self-normalised".
        log_rivals: (B,), for "normalised": the log of the number of y'' that the inner sum runs over, where these are not
            all M − 1 but those that D₂ reaches, such as `Neighbours(…).log_count(…)`.

    Raises:
        ValueError: if `objective` is none of these, `log_rivals` is given for another one than "normalised", or the cost has
            no known normaliser and needs one.

    Time and memory O(K·L·B).
    """
    one_of("objective", objective, OBJECTIVES)
    if log_rivals is not None and objective != "normalised":
        raise ValueError(complaint("log_rivals", "be None unless normalised", f"objective {objective!r}", "leave it out"))
    differs = ((outer.tags != inner.tags) & sites.mask).any(1)
    similarity = 1 - _costs(outer.tags, tags, sites, cost)
    log_weight = similarity.log().masked_fill(~differs, -math.inf) - outer.log_prob - inner.log_prob
    if objective == "normalised":
        if log_rivals is None:
            log_size = _log_size(sites, num_tags)
            log_rivals = _log_difference(log_size, torch.zeros_like(log_size))
        return _divided(log_weight, log_similarity_mass(tags, sites, num_tags, cost=cost) + log_rivals)
    return log_weight if objective == "raw" else _self_normalised(log_weight)


def centered_log_weight(
    draws: Draws, tags: Tensor, sites: Sites, num_tags: int, *, cost: Cost, objective: str = "normalised"
) -> Tensor:
    """(K, B), float64: the logarithms of the weights that make `centered_estimate` an estimate of the centered sum.

        log w = log(ℓ(y', y) / D(y'))      for "raw"

    and −inf for a draw that costs nothing. For the other objectives see the top of this file.

    Args:
        draws: y' and log D(y'). D must reach every y' with ℓ(y', y) > 0.
        tags: (L, B), the truth y; any tag where masked.
        sites: where the tags sit.
        num_tags: |Y|.
        cost: ℓ.
        objective: "raw", "normalised" or "self-normalised".

    Raises:
        ValueError: if `objective` is none of these, or the cost has no known normaliser and needs one.

    Time and memory O(K·L·B).
    """
    one_of("objective", objective, OBJECTIVES)
    log_weight = _costs(draws.tags, tags, sites, cost).log() - draws.log_prob
    if objective == "normalised":
        log_mass = log_similarity_mass(tags, sites, num_tags, cost=cost)
        return _divided(log_weight, _log_difference(_log_size(sites, num_tags), log_mass))
    return log_weight if objective == "raw" else _self_normalised(log_weight)


def pair_estimate(surrogate: Surrogate, outer: Tensor, inner: Tensor, log_weight: Tensor) -> Tensor:
    """(B,): what the paper's structured sum is estimated to be, differentiable in the scores, never in the weights.

        1/K Σ_k w_k φ(h(y'_k) − h(y''_k))

    With the weights of `pair_log_weight`: "raw" is unbiased for Σ_{y'} (1 − ℓ(y', y)) Σ_{y''≠y'} φ(h(y') − h(y'')),
    "normalised" for that over Z(y)·(M − 1), both in value and in gradient; "self-normalised" is biased for the latter, by
    O(1/K). Pairs of weight 0 are left out, whatever they score.

    The gradient is w φ'(h(y') − h(y'')) (∇h(y') − ∇h(y'')); Algorithm 1 of the paper prints the opposite sign.

    Args:
        surrogate: φ.
        outer: (K, B), h(y'), float32 or float64.
        inner: (K, B), h(y''), of the same dtype.
        log_weight: (K, B). Raw weights grow like |Y|^{2J}. They are rounded to the scores' dtype, so that in float32 they
            are infinite from log w = 88.7 on, at 41 sites with 3 tags, and the estimate infinite or NaN. Normalised ones
            are of order 1 where the proposals are near the laws that they stand for.

    Example:
        >>> from linearcore.surrogates import Hinge
        >>> outer, inner = torch.tensor([[0.5], [2.0]]), torch.tensor([[0.0], [0.0]])
        >>> pair_estimate(Hinge(), outer, inner, torch.tensor([[3.0], [1.0]]).log())
        tensor([0.7500])

    Time and memory O(K·B).
    """
    return _average(surrogate, outer - inner, log_weight)


def centered_estimate(surrogate: Surrogate, scores: Tensor, mean: Tensor, log_weight: Tensor) -> Tensor:
    """(B,): what the centered structured sum is estimated to be, differentiable in scores and mean, never in the weights.

        1/K Σ_k w_k φ(−(h(y'_k) − mean h))

    With the weights of `centered_log_weight`: "raw" is unbiased for Σ_{y'} ℓ(y', y) φ(−(h(y') − mean h)), "normalised" for
    that over M − Z(y) = Σ_{y'} ℓ(y', y), both in value and in gradient; "self-normalised" is biased for the latter, by
    O(1/K). All of it holds for the exact mean only: φ is not linear, and a mean over draws would bias it.

    Args:
        surrogate: φ.
        scores: (K, B), h(y'), float32 or float64.
        mean: (B,), from `mean_score`.
        log_weight: (K, B). Raw weights grow like |Y|^J and overflow as in `pair_estimate`.

    Time and memory O(K·B).
    """
    return _average(surrogate, mean - scores, log_weight)


def _average(surrogate: Surrogate, margin: Tensor, log_weight: Tensor) -> Tensor:
    # The exponential in the wide type of the logarithms: rounded first, a logarithm of 80 would cost four digits.
    weight = log_weight.detach().exp().to(margin.dtype)
    # Two forbidden sequences differ by −inf − (−inf), and other margins overflow: 0 times that would not be 0.
    losses = surrogate._value(margin.masked_fill(weight == 0, 0.0))
    return (weight * losses).mean(0)


def _costs(draws: Tensor, tags: Tensor, sites: Sites, cost: Cost) -> Tensor:
    """(K, B), float64: ℓ(y', y)."""
    return cost.between(draws.movedim(1, -1), tags.t(), sites.mask.t(), dtype=torch.float64)


def _log_size(sites: Sites, num_tags: int) -> Tensor:
    """(B,), float64: log M, the number of sequences."""
    return math.log(num_tags) * sites.mask.sum(0).double()


def _log_difference(larger: Tensor, smaller: Tensor) -> Tensor:
    """log(e^larger − e^smaller), neither being formed."""
    return larger + torch.log1p(-(smaller - larger).exp())


def _divided(log_weight: Tensor, log_normaliser: Tensor) -> Tensor:
    """The weights over a normaliser (B,). A sum without terms is 0, and not 0/0."""
    return (log_weight - log_normaliser).masked_fill(log_weight == -math.inf, -math.inf)


def _self_normalised(log_weight: Tensor) -> Tensor:
    """The weights over their mean; all 0 where they are."""
    return _divided(log_weight, log_weight.logsumexp(0) - math.log(len(log_weight)))
