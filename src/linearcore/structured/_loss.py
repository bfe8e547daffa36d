"""Losses over whole outputs, estimated from samples with importance weights."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from linearcore._checks import complaint, floating, in_range, nan_where, one_of, shape
from linearcore._reduce import check_reduction, reduce_losses
from linearcore._torch import is_on_host
from linearcore._typing import Reduction, compute_dtype, result_dtype
from linearcore.losses import DEFAULT_SURROGATE
from linearcore.proposals import check_num_samples
from linearcore.proposals.sequences import SequenceProposal, UniformSequences
from linearcore.structured._batches import ChainBatch
from linearcore.structured._estimates import MEANS, OBJECTIVES, Draws
from linearcore.structured._forms import STRUCTURED_FORMS
from linearcore.structured._path_losses import PathLoss
from linearcore.structured._paths import PathDistribution
from linearcore.structures import Automaton, Chain, Cost, Sites, resolve_cost
from linearcore.surrogates import Surrogate

#: Positions with this tag are masked out, as in torch.nn.CrossEntropyLoss.
IGNORED_TAG = -100

Structure = Chain | Automaton | Sequence[Automaton]
OutputProposal = SequenceProposal | PathDistribution | Sequence[PathDistribution]


class StructuredEstimate(NamedTuple):
    """Estimated losses of a batch, and the importance weights of the samples.

    Attributes:
        losses: (B,), differentiable.
        log_weight: (K, B), float64, without gradient; −inf for samples that do not count.
    """

    losses: Tensor
    log_weight: Tensor

    @property
    def effective_sample_size(self) -> Tensor:
        """(B,), float64: (Σ w)² / Σ w², between 0 (no sample counts) and K (all weights are equal).

        The variance is about that of so many samples from the ideal proposal. It is itself an estimate: if the proposal
        misses the terms that matter, it is too large.
        """
        size = (2 * self.log_weight.logsumexp(0) - (2 * self.log_weight).logsumexp(0)).exp()
        return torch.where(self.log_weight.isneginf().all(0), 0.0, size)


def structured_loss(
    scores: Tensor | Sequence[Tensor],
    truth: Tensor,
    *,
    structure: Structure,
    mask: Tensor | None = None,
    cost: str | Cost = "hamming",
    proposal: OutputProposal | None = None,
    inner: OutputProposal | None = None,
    num_samples: int,
    surrogate: Surrogate = DEFAULT_SURROGATE,
    form: str = "sum",
    objective: str = "normalised",
    reduction: Reduction = "mean",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Estimates a loss over whole outputs from K samples: Algorithm 1 of the paper, corrected.

        sum        Σ_{y'} (1 − ℓ(y', y)) Σ_{y''≠y'} φ(h(y') − h(y''))
        centered   Σ_{y'} ℓ(y', y) φ(−(h(y') − mean h))

    The weight of an output is 1 − cost in "sum" and the cost in "centered". The estimate is unbiased in value and gradient
    for every cost ℓ and every proposal that gives a positive probability to each y' whose term is not zero, such as a
    mixture with `UniformSequences`. With other proposals the sum is over the y' that they can sample. A tagger trained from
    scratch with this loss does not become accurate, with any proposal (docs: Reading the paper with care, p); use
    `LinearCoreChain.loss` for that.

    Args:
        scores: emissions (L, B, |Y|) of a chain, or scores (B, A) of the arcs of an automaton.
        truth: (L, B) tags y in [0, |Y|); −100 is masked out. For an automaton, (B, T) labels, −100 after their end.
        structure: a `Chain`: start, transition and end scores, which are differentiable, too. Or an `Automaton`, whose
            paths are the outputs. Or a list of automata, one for each row; `scores` is then a list of (A,).
        mask: (L, B) booleans: the position has a tag; None for all.
        cost: ℓ, a `Cost` or its name. Paths whose numbers of labels differ need "edit" or "bleu".
        proposal: distribution of y'. None: the default of `form`, which for the costs "hamming" and "ngram" samples exactly
            in proportion to the weights. For an automaton a `PathDistribution`, or a list of them; None: uniform.
        inner: distribution of y'' given y', only for "sum". None: uniform. With `Neighbours` the sum is over neighbours.
        num_samples: K, samples for each sequence.
        surrogate: φ.
        form: "sum" or "centered".
        objective: what is estimated. The first three are unbiased.
            "raw": the sum above.
            "mean": the sum divided by the number of its terms.
            "normalised": the sum divided by the sum of its weights. Raises for automata, and for costs without a closed form
                of the sum of weights; use "self-normalised".
            "self-normalised": as "normalised", for all costs and proposals, with a bias of O(1/K).
        reduction: "mean", "sum" or "none" (B,).
        generator: random number generator on the device of `scores`; None for torch's default.

    Example:
        >>> from linearcore.structures import AlignedNgram
        >>> emissions, tags = torch.zeros(4, 1, 50, requires_grad=True), torch.tensor([[7], [0], [0], [49]])
        >>> chain = Chain(torch.zeros(50), torch.zeros(50, 50), torch.zeros(50))
        >>> loss = structured_loss(emissions, tags, structure=chain, cost=AlignedNgram(2), num_samples=16)
        >>> loss.backward()
        >>> round(loss.item(), 4)  # All margins are 0, and the proposal is exact for this cost.
        2.3863

    Time O(K·L·B) and the cost; the gradients of emissions and transitions are dense. For an automaton
    O(B·A + K·B·M·log A), M the length of the longest path.
    """
    check_reduction(reduction)
    estimate = structured_estimate(
        scores, truth, structure=structure, mask=mask, cost=cost, proposal=proposal, inner=inner, num_samples=num_samples,
        surrogate=surrogate, form=form, objective=objective, generator=generator,
    )  # fmt: skip
    first = scores if isinstance(scores, Tensor) else scores[0]
    return reduce_losses(estimate.losses, None, None, reduction).to(result_dtype(first))


