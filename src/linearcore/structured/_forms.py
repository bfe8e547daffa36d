"""Structured forms: losses over whole outputs, with their margins for `linearcore.analysis` and Monte Carlo estimates.

With score h, cost ℓ and true sequence y:

    sum        Σ_{y'} (1 − ℓ(y', y)) Σ_{y''≠y'} φ(h(y') − h(y''))           section 5 of the paper
    centered   Σ_{y'} ℓ(y', y) φ(−(h(y') − mean h))

To add one, subclass `StructuredForm` and list it in `STRUCTURED_FORMS`.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.forms import Centered, LinearMargins, Pairwise
from linearcore.proposals.sequences import (
    CostlySequences,
    SequenceProposal,
    SimilarSequences,
    UniformSequences,
)
from linearcore.structured._batches import Batch
from linearcore.structured._estimates import Draws, centered_estimate, pair_estimate
from linearcore.structures import Cost
from linearcore.surrogates import Surrogate


class StructuredForm(ABC):
    """Base class of losses over all outputs of a finite space, which can be estimated from samples."""

    name: ClassVar[str]
    #: Whether the loss has an inner sum over y'' given y'.
    has_inner: ClassVar[bool] = False
    #: Whether there is a linear bound on the target regret, for one-sided linear-core φ and unrestricted scores.
    has_linear_bound: ClassVar[bool] = False

    def check(self, surrogate: Surrogate) -> None:  # noqa: B027  # Most forms accept every surrogate.
        """Raises ValueError for surrogates without the guarantees of the form."""

    def normalized(self, normalize: bool) -> "StructuredForm":
        """Returns this form; raises for `normalize=True`, since structured forms have no mean over competitors."""
        if normalize:
            must, advice = f"be False for the structured form {self.name!r}", "divide by the number of outputs yourself"
            raise ValueError(complaint("normalize", must, normalize, advice))
        return self

    def consistency(self, surrogate: Surrogate) -> str | None:
        """Returns why the argmax of the minimising scores has minimal expected cost, or None if that is not known.

        Assumes unrestricted scores and a differentiable φ that is not linear for all u > 0.
        """
        return None

    @abstractmethod
    def outer(self, cost: Cost) -> SequenceProposal:
        """Returns the default proposal for y', with positive probability for every y' with a non-zero coefficient."""

    @abstractmethod
    def log_weight(
        self, cost: Cost, batch: Batch, outer: Draws, inner: Draws | None, *, objective: str, log_count: Tensor | None
    ) -> Tensor:
        """Returns log weights (K, B) of samples of y' and, with `has_inner`, y''. Arguments as in `pair_log_weight`."""

    @abstractmethod
    def estimate(self, surrogate: Surrogate, batch: Batch, outer: Draws, inner: Draws | None, log_weight: Tensor) -> Tensor:
        """Estimates the loss (B,) from the samples and their log weights."""

    @abstractmethod
    def margins(self, costs: Tensor, basis: Tensor) -> LinearMargins:
        """Returns the loss as a weighted sum of φ over margins, from the costs (M, M) and features `basis` (M, D)."""


class StructuredSum(StructuredForm):
    """Double sum of the paper."""

    name: ClassVar[str] = "sum"
    has_inner: ClassVar[bool] = True

    def consistency(self, surrogate: Surrogate) -> str | None:
        reason = Pairwise().consistency(surrogate)
        return None if reason is None else f"with the weights W(y') = Σ_y p(y)(1 − ℓ(y', y)) for p, {reason}"

    def outer(self, cost: Cost) -> SequenceProposal:
        return UniformSequences() if cost.shared_ngram is None else SimilarSequences(cost.shared_ngram)

    def log_weight(
        self, cost: Cost, batch: Batch, outer: Draws, inner: Draws | None, *, objective: str, log_count: Tensor | None
    ) -> Tensor:
        assert inner is not None
        return batch.pair_log_weight(cost, outer, inner, objective=objective, log_count=log_count)

    def estimate(self, surrogate: Surrogate, batch: Batch, outer: Draws, inner: Draws | None, log_weight: Tensor) -> Tensor:
        assert inner is not None
        return pair_estimate(surrogate, batch.scores(outer), batch.scores(inner), log_weight)

    def margins(self, costs: Tensor, basis: Tensor) -> LinearMargins:
        eye = torch.eye(len(basis), dtype=basis.dtype)
        outer, inner = (eye == 0).nonzero(as_tuple=True)
        return LinearMargins((1 - costs)[outer], basis, eye[outer] - eye[inner])


class StructuredCentered(StructuredForm):
    """Centered structured sum, which has a linear regret bound."""

    name: ClassVar[str] = "centered"
    has_linear_bound: ClassVar[bool] = True

    def check(self, surrogate: Surrogate) -> None:
        Centered().check(surrogate)

    def consistency(self, surrogate: Surrogate) -> str:
        return f"with the expected costs for 1 − p, {Centered().consistency(surrogate)}"

    def outer(self, cost: Cost) -> SequenceProposal:
        return CostlySequences()

    def log_weight(
        self, cost: Cost, batch: Batch, outer: Draws, inner: Draws | None, *, objective: str, log_count: Tensor | None
    ) -> Tensor:
        return batch.centered_log_weight(cost, outer, objective=objective)

    def estimate(self, surrogate: Surrogate, batch: Batch, outer: Draws, inner: Draws | None, log_weight: Tensor) -> Tensor:
        return centered_estimate(surrogate, batch.scores(outer), batch.mean_score(), log_weight)

    def margins(self, costs: Tensor, basis: Tensor) -> LinearMargins:
        return LinearMargins(costs, basis, 1 / len(basis) - torch.eye(len(basis), dtype=basis.dtype))


#: Structured forms by name.
STRUCTURED_FORMS: dict[str, StructuredForm] = {form.name: form for form in (StructuredSum(), StructuredCentered())}
