"""Losses over the paths of automata, estimated from sampled paths."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from linearcore._checks import complaint, floating, holds
from linearcore._torch import is_on_host
from linearcore.structured._estimates import OBJECTIVES, Draws
from linearcore.structured._forms import StructuredForm
from linearcore.structured._path_batch import PathBatch, path_batch, uniform_paths
from linearcore.structured._paths import PathDistribution
from linearcore.structures import Automaton, Cost
from linearcore.surrogates import Surrogate


@dataclass(frozen=True)
class PathLoss:
    """A loss over paths: how it is estimated. Attributes as in `structured_loss`."""

    cost: Cost
    num_samples: int
    surrogate: Surrogate
    form: StructuredForm
    objective: str
    generator: torch.Generator | None

    def of_structure(
        self, scores: Any, truth: Tensor, structure: Any, mask: Tensor | None, outer: Any, inner: Any
    ) -> tuple[Tensor, Tensor]:
        """Returns losses (B,) and log weights (K, B) for one automaton, or for one in each row; checks all types."""
        is_one = isinstance(structure, Automaton)
        parts = structure if isinstance(structure, list | tuple) else [structure]
        if not parts or not all(isinstance(part, Automaton) for part in parts):
            must = "be a `Chain`, an `Automaton` or a list of automata"
            advice = "pass linearcore.structures.Chain(start, transitions, end), or Automaton.from_arcs(…)"
            raise TypeError(complaint("structure", must, type(structure).__name__, advice))
        if mask is not None:
            raise ValueError(complaint("mask", "be None for an automaton", "a mask", "write −100 after the ends of `truth`"))
        if self.objective == "normalised":
            known = ", ".join(repr(name) for name in OBJECTIVES if name != "normalised")
            advice = "the sum of the weights of all paths has no closed form"
            raise ValueError(complaint("objective", f"be one of {known} for an automaton", repr(self.objective), advice))
        if not isinstance(truth, Tensor) or truth.is_floating_point() or truth.is_complex() or truth.dtype == torch.bool:
            got = truth.dtype if isinstance(truth, Tensor) else type(truth).__name__
            raise TypeError(complaint("truth", "be a tensor of integers", got, "pass a row of labels for each automaton"))
        truth = truth.long()
        if is_one:
            return self._estimate(scores, truth, structure, outer, inner)
        return self._estimate_each(scores, truth, structure, outer, inner)

    def _estimate(
        self,
        scores: Tensor,
        truth: Tensor,
        automaton: Automaton,
        outer: PathDistribution | None,
        inner: PathDistribution | None,
    ) -> tuple[Tensor, Tensor]:
        batch = path_batch(scores, truth, automaton, self.cost)
        drawn = self._draw("proposal", batch, outer)
        others = self._draw("inner", batch, inner) if self.form.has_inner else None
        log_weight = self.form.log_weight(self.cost, batch, drawn, others, objective=self.objective, log_count=None)
        return self.form.estimate(self.surrogate, batch, drawn, others, log_weight), log_weight

    def _estimate_each(
        self,
        scores: Sequence[Tensor],
        truth: Tensor,
        automata: Sequence[Automaton],
        outer: Sequence[PathDistribution] | None,
        inner: Sequence[PathDistribution] | None,
    ) -> tuple[Tensor, Tensor]:
        for name, parts, must in (("scores", scores, "vector"), ("truth", truth, "row"), ("proposal", outer, "proposal"),
                                  ("inner", inner, "proposal")):  # fmt: skip
            if parts is not None and (isinstance(parts, PathDistribution) or len(parts) != len(automata)):
                got = type(parts).__name__ if isinstance(parts, PathDistribution) else len(parts)
                advice = "pass lists of the same length"
                raise ValueError(complaint(name, f"have one {must} for each of {len(automata)} automata", got, advice))
        nothing, advice = [None] * len(automata), "pass one score for every arc"
        rows = zip(scores, truth.unsqueeze(1), automata, outer or nothing, inner or nothing, strict=True)
        losses, log_weights = zip(
            *(self._estimate(floating("scores", row, advice).unsqueeze(0), *others) for row, *others in rows), strict=True
        )
        return torch.cat(losses), torch.cat(log_weights, 1)

    def _draw(self, name: str, batch: PathBatch, proposal: PathDistribution | None) -> Draws:
        rows = len(batch.labels)
        if proposal is None:
            proposal = uniform_paths(batch.paths)
        _check_proposal(name, proposal, batch)
        # Weights do not differentiate the proposal, and their logarithms are sums of many terms.
        proposal = PathDistribution(proposal.automaton, proposal.scores.detach().double())
        if is_on_host(proposal.scores):
            is_possible = proposal.logsumexp() > -math.inf
            holds(name, is_possible, "have a path with positive probability", "allow more arcs", of="rows")
        if proposal.scores.dim() == 1:
            arcs = proposal.sample(self.num_samples * max(rows, 1), self.generator)[: self.num_samples * rows]
            arcs = arcs.view(self.num_samples, rows, arcs.shape[-1])
        else:
            arcs = proposal.sample(self.num_samples, self.generator)
        return Draws(arcs, proposal.log_prob(arcs))


def _check_proposal(name: str, proposal: PathDistribution, batch: PathBatch) -> None:
    if not isinstance(proposal, PathDistribution):
        advice = "pass linearcore.structured.PathDistribution(automaton, scores), or None for uniform"
        raise TypeError(complaint(name, "be a `PathDistribution` for an automaton", type(proposal).__name__, advice))
    if proposal.automaton is not batch.paths.automaton:
        raise ValueError(complaint(name, "have the automaton of `structure`", "another one", "pass the same object"))
    if proposal.scores.shape[:-1] not in ((), (len(batch.labels),)):
        must = f"have scores of shape (A,) or ({len(batch.labels)}, A)"
        raise ValueError(complaint(name, must, tuple(proposal.scores.shape), "pass scores for the rows of the batch"))
