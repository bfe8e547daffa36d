"""One step of stochastic gradient descent on a linear tagger, gradients written out and parameters changed in place.

    h(x, y) = start[y_1] + Σ_j (W x_j + b)[y_j] + Σ_{j>1} transitions[y_{j−1}, y_j] + end[y_L]

With one chain of twenty positions a step through modules, autograd and an optimiser is nearly all overhead, which is the
same for every method. Written out, and compiled where there is a compiler, what is left is the work in which methods differ.
Each function does what a step of torch.optim.SGD on the mean loss of the head of the same name does; the tests compare.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from linearcore.kernels import viterbi
from linearcore.structures import Chain, Sites
from linearcore.surrogates import Surrogate


class Parameters(NamedTuple):
    """Of a linear tagger: weight (|Y|, d), bias, start and end (|Y|,), transitions (|Y|, |Y|)."""

    weight: Tensor
    bias: Tensor
    start: Tensor
    transitions: Tensor
    end: Tensor

    @classmethod
    def zeros(cls, num_tags: int, inputs: int, device: str) -> "Parameters":
        """Where all training starts: the losses are convex."""
        sizes = ((num_tags, inputs), (num_tags,), (num_tags,), (num_tags, num_tags), (num_tags,))
        return cls(*(torch.zeros(size, device=device) for size in sizes))


#: Scores further below the best than this count as this far below it, so that products stay above float32's least number.
LEAST = -35.0
#: (parameters, inputs (L, B, d), tags (L, B), rate (), candidates (K,) or None): changes the parameters.
Step = Callable[[Parameters, Tensor, Tensor, Tensor, Tensor | None], None]


def all_candidates(phi: Surrogate, form: str) -> Step:
    """`LinearCoreChain` over all tags, form "logodds" or "pairwise"."""

    def step(now: Parameters, inputs: Tensor, tags: Tensor, rate: Tensor, candidates: Tensor | None = None) -> None:
        batch = tags.shape[1]
        scores = inputs @ now.weight.t() + now.bias
        scores[1:] += now.transitions[tags[:-1]]
        scores[:-1] += now.transitions.t()[tags[1:]]
        scores[0] += now.start
        scores[-1] += now.end
        own = tags.unsqueeze(-1)
        truth = scores.gather(-1, own)
        if form == "logodds":
            scores.scatter_(-1, own, -torch.inf)
            peak = scores.amax(-1, keepdim=True)
            change = (scores - peak).exp()
            total = change.sum(-1, keepdim=True)
            slope = phi._derivative(truth - peak - total.log())
            change *= -slope / total
        else:
            change = -phi._derivative(truth - scores)
            change.scatter_(-1, own, 0.0)
            slope = -change.sum(-1, keepdim=True)
        change.scatter_(-1, own, slope)
        change *= -rate / batch
        _add_unary(now, inputs, change)
        # A site's score has one entry from the row of the tag before it and one from the column of the tag after.
        num_tags = change.shape[-1]
        now.transitions.index_add_(0, tags[:-1].reshape(-1), change[1:].reshape(-1, num_tags))
        now.transitions.t().index_add_(0, tags[1:].reshape(-1), change[:-1].reshape(-1, num_tags))

    return step


def sampled(phi: Surrogate, form: str) -> Step:
    """`LinearCoreChain.sampled_loss` with K uniform candidates that all sites share."""

    def step(now: Parameters, inputs: Tensor, tags: Tensor, rate: Tensor, candidates: Tensor | None = None) -> None:
        assert candidates is not None
        batch, num_tags = tags.shape[1], len(now.bias)
        rows, truth = inputs.reshape(-1, inputs.shape[-1]), tags.reshape(-1)
        # (L·B, 1 + K): the true tag first.
        picked = torch.cat([truth.unsqueeze(-1), candidates.expand(len(truth), -1)], -1)
        unary = torch.cat([(rows * now.weight[truth]).sum(-1, keepdim=True), rows @ now.weight[candidates].t()], -1)
        scores = (unary + now.bias[picked]).view(*tags.shape, -1)
        picked = picked.view(scores.shape)
        before, after = tags[:-1].unsqueeze(-1).expand_as(picked[1:]), tags[1:].unsqueeze(-1).expand_as(picked[1:])
        scores[1:] += now.transitions[before, picked[1:]]
        scores[:-1] += now.transitions[picked[:-1], after]
        scores[0] += now.start[picked[0]]
        scores[-1] += now.end[picked[-1]]
        counts = picked[..., 1:] != picked[..., :1]  # A draw of the truth is no candidate.
        change = _sampled_change(phi, form, scores, counts, num_tags) * (-rate / batch)
        flat = change.view(len(truth), -1)
        now.weight.index_add_(0, truth, flat[:, :1] * rows)
        now.weight.index_add_(0, candidates, flat[:, 1:].t() @ rows)
        now.bias.index_put_((picked,), change, accumulate=True)
        now.start.index_put_((picked[0],), change[0], accumulate=True)
        now.end.index_put_((picked[-1],), change[-1], accumulate=True)
        now.transitions.index_put_((before, picked[1:]), change[1:], accumulate=True)
        now.transitions.index_put_((picked[:-1], after), change[:-1], accumulate=True)

    return step


def _sampled_change(phi: Surrogate, form: str, scores: Tensor, counts: Tensor, num_tags: int) -> Tensor:
    """The loss's derivative by `scores` (L, B, 1 + K), the true tag's first; each draw stands for |Y|/K tags."""
    truth, others = scores[..., :1], scores[..., 1:]
    weight = num_tags / others.shape[-1]
    if form == "pairwise":
        of_others = -phi._derivative(truth - others) * counts * weight
        return torch.cat([-of_others.sum(-1, keepdim=True), of_others], -1)
    # Where every draw is the truth there is nothing to lose to: with a large number for −inf, φ' is 0 and nothing is NaN.
    others = others.masked_fill(~counts, -1e30)
    against = others.logsumexp(-1, keepdim=True)
    log_weight = torch.as_tensor(weight, dtype=scores.dtype).log()
    slope = phi._derivative(truth - against - log_weight)
    return torch.cat([slope, (others - against).exp() * -slope], -1)


def structured_svm(length: int) -> Step:
    """`ChainSSVM` with Hamming cost: the rival that gains most, by exact search."""

    def step(now: Parameters, inputs: Tensor, tags: Tensor, rate: Tensor, candidates: Tensor | None = None) -> None:
        batch = tags.shape[1]
        # A wrong tag costs 1; shifted by that, a right one gains it.
        costly = inputs @ now.weight.t() + now.bias
        costly.scatter_add_(-1, tags.unsqueeze(-1), costly.new_full((*tags.shape, 1), -1.0))
        sites = Sites.of(torch.ones_like(tags, dtype=torch.bool), is_full=True)
        rival, _ = viterbi(costly, Chain(now.start, now.transitions, now.end), sites)
        # The truth is among the rivals, so that the hinge is never below its knee.
        for path, sign in ((rival, -1.0), (tags, 1.0)):
            by = sign * rate / batch
            flat = path.reshape(-1)
            now.weight.index_add_(0, flat, inputs.reshape(len(flat), -1) * by)
            now.bias.index_add_(0, flat, by.expand(len(flat)))
            now.start.index_add_(0, path[0], by.expand(batch))
            now.end.index_add_(0, path[-1], by.expand(batch))
            pairs = (path[:-1].reshape(-1), path[1:].reshape(-1))
            now.transitions.index_put_(pairs, by.expand(len(pairs[0])), accumulate=True)

    return step


def random_field(length: int) -> Step:
    """`ChainCRF` by the scaled recursion forward and backward."""

    def step(now: Parameters, inputs: Tensor, tags: Tensor, rate: Tensor, candidates: Tensor | None = None) -> None:
        batch, num_tags = tags.shape[1], len(now.bias)
        emissions = inputs @ now.weight.t() + now.bias
        emissions[0] += now.start
        emissions[-1] += now.end
        likely = (emissions - emissions.amax(-1, keepdim=True)).clamp(min=LEAST).exp()
        links = (now.transitions - now.transitions.amax()).clamp(min=LEAST).exp()
        ahead, behind = [_share(likely[0])], [torch.ones_like(likely[0])]
        for j in range(1, length):
            ahead.append(_share((ahead[-1] @ links) * likely[j]))
            behind.append(_share((behind[-1] * likely[length - j]) @ links.t()))
        alpha, beta = torch.stack(ahead), torch.stack(behind[::-1])
        own = tags.unsqueeze(-1)
        change = _share(alpha * beta)
        change.scatter_add_(-1, own, -torch.ones_like(own, dtype=change.dtype))
        change *= -rate / batch
        _add_unary(now, inputs, change)
        onward = likely[1:] * beta[1:]
        evidence = ((alpha[:-1] @ links) * onward).sum(-1, keepdim=True)
        pairs = (alpha[:-1] / evidence).reshape(-1, num_tags).t() @ onward.reshape(-1, num_tags)
        now.transitions.sub_(pairs * links * (rate / batch))
        seen = (tags[:-1].reshape(-1), tags[1:].reshape(-1))
        now.transitions.index_put_(seen, (rate / batch).expand(len(seen[0])), accumulate=True)

    return step


def _share(values: Tensor) -> Tensor:
    return values / values.sum(-1, keepdim=True)


def _add_unary(now: Parameters, inputs: Tensor, change: Tensor) -> None:
    """Adds what a `change` (L, B, |Y|) of the sites' scores means for all but the transitions."""
    num_tags = change.shape[-1]
    flat = change.reshape(-1, num_tags)
    now.weight.addmm_(flat.t(), inputs.reshape(-1, inputs.shape[-1]))
    now.bias.add_(flat.sum(0))
    now.start.add_(change[0].sum(0))
    now.end.add_(change[-1].sum(0))
