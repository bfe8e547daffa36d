"""Linear-core loss for sequence tagging."""

import math
from numbers import Real

import torch
from torch import Tensor, nn

from linearcore._checks import complaint, positive
from linearcore.forms import Form, Labels, row_losses, tensor_attributes
from linearcore.heads._candidates import CANDIDATES, candidate_losses
from linearcore.heads._chain import ChainHead, check_positive_int, check_reduction, cost_for_tags
from linearcore.heads._sampled import Edges, Neighbours, edge_scores, num_candidates, unpack_projection
from linearcore.kernels import can_compile_local, local_scores, low_rank_scores, resolve_backend
from linearcore.losses import DEFAULT_SURROGATE, check_form, class_scores
from linearcore.proposals import Proposal, check_num_samples
from linearcore.proposals.sequences import SequenceProposal
from linearcore.structured import structured_loss
from linearcore.structures import Constraints, Cost, Sites
from linearcore.surrogates import Surrogate


class LinearCoreChain(ChainHead):
    """Margin loss over all sequences that differ from the true one in one tag. Time O(L·|Y|); a CRF needs O(L·|Y|²).

        loss = Σ_j form(s_j, y_j),          s_j(v) = h(x, y with y_j → v)

        logodds    φ(s_j(y_j) − logsumexp_{v≠y_j} s_j(v))   the default
        pairwise   mean_{v≠y_j} φ(s_j(y_j) − s_j(v))        `normalize=False`: the paper's sum, restricted to these sequences
        centered   mean_{v≠y_j} φ(−(s_j(v) − mean s_j))

    h is the score of a sequence (see `ChainHead`). Like pseudo-likelihood, the loss trains each position to predict its tag
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
            its true tag. A `Cost` without such weights works only with the method `structured`.
        unary: w in [0, 1), the weight of a second loss on the emissions alone, for example 0.5:

                (1 − w)·form(s_j) + w·form(emissions[j])        no transitions, start or end scores

            Training uses the true neighbours, but decoding uses predicted ones. The second loss trains the emissions to be
            accurate without transitions. Its candidates are all tags, also tags that the constraints forbid.

    Example:
        >>> head = LinearCoreChain(num_tags=4000, rank=16, batch_first=True)  # was: torchcrf.CRF(4000, batch_first=True)
        >>> emissions, tags = torch.zeros(2, 3, 4000, requires_grad=True), torch.tensor([[7, 0, 39], [3999, 1, -100]])
        >>> head.loss(emissions, tags).backward()
        >>> best_tags, scores = head.viterbi(emissions)

    Cost: time O(L·B·|Y|), and O(|Y|²) to write the dense gradient of the transitions, O(L·B·|Y|·r) with `rank`.
    Memory besides the emissions: two tensors of size L×B×|Y|, a third with `unary`, and the gradient of the transitions.

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
        self.unary = _check_unary(unary)

    def extra_repr(self) -> str:
        extra = f", unary={self.unary:g}" if self.unary else ""
        return f"{super().extra_repr()}, surrogate={self.surrogate}, form={self.form}{extra}"

    def _losses(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        if self._is_factored:
            emissions = sites.zero_masked(emissions)
            scores = self._low_rank_scores(emissions, tags, sites, _autocast_dtype(emissions))
            backend = resolve_backend("auto", (emissions, scores), tensor_attributes(self.form, self.surrogate))
            losses = self._row_losses(scores, tags, backend)
        else:
            chain = self.chain(emissions)
            if self.form.loss_code(self.surrogate) is not None and can_compile_local(emissions, chain):
                backend = "compiled"
            else:
                backend = resolve_backend("auto", (emissions, *chain), tensor_attributes(self.form, self.surrogate))
                emissions = sites.zero_masked(emissions)
            losses = self.form.local_losses(self.surrogate, emissions, chain, tags, sites, backend)
        if self.unary:
            # In the user's layout, which is contiguous, to avoid a copy.
            parts = sites.zero_masked(emissions), tags
            rows, labels = (part.transpose(0, 1) if self.batch_first else part for part in parts)
            losses = self._mix(losses, self._to_user_layout(self._row_losses(rows, labels, backend)))
        return self._sum_sites(losses, tags, sites)

    def _row_losses(self, scores: Tensor, tags: Tensor, backend: str) -> Tensor:
        """Applies the form to rows of scores (…, |Y|) with labels `tags` (…). Returns losses in the shape of `tags`."""
        rows, labels = scores.reshape(-1, self.num_tags), Labels(tags.reshape(-1))
        return row_losses(self.form, self.surrogate, rows, labels, backend).view(tags.shape)

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
            num_samples: K, samples per position, or for the whole batch if the proposal shares them.
            reduction: as in `loss`.
            sparse: sparse gradients for the projection and the head's parameters. Use an optimiser that supports them.
            generator: random number generator on the device of `hidden`; None for torch's default.

        Time and memory O(L·B·K·(d + r)), for any number of tags.
        """
        check_reduction(reduction)
        check_num_samples(num_samples)
        if not isinstance(proposal, Proposal):
            advice = "for example linearcore.proposals.Uniform()"
            raise TypeError(complaint("proposal", "be a `Proposal`", type(proposal).__name__, advice))
        batch = self._to_batch(hidden, tags, mask, is_hidden=True)
        states, tags, sites = batch.loss_inputs
        weight, bias = unpack_projection(projection, self.num_tags, states.shape[-1])
        states = sites.zero_masked(states)
        rows, labels = states.reshape(-1, states.shape[-1]), tags.reshape(-1)
        candidates = proposal.candidates(labels, self.num_tags, num_samples, generator)
        if not sites.is_full:  # Masked positions have no competing tags.
            log_weight = candidates.log_weight.masked_fill(~sites.mask.reshape(-1, 1), -math.inf)
            candidates = candidates._replace(log_weight=log_weight)
        neighbours = Neighbours.of(tags, sites)
        unary = class_scores(rows, weight, bias, labels, candidates.index, sparse=sparse)
        edges = edge_scores(self._edges(), neighbours, labels, candidates.index, unary[0].dtype, sparse=sparse)
        scores = unary[0] + edges[0].squeeze(-1), unary[1] + edges[1]
        number = num_candidates(self._edges(), neighbours) if self.form.is_mean else self.num_tags
        losses = self.form.sampled_losses(self.surrogate, *scores, candidates.log_weight, number)
        if self.unary:
            unary_losses = self.form.sampled_losses(self.surrogate, *unary, candidates.log_weight, self.num_tags)
            losses = self._mix(losses, unary_losses)
        losses = losses.view(tags.shape)
        return self._reduce(self._sum_sites(losses, tags, sites), batch, reduction, hidden.dtype)

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
        """Trains for a metric: `loss`, plus a loss of the true sequence against the best sequences of the model.

            loss + weight · φ(h(y) − log Σ_{y'} ℓ(y', y) exp h(y'))        y': the k best sequences

        A candidate counts as much as it costs, and the true sequence not at all: it is the form `logodds` with the cost as
        weights. No bound for the metric is known. What it gains is in `docs/structured-outputs.md`.

        Args:
            emissions, tags, mask, reduction: as in `loss`. "token_mean" divides both terms by the number of tags.
            cost: ℓ: a name such as "edit", or a `Cost`. "span-f1" and "token-f1" need tag names: `SpanF1(names)`.
            weight: weight of the second term, one for each sequence; `loss` has one term for each tag.
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
        """Estimates the paper's loss over whole sequences from samples: its Algorithm 1, corrected.

            sum        Σ_{y'} (1 − ℓ(y', y)) Σ_{y''≠y'} φ(h(y') − h(y''))
            centered   Σ_{y'} ℓ(y', y) φ(−(h(y') − mean h))

        The printed algorithm has the wrong sign in the gradient and never samples the true sequence (docs: Reading the paper
        with care, b and c). The corrected estimator is unbiased, but it does not train a tagger, also with many samples (p):
        random sequences are rarely close to the true one. Use `loss` or `sampled_loss` for training.

        Args:
            emissions, tags, mask, reduction: as in `loss`; the default is "sum".
            form: "sum" or "centered"; the `form` and `unary` of the head are not used.
            proposal, inner, num_samples, objective, generator: as in `linearcore.structured.structured_loss`, which gets the
                scores, the cost and the surrogate of the head. Proposals that hold one batch are time first.

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

    def _edges(self) -> Edges:
        factors = None if self.rank is None else (self.transitions_from, self.transitions_to)
        matrix = self.transitions if self.rank is None else None
        return Edges(self.start_transitions, self.end_transitions, matrix, factors, self._allowed)

    def _mix(self, local: Tensor, unary: Tensor) -> Tensor:
        """Returns (1 − w)·local + w·unary. Not torch.lerp, which gives NaN for two infinite losses."""
        return torch.add((1 - self.unary) * local, unary, alpha=self.unary)

    def _sum_sites(self, losses: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        """Sums the losses (L, B) of unmasked positions to (B,), weighted by the cost."""
        losses = losses if sites.is_full else losses.masked_fill(~sites.mask, 0.0)
        if not (self.cost.is_constant or self.cost.is_error_fraction):
            losses = losses * self.cost.site_weight(tags, losses.dtype)
        return losses.sum(0)

    @property
    def _is_factored(self) -> bool:
        """Whether to use the factors directly. With constraints a |Y|×|Y| matrix is needed anyway."""
        return self.rank is not None and self.constraints is None

    def _local_scores(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        if not self._is_factored:
            chain = self.chain(emissions)
            return local_scores(emissions, chain, tags, sites, resolve_backend("auto", (emissions, *chain)))
        return self._low_rank_scores(emissions, tags, sites, emissions.dtype)

    def _low_rank_scores(self, emissions: Tensor, tags: Tensor, sites: Sites, dtype: torch.dtype) -> Tensor:
        start, left, right, end = (
            part.to(emissions.dtype)
            for part in (self.start_transitions, self.transitions_from, self.transitions_to, self.end_transitions)
        )
        with torch.autocast(emissions.device.type, enabled=False):
            return low_rank_scores(emissions, start, (left, right), end, tags, sites, dtype)

    def _confidence(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        """Returns `surrogate.posterior` of the margin at each position, given the neighbouring tags.

        The margin is the log-odds, or the difference to the second-best tag for the other forms. The confidence is exactly ½
        inside the linear core. It does not account for errors in the neighbouring tags.
        """
        margin = self.form.decision_margin(self._local_scores(emissions, tags, sites), tags)
        return self.surrogate.posterior(margin.clamp(-1e30, 1e30))


def _check_unary(unary: float) -> float:
    if isinstance(unary, Real) and not isinstance(unary, bool) and 0 <= unary < 1:
        return float(unary)
    advice = "pass the weight of the loss on the emissions alone, for example 0.5"
    raise ValueError(complaint("unary", "be a number in [0, 1)", repr(unary), advice))


def _autocast_dtype(emissions: Tensor) -> torch.dtype:
    """Returns autocast's dtype for products of float32 tensors if it is enabled, else the dtype of `emissions`."""
    device = emissions.device.type
    if emissions.dtype == torch.float32 and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return emissions.dtype
