"""The linear-core chain."""

import math
from numbers import Real

import torch
from torch import Tensor, nn

from linearcore._checks import complaint
from linearcore.forms import Form, Labels, row_losses, tensors_of
from linearcore.heads._chain import ChainHead, check_reduction, checked_cost
from linearcore.heads._sampled import Edges, Neighbours, edge_scores, num_candidates, projection_of
from linearcore.kernels import local_scores, low_rank_scores, resolve_backend
from linearcore.losses import DEFAULT_SURROGATE, checked_form, class_scores
from linearcore.proposals import Proposal, check_num_samples
from linearcore.proposals.sequences import SequenceProposal
from linearcore.structured import Sampler
from linearcore.structures import Constraints, Cost, Sites
from linearcore.surrogates import Surrogate


class LinearCoreChain(ChainHead):
    """A margin loss over all single-site changes of the true tags: O(L·|Y|) where a CRF or an SSVM needs O(L·|Y|²).

        s_j(v) = h(x, y with y_j → v)          Σ_j of a form over the scores s_j, with label y_j

        logodds    φ(s_j(y_j) − logsumexp_{v≠y_j} s_j(v))        the default, at a fraction of a CRF's cost
        pairwise   mean_{v≠y_j} φ(s_j(y_j) − s_j(v))            with `normalize=False` the paper's sum, over local candidates
        centered   mean_{v≠y_j} φ(−(s_j(v) − mean s_j))

    It is an objective of the pseudo-likelihood kind: every site learns its best tag given its true neighbours. Without
    transitions, `centered` bounds the Hamming regret linearly. With them nothing is guaranteed of the decoded sequence in
    the worst case (`docs/guarantees.md`).

    Args:
        num_tags, batch_first, rank, constraints, strict_mask, validate: as in `linearcore.heads.ChainHead`. With constraints
            a candidate that they forbid is no candidate.
        surrogate: φ.
        form: "logodds", "pairwise", "centered", or a `Form`.
        normalize: as in `multiclass_loss`. With thousands of tags take False for `pairwise` and `centered`: the gradients of
            a mean over that many candidates are small.
        cost: "hamming" or "zero-one", which weigh all sites alike, or `Hamming(weight)`: a site counts with the weight of
            its true tag. A `Cost` without such weights is for `structured` only.
        unary: w in [0, 1), the share of the loss that is put on the emissions alone, for example 0.5:

                (1 − w)·form(s_j) + w·form(emissions[j])        no transitions, no start, no end

            In training the neighbours are the true ones, in decoding they are the model's own guesses. The second part keeps
            emissions able to stand alone, so that transitions correct them instead of carrying them. All tags are candidates
            there, those that constraints forbid included, since constraints are about neighbours.

    Example:
        >>> import torch
        >>> head = LinearCoreChain(num_tags=4000, rank=16, batch_first=True)  # was: torchcrf.CRF(4000, batch_first=True)
        >>> emissions, tags = torch.zeros(2, 3, 4000, requires_grad=True), torch.tensor([[7, 0, 39], [3999, 1, -100]])
        >>> loss = head.loss(emissions, tags)
        >>> loss.backward()
        >>> tags, scores = head.viterbi(emissions)
        >>> tags.shape, scores.shape
        (torch.Size([2, 3]), torch.Size([2]))

    Cost: time O(L·B·|Y|), and O(|Y|²) to write the dense gradient of the transitions, O(L·B·|Y|·r) with `rank`. Memory: two
    L×B×|Y| beside the emissions, and that gradient; one more L×B×|Y| with `unary`.

    Under autocast the product of the factors of `rank`, start and end are rounded to autocast's dtype in `loss`, as
    the emissions of a last layer are. All else is computed in float32 or float64, and so is all of it in decoding.
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
        self.form = checked_form(form, normalize, surrogate)
        self.cost = checked_cost(cost, num_tags)
        self.unary = _checked_unary(unary)

    def extra_repr(self) -> str:
        extra = f", unary={self.unary:g}" if self.unary else ""
        return f"{super().extra_repr()}, surrogate={self.surrogate}, form={self.form}{extra}"

    def _losses(self, emissions: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        if not sites.is_full:
            # What padding holds may be anything, and 0 · NaN is not 0.
            absent = ~sites.mask.unsqueeze(-1)
            emissions = emissions.masked_fill(absent, 0.0)
        if self._is_factored:
            scores = self._low_rank_scores(emissions, tags, sites, _autocast_dtype(emissions))
            backend = resolve_backend("auto", (emissions, scores), tensors_of(self.form, self.surrogate))
            losses = self._row_losses(scores, tags, backend)
        else:
            chain = self.chain(emissions)
            backend = resolve_backend("auto", (emissions, *chain), tensors_of(self.form, self.surrogate))
            losses = self.form.local_losses(self.surrogate, emissions, chain, tags, sites, backend)
        if self.unary:
            # In the user's layout, which the rows have in memory: no copy of them.
            rows, own = (part.transpose(0, 1) if self.batch_first else part for part in (emissions, tags))
            losses = self._mixed(losses, self._layout(self._row_losses(rows, own, backend)))
        return self._summed(losses, tags, sites)

    def _row_losses(self, scores: Tensor, tags: Tensor, backend: str) -> Tensor:
        """The form over rows of scores (…, |Y|) with labels `tags` (…), in the shape of the tags."""
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
        """`loss` of emissions = projection(hidden), from a few sampled candidates at each site.

        Nothing as wide as |Y| is made in the forward pass. With `sparse` neither are gradients, so that a step with
        `optim.SparseAdamW`, torch.optim.SGD or SparseAdam costs the same for a hundred tags and for a hundred thousand.
        `pairwise` is unbiased for the loss over all candidates, gradients included; `logodds` is biased, O(1/num_samples),
        less with `proposals.InBatch`; `centered` needs all candidates and is refused.

        Args:
            hidden: (L, B, d), or (B, L, d) with `batch_first`.
            projection: the nn.Linear that would make the emissions, or its (weight, bias).
            tags, mask: as in `loss`.
            proposal: where candidates come from; see `linearcore.proposals`.
            num_samples: K, draws a site, or for the whole batch where the proposal shares them.
            reduction: as in `loss`.
            sparse: sparse gradients of the projection and of all parameters here; take an optimiser that knows them.
            generator: of random numbers, on the device of `hidden`; None takes torch's own.

        Time and memory O(L·B·K·(d + r)), for any number of tags.
        """
        check_reduction(reduction)
        check_num_samples(num_samples)
        if not isinstance(proposal, Proposal):
            advice = "for example linearcore.proposals.Uniform()"
            raise TypeError(complaint("proposal", "be a `Proposal`", type(proposal).__name__, advice))
        batch = self._batch(hidden, tags, mask, is_hidden=True)
        states, tags, sites = batch.tagged
        weight, bias = projection_of(projection, self.num_tags, states.shape[-1])
        if not sites.is_full:
            states = states.masked_fill(~sites.mask.unsqueeze(-1), 0.0)
        rows, own = states.reshape(-1, states.shape[-1]), tags.reshape(-1)
        picked = proposal.candidates(own, self.num_tags, num_samples, generator)
        if not sites.is_full:  # Nothing competes where there is no tag.
            weights = picked.log_weight.masked_fill(~sites.mask.reshape(-1, 1), -math.inf)
            picked = picked._replace(log_weight=weights)
        around = Neighbours.of(tags, sites)
        unary = class_scores(rows, weight, bias, own, picked.index, sparse=sparse)
        edges = edge_scores(self._edges(), around, own, picked.index, unary[0].dtype, sparse=sparse)
        scores = unary[0] + edges[0].squeeze(-1), unary[1] + edges[1]
        number = num_candidates(self._edges(), around) if self.form.is_mean else self.num_tags
        losses = self.form.sampled(self.surrogate, *scores, picked.log_weight, number)
        if self.unary:
            alone = self.form.sampled(self.surrogate, *unary, picked.log_weight, self.num_tags)
            losses = self._mixed(losses, alone)
        losses = losses.view(tags.shape)
        return self._reduced(self._summed(losses, tags, sites), batch, reduction, hidden.dtype)

    def structured(
        self,
        emissions: Tensor,
        tags: Tensor,
        mask: Tensor | None = None,
        *,
        form: str = "sum",
        outer: SequenceProposal | None = None,
        inner: SequenceProposal | None = None,
        num_samples: int,
        objective: str = "normalised",
        reduction: str = "sum",
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """The loss of the paper over whole sequences, estimated from draws: its Algorithm 1, mended.

            sum        Σ_{y'} (1 − ℓ(y', y)) Σ_{y''≠y'} φ(h(y') − h(y''))
            centered   Σ_{y'} ℓ(y', y) φ(−(h(y') − mean h))

        As printed, the algorithm has the gradient's sign wrong and never draws the truth (docs: Reading the paper with care,
        b and c). Mended it is unbiased, and still no way to train: uniform sequences hardly ever meet one that matters.
        The forms over single-site changes (`loss`, `sampled_loss`) are.

        Args:
            emissions, tags, mask, reduction: as in `loss`; the default is "sum".
            form: "sum" or "centered"; the head's own `form` and `unary` are not asked.
            outer: where y' comes from; None is `SimilarSequences` or `CostlySequences`, the exact laws for the Hamming cost,
                or `UniformSequences` for a cost below 1 where no tag is right.
            inner: where y'' comes from, given y'; None is `UniformSequences`. `Neighbours` estimates a sum over those.
            num_samples: K draws for each chain.
            objective: "raw" (unbiased for the sum), "normalised" (unbiased for the mean that it is a multiple of) or
                "self-normalised" (biased by O(1/K)).
            generator: of random numbers, on the device of `emissions`.

        Time O(K·L·B), and the dense gradients of emissions and transitions.
        """
        check_reduction(reduction)
        check_num_samples(num_samples)
        sampler = Sampler(form, outer, inner, num_samples, objective)
        batch = self._batch(emissions, tags, mask)
        scores, tags, sites = batch.tagged
        chain = self.chain(scores)
        losses = sampler.losses(self.surrogate, self.cost, scores, chain, tags, sites, generator)
        return self._reduced(losses, batch, reduction, emissions.dtype)

    def _edges(self) -> Edges:
        factors = None if self.rank is None else (self.transitions_from, self.transitions_to)
        matrix = self.transitions if self.rank is None else None
        return Edges(self.start_transitions, self.end_transitions, matrix, factors, self._allowed)

    def _mixed(self, local: Tensor, alone: Tensor) -> Tensor:
        """(1 − w)·local + w·alone. Not torch.lerp, to which two infinite losses are no number."""
        return torch.add((1 - self.unary) * local, alone, alpha=self.unary)

    def _summed(self, losses: Tensor, tags: Tensor, sites: Sites) -> Tensor:
        """(B,): the sites' losses (L, B), weighed by the cost, 0 where masked, added up."""
        losses = losses if sites.is_full else losses.masked_fill(~sites.mask, 0.0)
        if not (self.cost.is_constant or self.cost.is_share):
            losses = losses * self.cost.site_weight(tags, losses.dtype)
        return losses.sum(0)

    @property
    def _is_factored(self) -> bool:
        """Whether the transitions stay two factors; constraints are |Y|×|Y| anyway."""
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
        """The probability for which the surrogate would leave this margin where it is, the neighbours being as they are.

        `surrogate.posterior` of the site's own margin: the log-odds, or for the other forms the lead over the runner-up.
        Exactly ½ within the core: there the loss has no opinion. It says nothing of whether the neighbours are right.
        """
        margin = self.form.lead(self._local_scores(emissions, tags, sites), tags)
        return self.surrogate.posterior(margin.clamp(-1e30, 1e30))


def _checked_unary(unary: float) -> float:
    if isinstance(unary, Real) and not isinstance(unary, bool) and 0 <= unary < 1:
        return float(unary)
    advice = "pass the share of the loss for the emissions alone, for example 0.5"
    raise ValueError(complaint("unary", "be a number in [0, 1)", repr(unary), advice))


def _autocast_dtype(emissions: Tensor) -> torch.dtype:
    """What autocast would take a product of float32 numbers in, where it is on; else the dtype of `emissions`."""
    device = emissions.device.type
    if emissions.dtype == torch.float32 and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return emissions.dtype
