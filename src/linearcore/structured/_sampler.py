"""The paper's losses over whole sequences, estimated from draws."""

import torch
from torch import Tensor

from linearcore._checks import complaint, one_of
from linearcore.proposals.sequences import SequenceProposal, UniformSequences
from linearcore.structured._estimates import Draws
from linearcore.structured._forms import STRUCTURED_FORMS, Batch
from linearcore.structures import Chain, Cost, Sites
from linearcore.surrogates import Surrogate


class Sampler:
    """Draws sequences for chains and estimates a structured form from them.

    Args:
        form: "sum" or "centered".
        outer: where y' comes from. None: in proportion to similarity ("sum") or cost ("centered"), exactly so for Hamming.
        inner: where y'' comes from, given y'; for forms with a second sum only. None: uniform.
        num_samples: K.
        objective: "raw", "normalised" or "self-normalised".
    """

    def __init__(
        self, form: str, outer: SequenceProposal | None, inner: SequenceProposal | None, num_samples: int, objective: str
    ) -> None:
        one_of("form", form, STRUCTURED_FORMS)
        self.form, self.num_samples, self.objective = STRUCTURED_FORMS[form], num_samples, objective
        if inner is not None and not self.form.has_inner:
            advice = "it has one sum, over y'"
            raise ValueError(complaint("inner", f"be None for the {form} form", type(inner).__name__, advice))
        self.outer, self.inner = _proposal("outer", outer), _proposal("inner", inner) or UniformSequences()

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
        self.form.check(surrogate)
        batch = Batch(emissions, chain, tags, sites)
        outer = self._draws(self.outer or self.form.outer(cost), tags, batch, generator)
        inner = self._draws(self.inner, outer.tags, batch, generator) if self.form.has_inner else None
        rivals = self.inner.log_count(sites, batch.num_tags) if self.objective == "normalised" else None
        return self.form.estimate(surrogate, cost, batch, outer, inner, objective=self.objective, log_rivals=rivals)

    def _draws(self, proposal: SequenceProposal, around: Tensor, batch: Batch, generator: torch.Generator | None) -> Draws:
        drawn = proposal.sample(around, batch.sites, batch.num_tags, self.num_samples, generator)
        return Draws(drawn, proposal.log_prob(drawn, around, batch.sites, batch.num_tags))


def _proposal(name: str, given: SequenceProposal | None) -> SequenceProposal | None:
    if given is not None and not isinstance(given, SequenceProposal):
        advice = "for example linearcore.proposals.sequences.UniformSequences()"
        raise TypeError(complaint(name, "be a `SequenceProposal`", type(given).__name__, advice))
    return given
