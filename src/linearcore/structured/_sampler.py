"""The paper's losses over whole sequences, estimated from draws."""

import torch
from torch import Tensor

from linearcore._checks import complaint, one_of
from linearcore.forms import Centered
from linearcore.proposals.sequences import (
    CostlySequences,
    Neighbours,
    SequenceProposal,
    SimilarSequences,
    UniformSequences,
)
from linearcore.structured._estimates import (
    Draws,
    centered_estimate,
    centered_log_weight,
    draw_scores,
    mean_score,
    pair_estimate,
    pair_log_weight,
)
from linearcore.structures import Chain, Cost, Sites
from linearcore.surrogates import Surrogate

STRUCTURED_FORMS = ("pairs", "centered")


class Sampler:
    """Draws sequences for chains and estimates a structured form from them.

    Args:
        form: "pairs" or "centered".
        outer: where y' comes from. None: the exact law, in proportion to similarity (pairs) or cost (centered).
        inner: where y'' comes from, given y'; for pairs only. None: uniform.
        num_samples: K.
        objective: "raw", "normalised" or "self-normalised".
    """

    def __init__(
        self, form: str, outer: SequenceProposal | None, inner: SequenceProposal | None, num_samples: int, objective: str
    ) -> None:
        one_of("form", form, STRUCTURED_FORMS)
        if form == "centered" and inner is not None:
            advice = "it has one sum, over y'"
            raise ValueError(complaint("inner", "be None for the centered form", type(inner).__name__, advice))
        default = SimilarSequences() if form == "pairs" else CostlySequences()
        self.form, self.num_samples, self.objective = form, num_samples, objective
        self.outer = _proposal("outer", outer, default)
        self.inner = _proposal("inner", inner, UniformSequences())

    def losses(
        self,
        surrogate: Surrogate,
        cost: Cost,
        emissions: Tensor,
        chain: Chain,
        tags: Tensor,
        sites: Sites,
        generator: torch.Generator | None,
    ) -> Tensor:
        """(B,): the estimate for every chain."""
        num_tags = emissions.shape[-1]
        outer = self._draws(self.outer, tags, sites, num_tags, generator)
        scores = draw_scores(emissions, chain, outer.tags, sites)
        if self.form == "centered":
            Centered().check(surrogate)
            weight = centered_log_weight(outer, tags, sites, num_tags, cost=cost, objective=self.objective)
            return centered_estimate(surrogate, scores, mean_score(emissions, chain, sites), weight)
        inner = self._draws(self.inner, outer.tags, sites, num_tags, generator)
        rivals = None
        if isinstance(self.inner, Neighbours) and self.objective == "normalised":
            rivals = self.inner.log_count(sites, num_tags)
        weight = pair_log_weight(outer, inner, tags, sites, num_tags, cost=cost, objective=self.objective, log_rivals=rivals)
        return pair_estimate(surrogate, scores, draw_scores(emissions, chain, inner.tags, sites), weight)

    def _draws(
        self, proposal: SequenceProposal, around: Tensor, sites: Sites, num_tags: int, generator: torch.Generator | None
    ) -> Draws:
        drawn = proposal.sample(around, sites, num_tags, self.num_samples, generator)
        return Draws(drawn, proposal.log_prob(drawn, around, sites, num_tags))


def _proposal(name: str, given: SequenceProposal | None, default: SequenceProposal) -> SequenceProposal:
    if given is not None and not isinstance(given, SequenceProposal):
        advice = "for example linearcore.proposals.sequences.UniformSequences()"
        raise TypeError(complaint(name, "be a `SequenceProposal`", type(given).__name__, advice))
    return default if given is None else given
