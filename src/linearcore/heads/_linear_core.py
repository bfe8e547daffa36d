"""Linear-core loss for sequence tagging."""

import math

import torch
from torch import Tensor

from linearcore._checks import positive
from linearcore._torch import can_read, has_forward_mode, is_on_host, is_traced
from linearcore._typing import compute_dtype
from linearcore.forms import Form, Labels, row_losses, tensor_attributes
from linearcore.heads._arguments import check_positive_int, check_reduction, check_unary
from linearcore.heads._batch import Batch, check_shapes
from linearcore.heads._candidates import CANDIDATES, candidate_losses
from linearcore.heads._chain import cost_for_tags
from linearcore.heads._linear import Layer, emissions_dtype, low_rank_layer
from linearcore.heads._sampled import Neighbours
from linearcore.heads._sampled_chain import SampledChain
from linearcore.kernels import (
    LocalCall,
    LossCode,
    can_compile_local,
    compiled_local,
    fused_local,
    local_kernels,
    local_scores,
    low_rank_scores,
    resolve_backend,
)
from linearcore.losses import DEFAULT_SURROGATE, check_form, linear_row_loss
from linearcore.proposals.sequences import SequenceProposal
from linearcore.structured import structured_loss
from linearcore.structures import Chain, Constraints, Cost, Sites
from linearcore.surrogates import Surrogate


