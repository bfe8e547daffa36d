"""Local scores of sampled candidates from hidden states, without any tensor of size |Y|."""

import math
from types import ModuleType
from typing import NamedTuple

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.forms import Form, tensor_attributes
from linearcore.heads._batch import IGNORED_TAG
from linearcore.kernels import (
    EdgeFactors,
    SampledRows,
    can_compile_sampled,
    entries,
    resolve_backend,
    sampled_kernels,
    sampled_rows,
)
from linearcore.losses import class_scores, product_dtype, sampling_variance
from linearcore.proposals import Candidates, mask_targets
from linearcore.structures import Sites
from linearcore.surrogates import Surrogate

#: Two tensors, for example values (N, 1) of the true tags and (N, K) of the candidates.
Pair = tuple[Tensor, Tensor]


class Neighbours(NamedTuple):
    """Neighbouring tags of every position of a batch, as rows N = L·B.

    Attributes:
        before, after: (N,) tags of the neighbours; arbitrary if there is no neighbour.
        is_first, is_last: (N, 1) booleans.
    """

    before: Tensor
    after: Tensor
    is_first: Tensor
    is_last: Tensor

    @classmethod
    def of(cls, tags: Tensor, sites: Sites) -> "Neighbours":
        """Returns the neighbours of true tags (L, B)."""
        is_edge = (flag.reshape(-1, 1) for flag in (sites.is_first, sites.is_last))
        return cls(sites.before(tags).reshape(-1), sites.after(tags).reshape(-1), *is_edge)


class Edges(NamedTuple):
    """Parameters of a chain, with the transitions as one matrix or as factors.

    Attributes:
        start, end: (|Y|,).
        transitions: (|Y|, |Y|), or None if `factors` is set.
        factors: two (|Y|, r), or None.
        allowed: booleans for start, transitions and end, or None.
    """

    start: Tensor
    end: Tensor
    transitions: Tensor | None
    factors: tuple[Tensor, Tensor] | None
    allowed: tuple[Tensor, Tensor, Tensor] | None


class SampledSites(NamedTuple):
    """The positions of a batch and their candidates.

    Attributes:
        hidden: (L·B, d), finite where masked.
        projection: weight (|Y|, d) and bias (|Y|,) or None.
        tags: (L, B) in [0, |Y|).
        sites: positions of the tags and their neighbours.
        samples: candidates for L·B rows.
        has_targets: whether they may have the true tags among them, see `Proposal.shared_samples`.
    """

    hidden: Tensor
    projection: tuple[Tensor, Tensor | None]
    tags: Tensor
    sites: Sites
    samples: Candidates
    has_targets: bool