def structured_estimate(
    scores: Tensor | Sequence[Tensor],
    truth: Tensor,
    *,
    structure: Structure,
    mask: Tensor | None = None,
    cost: str | Cost = "hamming",
    proposal: OutputProposal | None = None,
    inner: OutputProposal | None = None,
    num_samples: int,
    surrogate: Surrogate = DEFAULT_SURROGATE,
    form: str = "sum",
    objective: str = "normalised",
    generator: torch.Generator | None = None,
) -> StructuredEstimate:
    """Returns the losses of `structured_loss` (B,) together with their importance weights, to judge a proposal.

    Args:
        scores, truth, structure, mask, cost, proposal, inner, num_samples, surrogate, form, objective, generator: as in
            `structured_loss`.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a shape or an option does not fit.

    Example:
        >>> emissions, tags = torch.zeros(4, 1, 50), torch.tensor([[7], [0], [0], [49]])
        >>> chain = Chain(torch.zeros(50), torch.zeros(50, 50), torch.zeros(50))
        >>> for proposal in (UniformSequences(), None):  # None is exact here.
        ...     estimate = structured_estimate(
        ...         emissions, tags, structure=chain, cost="ngram", proposal=proposal, num_samples=10_000,
        ...         generator=torch.Generator().manual_seed(0),
        ...     )
        ...     print(estimate.effective_sample_size.round().tolist())
        [13.0]
        [10000.0]
        >>> words = Automaton.from_lexicon(["ab", "abc", "b"])
        >>> structured_estimate(
        ...     torch.zeros(1, words.num_arcs), torch.tensor([[0, 1, 2]]), structure=words, cost="edit", objective="mean",
        ...     num_samples=10_000, generator=torch.Generator().manual_seed(0),
        ... ).losses
        tensor([1.6])
    """
    one_of("form", form, STRUCTURED_FORMS)
    one_of("objective", objective, OBJECTIVES)
    check_num_samples(num_samples)
    resolved, chosen = resolve_cost(cost), STRUCTURED_FORMS[form]
    chosen.check(surrogate)
    if inner is not None and not chosen.has_inner:
        advice = "omit it: the form has no inner sum"
        raise ValueError(complaint("inner", f"be None for the {form} form", type(inner).__name__, advice))
    if not isinstance(structure, Chain):
        loss = PathLoss(resolved, num_samples, surrogate, chosen, objective, generator)
        return StructuredEstimate(*loss.of_structure(scores, truth, structure, mask, proposal, inner))
    batch, is_invalid = _to_batch(scores, truth, mask, structure)
    resolved.check(batch.num_tags)
    outer = _check_proposal("proposal", proposal) or chosen.outer(resolved)
    inner = _check_proposal("inner", inner) or UniformSequences()
    drawn = _draw(outer, batch.tags, batch, num_samples, generator)
    others = _draw(inner, drawn.tags, batch, num_samples, generator) if chosen.has_inner else None
    log_count = inner.log_count(batch.sites, batch.num_tags) if objective in MEANS else None
    log_weight = chosen.log_weight(resolved, batch, drawn, others, objective=objective, log_count=log_count)
    losses = chosen.estimate(surrogate, batch, drawn, others, log_weight)
    return StructuredEstimate(nan_where(losses, is_invalid), log_weight)


