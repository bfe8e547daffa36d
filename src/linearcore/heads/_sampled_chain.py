"""Losses of a chain from sampled candidates, as methods of a head."""

from abc import ABC

import torch
from torch import Tensor, nn

from linearcore._checks import complaint
from linearcore.forms import Form
from linearcore.heads._arguments import check_reduction
from linearcore.heads._batch import Batch
from linearcore.heads._chain import ChainHead
from linearcore.heads._sampled import Edges, SampledSites, SiteLoss, reduced_variance, unpack_projection
from linearcore.losses import SampledEstimate, effective_sample_size
from linearcore.proposals import Proposal, check_num_samples
from linearcore.structures import Cost, Sites
from linearcore.surrogates import Surrogate


class SampledChain(ChainHead, ABC):
    """Base class of heads whose loss is a sum over positions, with `sampled_loss`.

    Attributes:
        form, surrogate: form and φ.
        cost: weights of the positions.
        unary: weight of a second loss without transitions, start and end scores.
    """

    form: Form
    surrogate: Surrogate
    cost: Cost
    unary: float

    def sampled_loss(
        self,
        hidden: Tensor,
        projection: nn.Linear | tuple[Tensor, Tensor | None] | Tensor,
        tags: Tensor,
        mask: Tensor | None = None,
        *,
        proposal: Proposal,
        num_samples: int,
        reduction: str = "token_mean",
        sparse: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """Estimates `loss` for emissions = projection(hidden) from a few sampled candidates at each position.

        The forward pass allocates no tensor of size |Y|. With `sparse` the gradients are sparse too, so the time of a step
        with `optim.SparseAdamW`, torch.optim.SGD or SparseAdam does not depend on the number of tags. `pairwise` is unbiased
        for the loss over all candidates, gradients included. `logodds` has a bias of O(1/num_samples), less with
        `proposals.InBatch`. `centered` needs all candidates and raises ValueError.

        Args:
            hidden: (L, B, d), or (B, L, d) with `batch_first`.
            projection: the nn.Linear that computes the emissions, or its (weight, bias).
            tags, mask: as in `loss`.
            proposal: distribution of the candidates; see `linearcore.proposals`.
            num_samples: K, samples per batch with `proposal.shared=True` (the default), otherwise per position.
            reduction: as in `loss`.
            sparse: sparse gradients for the projection and the head's parameters. Use an optimiser that supports them.
            generator: random number generator on the device of `hidden`; None for torch's default.

        Time and memory O(L·B·K·(d + r)), for any number of tags.
        """
        check_reduction(reduction)
        batch, loss, rows = self._sampled(hidden, projection, tags, mask, proposal, num_samples, sparse, generator)
        return self._reduce_sites(loss.losses(rows), batch, reduction, hidden.dtype)

    def sampled_estimate(
        self,
        hidden: Tensor,
        projection: nn.Linear | tuple[Tensor, Tensor | None] | Tensor,
        tags: Tensor,
        mask: Tensor | None = None,
        *,
        proposal: Proposal,
        num_samples: int,
        reduction: str = "token_mean",
        sparse: bool = False,
        generator: torch.Generator | None = None,
    ) -> SampledEstimate:
        """Returns `sampled_loss` with an estimate of the variance that the samples add to it.

        Arguments as in `sampled_loss`; see `linearcore.losses.sampled_multiclass_estimate` for the estimate. The effective
        sample sizes have the layout of `tags`, 0 where masked. Cost: that of the loss, and once more its forward pass.
        """
        check_reduction(reduction)
        batch, loss, rows = self._sampled(hidden, projection, tags, mask, proposal, num_samples, sparse, generator)
        value = self._reduce_sites(loss.losses(rows), batch, reduction, hidden.dtype)
        _, tags, sites = batch.loss_inputs
        # The samples are the last candidates; those before them are always included.
        parts, log_weight = (numbers[:, -num_samples:] for numbers in loss.influences(rows))
        parts = parts.view(*tags.shape, num_samples)
        parts = parts * self._site_weight(tags, sites, parts.dtype).unsqueeze(-1)
        variance = reduced_variance(parts, sites, reduction, is_shared=proposal.shared)
        size = effective_sample_size(log_weight).view(tags.shape).masked_fill(~sites.mask, 0.0)
        return SampledEstimate(value, variance.to(value.dtype), self._to_user_layout(size))

    def _sampled(
        self,
        hidden: Tensor,
        projection: nn.Linear | tuple[Tensor, Tensor | None] | Tensor,
        tags: Tensor,
        mask: Tensor | None,
        proposal: Proposal,
        num_samples: int,
        sparse: bool,
        generator: torch.Generator | None,
    ) -> tuple[Batch, SiteLoss, SampledSites]:
        """Checks the arguments and samples the candidates; returns what the methods of `SiteLoss` need."""
        check_num_samples(num_samples)
        if not isinstance(proposal, Proposal):
            advice = "for example linearcore.proposals.Uniform()"
            raise TypeError(complaint("proposal", "be a `Proposal`", type(proposal).__name__, advice))
        batch = self._to_batch(hidden, tags, mask, is_hidden=True)
        states, tags, sites = batch.loss_inputs
        layer = unpack_projection(projection, self.num_tags, states.shape[-1])
        states = sites.zero_masked(states)
        samples = proposal.shared_samples(self.num_tags, num_samples, tags, generator)
        has_targets = samples is not None
        if samples is None:
            samples = proposal.candidates(tags.reshape(-1), self.num_tags, num_samples, generator)
        loss = SiteLoss(self.form, self.surrogate, self.unary, self._edges(), sparse)
        return batch, loss, SampledSites(states.reshape(-1, states.shape[-1]), layer, tags, sites, samples, has_targets)

    def _reduce_sites(self, losses: Tensor, batch: Batch, reduction: str, dtype: torch.dtype) -> Tensor:
        """Reduces the losses (L·B,) of all positions."""
        _, tags, sites = batch.loss_inputs
        is_plain = sites.is_full and self._weights_are_equal and losses.numel() > 0
        if is_plain and reduction == "token_mean" and batch.has_invalid_tag is None:  # One operation instead of five.
            return losses.mean().to(torch.promote_types(dtype, self.start_transitions.dtype))
        return self._reduce(self._sum_sites(losses.view(tags.shape), tags, sites), batch, reduction, dtype)

    def _edges(self) -> Edges:
        factors = None if self.rank is None else (self.transitions_from, self.transitions_to)
        matrix = self.transitions if self.rank is None else None
        return Edges(self.start_transitions, self.end_transitions, matrix, factors, self._allowed)

    @property
    def _weights_are_equal(self) -> bool:
        return self.cost.is_constant or self.cost.is_error_fraction

    def _sum_sites(self, losses: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        """Sums the losses (L, B) of unmasked positions to (B,), weighted by the cost."""
        losses = losses if sites.is_full else losses.masked_fill(~sites.mask, 0.0)
        if not self._weights_are_equal:
            losses = losses * self.cost.site_weight(tags, losses.dtype)
        return losses.sum(0)

    def _site_weight(self, tags: Tensor, sites: Sites, dtype: torch.dtype) -> Tensor:
        """Returns the weights (L, B) with which `_sum_sites` sums."""
        weight = sites.mask.to(dtype)
        return weight if self._weights_are_equal else weight * self.cost.site_weight(tags, dtype)