class LinearCoreChain(SampledChain):
    """Sum over positions of a margin loss for the tag, given the true neighbouring tags.

    s_j(v) is the score of the true sequence with tag v at position j. The loss is the sum over j of one of the forms

        logodds    φ(s_j(y_j) − logsumexp_{v≠y_j} s_j(v))   the default
        pairwise   mean_{v≠y_j} φ(s_j(y_j) − s_j(v))
        centered   mean_{v≠y_j} φ(−(s_j(v) − mean s_j))

    With `normalize=False`, `pairwise` is the paper's sum over sequences, restricted to changes of one tag.
    `ChainHead` defines the score of a sequence. Like pseudo-likelihood, the loss trains each position to predict its tag
    given the true neighbours. Without transitions, `centered` bounds the Hamming regret linearly. With transitions there is
    no worst-case guarantee for the decoded sequence (`docs/guarantees.md`).

    Args:
        num_tags, batch_first, rank, constraints, strict_mask, validate: as in `linearcore.heads.ChainHead`. Forbidden tags
            are not candidates.
        surrogate: φ, the function of the margin, for example `LinearCore(tau=1.0)`.
        form: "logodds", "pairwise", "centered", or a `Form`.
        normalize: as in `multiclass_loss`. With thousands of tags use False for `pairwise` and `centered`, since a mean over
            that many candidates has small gradients.
        cost: "hamming" and "zero-one" weight all positions equally; `Hamming(weight)` weights a position by the weight of
            its true tag. The method `structured` accepts every `Cost`, `loss` only those that weight positions.
            For other metrics add a term with `candidate_loss`.
        unary: w in [0, 1), the weight of a second loss on the emissions alone, for example 0.5:

                (1 − w)·form(s_j) + w·form(emissions[j])        no transitions, start or end scores

            Training uses the true neighbours, but decoding uses predicted ones. The second loss trains the emissions to be
            accurate without transitions. Its candidates are all tags, also tags that the constraints forbid.

    Example:
        >>> head = LinearCoreChain(num_tags=4000, rank=16, batch_first=True)  # was: torchcrf.CRF(4000, batch_first=True)
        >>> emissions, tags = torch.zeros(2, 3, 4000, requires_grad=True), torch.tensor([[7, 0, 39], [3999, 1, -100]])
        >>> head.loss(emissions, tags).backward()
        >>> best_tags, scores = head.viterbi(emissions)

    Complexity: time O(L·B·|Y|), and O(|Y|²) to write the dense gradient of the transitions; O(L·B·|Y|·r) with `rank`. A CRF
    takes O(L·B·|Y|²). On a CPU with |Y| ≤ L·B, the product of the `rank` factors is computed once, in O(|Y|²·r).
    Memory besides the emissions: two tensors of size L×B×|Y|, a third with `unary`, and the gradient of the transitions or
    of this product.

    Under autocast, `loss` rounds start, end and the product of the `rank` factors to autocast's dtype, as autocast does
    with the output of a linear layer. Everything else, and all of decoding, is computed in float32 or float64.
    """

    def __init__(
        self,
        num_tags: int,
        batch_first: bool = False,
        *,
        surrogate: Surrogate = DEFAULT_SURROGATE,
        form: str | Form = "logodds",
        normalize: bool | None = None,
        cost: str | Cost = "hamming",
        unary: float = 0.0,
        rank: int | None = None,
        constraints: Constraints | None = None,
        strict_mask: bool = True,
        validate: bool = True,
    ) -> None:
        super().__init__(
            num_tags, batch_first, rank=rank, constraints=constraints, strict_mask=strict_mask, validate=validate
        )
        self.surrogate = surrogate
        self.form = check_form(form, normalize, surrogate)
        self.cost = cost_for_tags(cost, num_tags)
        self.unary = check_unary(unary)
        self._known_code: tuple[Form | None, Surrogate | None, LossCode | None] = None, None, None

    def extra_repr(self) -> str:
        extra = f", unary={self.unary:g}" if self.unary else ""
        return f"{super().extra_repr()}, surrogate={self.surrogate}, form={self.form}{extra}"

    def _losses(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        parameters = self._factors_like(emissions) if self._is_factored else tuple(self.chain(emissions))
        code, dtype = self.form.loss_code(self.surrogate), _autocast_dtype(emissions)

        def reference(emissions: Tensor, *parameters: Tensor) -> Tensor:
            losses = self._site_losses(emissions, parameters, tags, sites, dtype, "reference")
            return losses.masked_fill(~sites.mask, 0.0)

        if code is not None and self._is_compiled(emissions, parameters, dtype):
            chain = self.chain(emissions) if self._is_factored else Chain(*parameters)
            mask = None if sites.is_full else sites.mask
            by_kernel = compiled_local(
                code, emissions, chain, tags, mask, lambda leaf, chain: reference(leaf, *chain), self.unary
            )
            if by_kernel is not None:
                return by_kernel.sum(0) if self._weights_are_equal else self._sum_sites(by_kernel, tags, sites)
        backend = resolve_backend("auto", (emissions, *parameters), tensor_attributes(self.form, self.surrogate))
        kernels = local_kernels(emissions, *parameters) if backend == "fused" and code is not None else None
        if kernels is None or code is None:
            losses = self._site_losses(emissions, parameters, tags, sites, dtype, backend)
        else:
            call = LocalCall(
                kernels, code, self.unary, tags, sites.mask, is_batch_first=False, reduction="sites", is_strict=False,
                reference=reference, dtype=dtype,
            )  # fmt: skip
            losses = fused_local(call, emissions, *parameters)
        return self._sum_sites(losses, tags, sites)

    def _is_compiled(self, emissions: Tensor, parameters: tuple[Tensor, ...], dtype: torch.dtype) -> bool:
        """Whether to use the compiled kernel, which needs low-rank transitions as a product no larger than the emissions."""
        if self._is_factored and (self.num_tags > emissions.shape[0] * emissions.shape[1] or dtype != emissions.dtype):
            return False
        return can_compile_local(emissions, parameters)

    def _fused_loss(self, emissions: Tensor, tags: Tensor, mask: Tensor | None, reduction: str) -> Tensor | None:
        check_shapes(self.num_tags, emissions, tags, mask)
        code, check_values = self._code, self.validate and can_read(emissions)
        if code is None or not self._weights_are_equal or (check_values and self.constraints is not None):
            return None
        parameters: tuple[Tensor, ...]
        if self._is_factored:
            parameters = self.start_transitions, self.transitions_from, self.transitions_to, self.end_transitions
        elif self.rank is None and self.constraints is None:
            parameters = self.start_transitions, self.transitions, self.end_transitions
        else:
            parameters = tuple(self.chain())
        if parameters[0].dtype != torch.float32 or tags.device != emissions.device or is_traced() or has_forward_mode():
            return None
        kernels = local_kernels(emissions, *parameters)
        if kernels is None:
            return None
        dtype = _autocast_dtype(emissions)

        def reference(emissions: Tensor, *parameters: Tensor) -> Tensor:
            batch = self._to_batch(emissions, tags, mask)
            losses = self._site_losses(batch.emissions, parameters, *batch.loss_inputs[1:], dtype, "reference")
            return self._reduce(self._sum_sites(losses, *batch.loss_inputs[1:]), batch, reduction, emissions.dtype)

        call = LocalCall(
            kernels, code, self.unary, tags.long(), None if mask is None else mask.bool(), is_batch_first=self.batch_first,
            reduction=reduction, is_strict=check_values and self.strict_mask, reference=reference, dtype=dtype,
        )  # fmt: skip
        loss = fused_local(call, emissions, *parameters)
        # Invalid tags and masks give a NaN loss. It is read after the launch, so the kernel does not wait for a check.
        check_values = check_values or is_on_host(emissions)
        if check_values and (loss.isnan().any() if reduction == "none" else math.isnan(loss.item())):
            self._to_batch(emissions, tags, mask)  # Raises, unless the scores are NaN.
        return loss

    def _site_losses(
        self, emissions: Tensor, parameters: tuple[Tensor, ...], tags: Tensor, sites: Sites, dtype: torch.dtype, backend: str
    ) -> Tensor:
        """Returns the loss (L, B) of each position, undefined where masked.

        `parameters` are a chain, or its factors, whose product is rounded to `dtype`.
        """
        emissions = sites.zero_masked(emissions)
        if len(parameters) == 4:
            start, *factors, end = parameters
            with torch.autocast(emissions.device.type, enabled=False):
                scores = low_rank_scores(emissions, start, (factors[0], factors[1]), end, tags, sites, dtype)
            losses = self._row_losses(scores, tags, backend)
        else:
            losses = self.form.local_losses(self.surrogate, emissions, Chain(*parameters), tags, sites, backend)
        if self.unary:
            # The second loss is computed in the user's layout: it is contiguous, so no copy is needed.
            rows, labels = (part.transpose(0, 1) if self.batch_first else part for part in (emissions, tags))
            losses = self._mix(losses, self._to_user_layout(self._row_losses(rows, labels, backend)))
        return losses

    def _projected(self, layer: Layer, batch: Batch, reduction: str, chunk_bytes: int | None) -> Tensor:
        if not self._is_factored:
            return super()._projected(layer, batch, reduction, chunk_bytes)
        states, weight, bias = layer
        _, tags, sites = batch.loss_inputs
        dtype = emissions_dtype(states)

        def finish(losses: Tensor) -> Tensor:
            return self._reduce(self._sum_sites(losses.view(tags.shape), tags, sites), batch, reduction, dtype)

        def loss_of(rows: Layer) -> Tensor:
            return linear_row_loss(
                rows, tags.reshape(-1), finish, form=self.form, surrogate=self.surrogate, is_scalar=reduction != "none",
                chunk_bytes=chunk_bytes,
            )  # fmt: skip

        local = loss_of(low_rank_layer(layer, self._edges(), Neighbours.of(tags, sites), sites))
        if not self.unary:
            return local
        return self._mix(local, loss_of((sites.zero_masked(states).flatten(0, 1), weight, bias)))

    def _row_losses(self, scores: Tensor, tags: Tensor, backend: str) -> Tensor:
        """Applies the form to rows of scores (…, |Y|) with labels `tags` (…). Returns losses in the shape of `tags`."""
        rows, labels = scores.reshape(-1, self.num_tags), Labels(tags.reshape(-1))
        return row_losses(self.form, self.surrogate, rows, labels, backend).view(tags.shape)

    def candidate_loss(
        self,
        emissions: Tensor,
        tags: Tensor,
        mask: Tensor | None = None,
        *,
        cost: str | Cost,
        weight: float = 5.0,
        candidates: int = CANDIDATES,
        reduction: str = "token_mean",
    ) -> Tensor:
        """Returns `loss` plus `weight` times a margin loss of the true sequence against the k best, weighted by their cost.

            loss + weight · φ(h(y) − log Σ_{y'} ℓ(y', y) exp h(y'))        y': the k best sequences

        A candidate is a whole sequence here. Each is weighted by its cost ℓ(y', y), so the true sequence, with cost 0, has
        no weight. This is the form `logodds` with costs as weights. No bound for the metric is known. Measurements:
        `docs/structured-outputs.md`.

        Args:
            emissions, tags, mask, reduction: as in `loss`. "token_mean" divides both terms by the number of tags.
            cost: ℓ: a name such as "edit", or a `Cost`. "span-f1" and "token-f1" need tag names: `SpanF1(names)`.
            weight: factor of the second term. It is larger than 1 by default, because there is one such term per sequence,
                and `loss` is a sum over tags.
            candidates: k.

        Raises:
            ValueError: if an option is out of range, or the cost does not fit the tags.

        Example:
            >>> from linearcore.structures import SpanF1
            >>> head, cost = LinearCoreChain(3, batch_first=True), SpanF1(["O", "B-NP", "I-NP"])
            >>> emissions, tags = torch.zeros(2, 4, 3, requires_grad=True), torch.tensor([[1, 2, 0, 1], [0, 1, 0, -100]])
            >>> head.candidate_loss(emissions, tags, cost=cost).backward()

        Time: `loss`, `kbest`, and the cost of k pairs of each sequence.
        """
        check_reduction(reduction)
        candidates = check_positive_int("candidates", candidates, "for example 8")
        weight = positive("weight", weight, "for example 5.0")
        resolved = cost_for_tags(cost, self.num_tags)
        batch = self._to_batch(emissions, tags, mask)
        scores, tags, sites = batch.loss_inputs
        second = candidate_losses(scores, self.chain(scores), tags, sites, resolved, self.surrogate, candidates)
        return self._reduce(self._losses(scores, tags, sites) + weight * second, batch, reduction, emissions.dtype)

    def structured(
        self,
        emissions: Tensor,
        tags: Tensor,
        mask: Tensor | None = None,
        *,
        form: str = "sum",
        proposal: SequenceProposal | None = None,
        inner: SequenceProposal | None = None,
        num_samples: int,
        objective: str = "normalised",
        reduction: str = "sum",
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """For study only: estimates the paper's loss over whole sequences from samples (Algorithm 1, corrected).

            sum        Σ_{y'} (1 − ℓ(y', y)) Σ_{y''≠y'} φ(h(y') − h(y''))
            centered   Σ_{y'} ℓ(y', y) φ(−(h(y') − mean h))

        The printed algorithm has the wrong sign in the gradient and never samples the true sequence (docs: Reading the paper
        with care, b and c). The corrected estimator is unbiased, but a tagger trained with it does not become accurate, even
        with many samples (section p): random sequences are rarely close to the true one. Use `loss` or `sampled_loss`.

        Args:
            emissions, tags, mask, reduction: as in `loss`; the default is "sum".
            form: "sum" or "centered"; the `form` and `unary` of the head are not used.
            proposal, inner, num_samples, objective, generator: as in `linearcore.structured.structured_loss`, which gets the
                scores, the cost and the surrogate of the head. If a proposal stores tensors of a batch, their shape is
                (L, B, …), also with `batch_first`.

        Time O(K·L·B), and the dense gradients of emissions and transitions.
        """
        check_reduction(reduction)
        batch = self._to_batch(emissions, tags, mask)
        scores, tags, sites = batch.loss_inputs
        losses = structured_loss(
            scores, tags, structure=self.chain(scores), mask=sites.mask, cost=self.cost, proposal=proposal, inner=inner,
            num_samples=num_samples, surrogate=self.surrogate, form=form, objective=objective, reduction="none",
            generator=generator,
        )  # fmt: skip
        return self._reduce(losses, batch, reduction, emissions.dtype)

    def _mix(self, local: Tensor, unary: Tensor) -> Tensor:
        """Returns (1 − w)·local + w·unary. Not torch.lerp, which gives NaN for two infinite losses."""
        return torch.add((1 - self.unary) * local, unary, alpha=self.unary)

    @property
    def _code(self) -> LossCode | None:
        """Identifies the loss for the kernels; None if they do not implement it. Cached for each form and surrogate."""
        form, surrogate, code = self._known_code
        if form is not self.form or surrogate is not self.surrogate:
            has_tensors = len(tensor_attributes(self.form, self.surrogate)) > 0
            code = None if has_tensors else self.form.loss_code(self.surrogate)
            self._known_code = self.form, self.surrogate, code
        return code

    @property
    def _is_factored(self) -> bool:
        """Whether to use the factors directly. With constraints a |Y|×|Y| matrix is needed anyway."""
        return self.rank is not None and self.constraints is None

    def _local_scores(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        if not self._is_factored:
            chain = self.chain(emissions)
            return local_scores(emissions, chain, tags, sites, resolve_backend("auto", (emissions, *chain)))
        start, source, target, end = self._factors_like(emissions)
        with torch.autocast(emissions.device.type, enabled=False):
            return low_rank_scores(emissions, start, (source, target), end, tags, sites)

    def _factors_like(self, emissions: Tensor) -> tuple[Tensor, ...]:
        """Returns start, the two factors and end in the dtype of `emissions`."""
        parameters = self.start_transitions, self.transitions_from, self.transitions_to, self.end_transitions
        return tuple(parameter.to(emissions.dtype) for parameter in parameters)

    def _confidence(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        """Returns `surrogate.posterior` of the margin at each position, given the neighbouring tags.

        The margin is the log-odds, or the difference to the second-best tag for the other forms. The confidence is exactly ½
        for margins between −τ and τ. It does not account for errors in the neighbouring tags.
        """
        margin = self.form.decision_margin(self._local_scores(emissions, tags, sites), tags)
        return self.surrogate.posterior(margin.clamp(-1e30, 1e30))


def _autocast_dtype(emissions: Tensor) -> torch.dtype:
    """Returns autocast's dtype for products of float32 tensors if it is enabled, else the dtype of the computation."""
    device, dtype = emissions.device.type, compute_dtype(emissions)
    if dtype == torch.float32 and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return dtype