class SiteLoss(NamedTuple):
    """What the loss of a position is, for sampled candidates.

    Attributes:
        form, surrogate: form and φ.
        unary: weight of a second loss without transitions, start and end scores.
        edges: parameters of the chain.
        sparse: sparse gradients for the parameters.
    """

    form: Form
    surrogate: Surrogate
    unary: float
    edges: Edges
    sparse: bool

    def losses(self, batch: SampledSites) -> Tensor:
        """Returns the losses (L·B,) of all positions; arbitrary where masked."""
        kernels = self._kernels(batch)
        if kernels is None:
            return self._reference(batch)
        (weight, bias), tags, sites, samples = batch.projection, batch.tags, batch.sites, batch.samples
        code, factors = self.form.sampled_code(self.surrogate), self.edges.factors
        assert code is not None and factors is not None
        target, neighbours = tags.reshape(-1).contiguous(), None
        if not sites.is_full:
            target = tags.masked_fill(~sites.mask, IGNORED_TAG).reshape(-1)
            before, after, *ends = Neighbours.of(tags, sites)
            neighbours = before, after, ends[0].view(-1).to(torch.uint8), ends[1].view(-1).to(torch.uint8)
        rows = SampledRows(
            code, weight, bias, EdgeFactors(self.edges.start, self.edges.end, *factors), target,
            samples.index.long().contiguous().view(-1), samples.log_weight.expand(len(target), -1), neighbours,
            tags.shape[1], self.unary, IGNORED_TAG,
        )  # fmt: skip

        def reference(hidden: Tensor, weight: Tensor, bias: Tensor | None, *edges: Tensor) -> Tensor:
            start, end, sources, targets = edges
            loss = self._replace(edges=self.edges._replace(start=start, end=end, factors=(sources, targets)))
            return loss._reference(batch._replace(hidden=hidden, projection=(weight, bias)))

        hidden = batch.hidden
        return sampled_rows(hidden, rows, kernels, reference, sparse=self.sparse, dtype=product_dtype(hidden))

    def _kernels(self, batch: SampledSites) -> ModuleType | None:
        """Returns the kernels for the loss, or None. They need shared candidates and low-rank transitions, unconstrained."""
        hidden, projection, samples = batch.hidden, batch.projection, batch.samples
        edges, code = self.edges, self.form.sampled_code(self.surrogate)
        if code is None or edges.factors is None or edges.allowed is not None or len(samples.index) != 1:
            return None
        parameters = edges.start, edges.end, *edges.factors
        if not all(part.is_contiguous() for part in parameters):
            return None
        tensors = [tensor for tensor in (hidden, *projection, *parameters) if tensor is not None]
        can_compile = can_compile_sampled(hidden, (*projection, *parameters))
        can_fuse = all(part.dtype == torch.float32 for part in parameters)
        others = samples.log_weight, *tensor_attributes(self.form, self.surrogate)
        backend = resolve_backend("auto", tensors, others, can_fuse=can_fuse, can_compile=can_compile)
        return sampled_kernels(backend, *tensors)

    def _reference(self, batch: SampledSites) -> Tensor:
        log_weight, terms = self._terms(batch)
        losses = [
            self.form.sampled_losses(self.surrogate, *scores, log_weight, number) * factor
            for scores, number, factor in terms
        ]
        return losses[0] if len(losses) == 1 else losses[0] + losses[1]

    @torch.no_grad()
    def influences(self, batch: SampledSites) -> tuple[Tensor, Tensor]:
        """Returns what the candidates contribute to the losses, to first order, (L·B, K), 0 where masked; log weights."""
        log_weight, terms = self._terms(batch)
        parts = [
            self.form.sampled_influences(self.surrogate, *scores, log_weight, number) * factor
            for scores, number, factor in terms
        ]
        return torch.stack(parts).sum(0).masked_fill(~batch.sites.mask.reshape(-1, 1), 0.0), log_weight

    def _terms(self, batch: SampledSites) -> tuple[Tensor, list[tuple[Pair, int | Tensor, float]]]:
        """Returns the log weights, and for each term of the loss its scores, its number of classes and its factor."""
        sites, labels = batch.sites, batch.tags.reshape(-1)
        neighbours = Neighbours.of(batch.tags, sites)
        candidates = mask_targets(batch.samples, labels) if batch.has_targets else batch.samples
        log_weight = candidates.log_weight
        if not sites.is_full:  # Masked positions have no competing tags.
            log_weight = log_weight.masked_fill(~sites.mask.reshape(-1, 1), -math.inf)
        unary = class_scores(batch.hidden, *batch.projection, labels, candidates.index, sparse=self.sparse)
        edges = edge_scores(self.edges, neighbours, labels, candidates.index, unary[0].dtype, sparse=self.sparse)
        scores = unary[0] + edges[0].squeeze(-1), unary[1] + edges[1]
        num_tags = len(self.edges.start)
        number = num_candidates(self.edges, neighbours) if self.form.is_mean else num_tags
        terms: list[tuple[Pair, int | Tensor, float]] = [(scores, number, 1 - self.unary)]
        if self.unary:
            terms.append((unary, num_tags, self.unary))
        return log_weight, terms


def edge_scores(
    edges: Edges, neighbours: Neighbours, labels: Tensor, others: Tensor, dtype: torch.dtype, *, sparse: bool
) -> tuple[Tensor, Tensor]:
    """Returns transition scores: (N, 1) of the true tags `labels` (N,), and (N, K) of `others` (N, K) or (1, K).

        transitions[before, v] + transitions[v, after],   with start[v] and end[v] at the ends of a sequence

    With `sparse`, gradients are sparse: O(N·K) entries of a matrix, O(N + K) rows of factors if candidates are shared.
    """
    tags = torch.cat([labels, others.reshape(-1)])
    if edges.transitions is not None:
        before, after = _matrix_scores(edges.transitions, neighbours, labels, others, sparse=sparse, dtype=dtype)
    else:
        assert edges.factors is not None
        before, after = _factor_scores(edges.factors, neighbours, tags, others.shape, sparse=sparse, dtype=dtype)
    start, end = (_split(entries(part, tags, sparse=sparse).to(dtype), others.shape) for part in (edges.start, edges.end))
    first, last = neighbours.is_first, neighbours.is_last
    scores = [torch.where(first, start[i], before[i]) + torch.where(last, end[i], after[i]) for i in range(2)]
    if edges.allowed is not None:
        for i, candidates in enumerate((labels.unsqueeze(-1), others)):
            scores[i] = scores[i].masked_fill(~_is_allowed(edges.allowed, neighbours, candidates), -math.inf)
    return scores[0], scores[1]


def _matrix_scores(
    matrix: Tensor, neighbours: Neighbours, labels: Tensor, others: Tensor, *, sparse: bool, dtype: torch.dtype
) -> tuple[Pair, Pair]:
    """Returns scores (N, 1) and (N, K) of the transition from the previous tag, and of the one to the next tag."""
    candidates = torch.cat([labels.unsqueeze(-1), others.expand(labels.shape[0], -1)], -1)
    before, after = (tags.unsqueeze(-1).expand_as(candidates) for tags in (neighbours.before, neighbours.after))
    # Both directions in one look-up, so the gradient is one sparse tensor.
    left, right = entries(matrix, torch.stack([before, candidates]), torch.stack([candidates, after]), sparse=sparse).to(
        dtype
    )
    return (left[:, :1], left[:, 1:]), (right[:, :1], right[:, 1:])


