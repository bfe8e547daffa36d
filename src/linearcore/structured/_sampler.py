"""Samples sequences and estimates the paper's structured losses."""

import torch
from torch import Tensor

from linearcore._checks import complaint, one_of
from linearcore.proposals.sequences import SequenceProposal, UniformSequences
from linearcore.structured._estimates import Draws
from linearcore.structured._forms import STRUCTURED_FORMS, Batch
from linearcore.structures import Chain, Cost, Sites
from linearcore.surrogates import Surrogate


class Sampler:
    """Samples sequences and estimates a structured form.

    Args:
        form: "sum" or "centered".
        outer: proposal for y'; None for the default of the form.
        inner: proposal for y'' given y', only for "sum"; None for uniform.
        num_samples: K, samples per sequence.
        objective: "raw", "normalised" or "self-normalised".
    """

    def __init__(
        self, form: str, outer: SequenceProposal | None, inner: SequenceProposal | None, num_samples: int, objective: str
    ) -> None:
        one_of("form", form, STRUCTURED_FORMS)
        self.form, self.num_samples, self.objective = STRUCTURED_FORMS[form], num_samples, objective
        if inner is not None and not self.form.has_inner:
            advice = "omit it: the form has no inner sum"
            raise ValueError(complaint("inner", f"be None for the {form} form", type(inner).__name__, advice))
        self.outer, self.inner = _check_proposal("outer", outer), _check_proposal("inner", inner) or UniformSequences()

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
        """Returns the estimate (B,) for each sequence."""
        self.form.check(surrogate)
        batch = Batch(emissions, chain, tags, sites)
        outer = self._sample(self.outer or self.form.outer(cost), tags, batch, generator)
        inner = self._sample(self.inner, outer.tags, batch, generator) if self.form.has_inner else None
        log_count = self.inner.log_count(sites, batch.num_tags) if self.objective == "normalised" else None
        return self.form.estimate(surrogate, cost, batch, outer, inner, objective=self.objective, log_count=log_count)

    def _sample(self, proposal: SequenceProposal, center: Tensor, batch: Batch, generator: torch.Generator | None) -> Draws:
        tags = proposal.sample(center, batch.sites, batch.num_tags, self.num_samples, generator)
        return Draws(tags, proposal.log_prob(tags, center, batch.sites, batch.num_tags))


def _check_proposal(name: str, proposal: SequenceProposal | None) -> SequenceProposal | None:
    if proposal is not None and not isinstance(proposal, SequenceProposal):
        advice = "for example linearcore.proposals.sequences.UniformSequences()"
        raise TypeError(complaint(name, "be a `SequenceProposal`", type(proposal).__name__, advice))
    return proposal