def _to_batch(
    scores: Tensor | Sequence[Tensor], truth: Tensor, mask: Tensor | None, structure: Chain
) -> tuple[ChainBatch, Tensor | None]:
    """Returns the checked batch, and booleans (B,): a tag is out of range (None on a CPU, where this raises)."""
    emissions = floating("scores", scores, "pass the emissions of the network")
    if emissions.dim() != 3:
        got = tuple(emissions.shape)
        raise ValueError(complaint("scores", "have shape (L, B, |Y|)", got, "pass emissions, time first"))
    num_tags = emissions.shape[-1]
    for name, part, dims in zip(Chain._fields, structure, (1, 2, 1), strict=True):
        shape(f"structure.{name}", part, (num_tags,) * dims, "the last dimension of `scores` is the number of tags")
    shape("truth", truth, tuple(emissions.shape[:2]), "pass one tag for each position, time before batch")
    if truth.is_floating_point() or truth.is_complex() or truth.dtype == torch.bool:
        raise TypeError(complaint("truth", "be integers", truth.dtype, "convert them with `.long()`"))
    tags = truth.long()
    has_tag = tags != IGNORED_TAG
    if mask is not None:
        shape("mask", mask, tuple(truth.shape), "pass one boolean for each position, time before batch")
        has_tag = has_tag & mask.bool()
    tags, is_invalid = in_range("truth", tags.masked_fill(~has_tag, 0), num_tags, str(IGNORED_TAG))
    sites = Sites.of(has_tag, is_full=is_on_host(has_tag) and bool(has_tag.all()))
    dtype = compute_dtype(emissions)
    chain = Chain(*(part.to(dtype) for part in structure))
    return ChainBatch(emissions.to(dtype), chain, tags, sites), None if is_invalid is None else is_invalid.any(0)


def _draw(
    proposal: SequenceProposal, center: Tensor, batch: ChainBatch, num_samples: int, generator: torch.Generator | None
) -> Draws:
    tags = proposal.sample(center, batch.sites, batch.num_tags, num_samples, generator)
    return Draws(tags, proposal.log_prob(tags, center, batch.sites, batch.num_tags))


def _check_proposal(name: str, proposal: OutputProposal | None) -> SequenceProposal | None:
    if proposal is not None and not isinstance(proposal, SequenceProposal):
        advice = "for example linearcore.proposals.sequences.UniformSequences()"
        raise TypeError(complaint(name, "be a `SequenceProposal`", type(proposal).__name__, advice))
    return proposal