def _factor_scores(
    factors: Pair, neighbours: Neighbours, tags: Tensor, size: torch.Size, *, sparse: bool, dtype: torch.dtype
) -> tuple[Pair, Pair]:
    """Like `_matrix_scores` for transitions = F Tᵀ; `tags` are the true tags, then the candidates with shape `size`."""
    num_rows = neighbours.before.shape[0]
    # One look-up per factor, so each gradient is one sparse tensor.
    sources = entries(factors[0], torch.cat([neighbours.before, tags]), sparse=sparse).to(dtype)
    targets = entries(factors[1], torch.cat([neighbours.after, tags]), sparse=sparse).to(dtype)
    before = _products(sources[:num_rows], targets[num_rows:], size)
    return before, _products(targets[:num_rows], sources[num_rows:], size)


def _products(neighbours: Tensor, rows: Tensor, size: torch.Size) -> Pair:
    """Returns inner products (N, 1) and (N, K) of factor rows `neighbours` (N, r) with the `rows` of the tags."""
    true_rows, others = rows[: neighbours.shape[0]], rows[neighbours.shape[0] :]
    label_products = (neighbours * true_rows).sum(-1, keepdim=True)
    if size[0] == 1:
        return label_products, neighbours @ others.t()
    return label_products, torch.einsum("nr,nkr->nk", neighbours, others.view(*size, neighbours.shape[1]))


def _split(values: Tensor, size: torch.Size) -> Pair:
    """Splits `values` into (N, 1) of the true tags and (N, K) or (1, K) of the candidates."""
    num_rows = values.shape[0] - size.numel()
    return values[:num_rows].unsqueeze(-1), values[num_rows:].view(size)


def _is_allowed(allowed: tuple[Tensor, Tensor, Tensor], neighbours: Neighbours, candidates: Tensor) -> Tensor:
    may_start, may_follow, may_end = allowed
    before, after = neighbours.before.unsqueeze(-1), neighbours.after.unsqueeze(-1)
    is_allowed = torch.where(neighbours.is_first, may_start[candidates], may_follow[before, candidates])
    return is_allowed & torch.where(neighbours.is_last, may_end[candidates], may_follow[candidates, after])


def reduced_variance(parts: Tensor, sites: Sites, reduction: str, *, is_shared: bool) -> Tensor:
    """Returns the variance of the reduced loss over the samples.

    Args:
        parts: (L, B, K), what the samples contribute to the weighted losses of the positions.
        sites: positions of the tags.
        reduction: as in `LinearCoreChain.loss`.
        is_shared: all positions have the same samples.
    """
    dimensions = 0 if reduction == "none" else (0, 1)
    variance = sampling_variance(parts.sum(dimensions)) if is_shared else sampling_variance(parts).sum(dimensions)
    if reduction == "mean":
        return variance / parts.shape[1] ** 2
    return variance / sites.mask.sum().square() if reduction == "token_mean" else variance


def num_candidates(edges: Edges, neighbours: Neighbours) -> int | Tensor:
    """Returns the number of allowed tags at each position (N,), or |Y| without constraints."""
    if edges.allowed is None:
        return len(edges.start)
    may_start, may_follow, may_end = edges.allowed
    allowed = torch.where(neighbours.is_first, may_start, may_follow[neighbours.before])
    return (allowed & torch.where(neighbours.is_last, may_end, may_follow.t()[neighbours.after])).sum(-1)


def unpack_projection(projection: object, num_tags: int, width: int) -> tuple[Tensor, Tensor | None]:
    """Returns (weight, bias) of an nn.Linear, a pair or a single weight; raises if the shapes do not fit."""
    weight: object
    bias: object
    if isinstance(projection, Tensor):
        weight, bias = projection, None
    elif isinstance(projection, tuple) and len(projection) == 2:
        weight, bias = projection
    else:
        weight, bias = getattr(projection, "weight", None), getattr(projection, "bias", None)
    advice = "pass the nn.Linear that computes the emissions, or its (weight, bias)"
    if not isinstance(weight, Tensor) or not (bias is None or isinstance(bias, Tensor)):
        raise TypeError(complaint("projection", "be an nn.Linear or its weight and bias", type(projection).__name__, advice))
    if weight.shape != (num_tags, width):
        got = tuple(weight.shape)
        raise ValueError(complaint("projection", f"map {width} features to {num_tags} tags", f"a weight of {got}", advice))
    if bias is not None and bias.shape != (num_tags,):
        got = tuple(bias.shape)
        raise ValueError(complaint("projection", f"have one bias for each of {num_tags} tags", f"a bias of {got}", advice))
    return weight, bias
