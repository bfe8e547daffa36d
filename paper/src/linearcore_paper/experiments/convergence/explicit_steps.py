"""One SGD step on a linear tagger with explicit gradients; parameters are updated in place.

    h(x, y) = start[y_1] + Σ_j (W x_j + b)[y_j] + Σ_{j>1} transitions[y_{j−1}, y_j] + end[y_L]

With one sequence of twenty positions a step with modules, autograd and an optimiser is mostly overhead, equal for every
method. Explicit gradients, compiled if there is a compiler, leave only the work in which methods differ. Each function is
equivalent to a step of torch.optim.SGD on the mean loss of the corresponding head; the tests compare both.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from linearcore.kernels import viterbi
from linearcore.structures import Chain, Sites
from linearcore.surrogates import Surrogate


class Parameters(NamedTuple):
    """Parameters of a linear tagger: weight (|Y|, d), bias, start and end (|Y|,), transitions (|Y|, |Y|)."""

    weight: Tensor
    bias: Tensor
    start: Tensor
    transitions: Tensor
    end: Tensor

    @classmethod
    def zeros(cls, num_tags: int, inputs: int, device: str) -> "Parameters":
        """Returns zeros, the initial value of all training runs; the losses are convex."""
        sizes = ((num_tags, inputs), (num_tags,), (num_tags,), (num_tags, num_tags), (num_tags,))
        return cls(*(torch.zeros(size, device=device) for size in sizes))


#: Scores relative to the best are clamped at this value, which avoids float32 underflow in products.
MIN_LOG = -35.0
#: (parameters, inputs (L, B, d), tags (L, B), learning rate (), candidates (K,) or None): updates the parameters.
Step = Callable[[Parameters, Tensor, Tensor, Tensor, Tensor | None], None]


def all_candidates(phi: Surrogate, form: str) -> Step:
    """Returns a step of `LinearCoreChain` over all tags, with form "logodds" or "pairwise"."""

    def step(parameters: Parameters, inputs: Tensor, tags: Tensor, rate: Tensor, candidates: Tensor | None = None) -> None:
        batch = tags.shape[1]
        scores = inputs @ parameters.weight.t() + parameters.bias
        scores[1:] += parameters.transitions[tags[:-1]]
        scores[:-1] += parameters.transitions.t()[tags[1:]]
        scores[0] += parameters.start
        scores[-1] += parameters.end
        index = tags.unsqueeze(-1)
        true_score = scores.gather(-1, index)
        if form == "logodds":
            scores.scatter_(-1, index, -torch.inf)
            peak = scores.amax(-1, keepdim=True)
            change = (scores - peak).exp()
            total = change.sum(-1, keepdim=True)
            slope = phi.derivative(true_score - peak - total.log())
            change *= -slope / total
        else:
            change = -phi.derivative(true_score - scores)
            change.scatter_(-1, index, 0.0)
            slope = -change.sum(-1, keepdim=True)
        change.scatter_(-1, index, slope)
        change *= -rate / batch
        _add_unary(parameters, inputs, change)
        # The score of a position uses the transition row of the previous tag and the column of the next tag.
        num_tags = change.shape[-1]
        parameters.transitions.index_add_(0, tags[:-1].reshape(-1), change[1:].reshape(-1, num_tags))
        parameters.transitions.t().index_add_(0, tags[1:].reshape(-1), change[:-1].reshape(-1, num_tags))

    return step


def sampled(phi: Surrogate, form: str) -> Step:
    """Returns a step of `LinearCoreChain.sampled_loss` with K uniform candidates shared by all positions."""

    def step(parameters: Parameters, inputs: Tensor, tags: Tensor, rate: Tensor, candidates: Tensor | None = None) -> None:
        assert candidates is not None
        batch, num_tags = tags.shape[1], len(parameters.bias)
        rows, true_tags = inputs.reshape(-1, inputs.shape[-1]), tags.reshape(-1)
        # (L·B, 1 + K): the true tag first.
        picked = torch.cat([true_tags.unsqueeze(-1), candidates.expand(len(true_tags), -1)], -1)
        unary = torch.cat(
            [(rows * parameters.weight[true_tags]).sum(-1, keepdim=True), rows @ parameters.weight[candidates].t()], -1
        )
        scores = (unary + parameters.bias[picked]).view(*tags.shape, -1)
        picked = picked.view(scores.shape)
        before, after = tags[:-1].unsqueeze(-1).expand_as(picked[1:]), tags[1:].unsqueeze(-1).expand_as(picked[1:])
        scores[1:] += parameters.transitions[before, picked[1:]]
        scores[:-1] += parameters.transitions[picked[:-1], after]
        scores[0] += parameters.start[picked[0]]
        scores[-1] += parameters.end[picked[-1]]
        counts = picked[..., 1:] != picked[..., :1]  # A sample equal to the true tag is not a candidate.
        change = _sampled_change(phi, form, scores, counts, num_tags) * (-rate / batch)
        flat = change.view(len(true_tags), -1)
        parameters.weight.index_add_(0, true_tags, flat[:, :1] * rows)
        parameters.weight.index_add_(0, candidates, flat[:, 1:].t() @ rows)
        parameters.bias.index_put_((picked,), change, accumulate=True)
        parameters.start.index_put_((picked[0],), change[0], accumulate=True)
        parameters.end.index_put_((picked[-1],), change[-1], accumulate=True)
        parameters.transitions.index_put_((before, picked[1:]), change[1:], accumulate=True)
        parameters.transitions.index_put_((picked[:-1], after), change[:-1], accumulate=True)

    return step


def _sampled_change(phi: Surrogate, form: str, scores: Tensor, counts: Tensor, num_tags: int) -> Tensor:
    """Returns the derivative of the loss by `scores` (L, B, 1 + K), the true tag first; each sample has weight |Y|/K."""
    true_score, others = scores[..., :1], scores[..., 1:]
    weight = num_tags / others.shape[-1]
    if form == "pairwise":
        of_others = -phi.derivative(true_score - others) * counts * weight
        return torch.cat([-of_others.sum(-1, keepdim=True), of_others], -1)
    # If every sample is the true tag there is no candidate: −1e30 in place of −inf gives φ' = 0 without NaN.
    others = others.masked_fill(~counts, -1e30)
    against = others.logsumexp(-1, keepdim=True)
    log_weight = torch.as_tensor(weight, dtype=scores.dtype).log()
    slope = phi.derivative(true_score - against - log_weight)
    return torch.cat([slope, (others - against).exp() * -slope], -1)


def structured_svm(length: int) -> Step:
    """Returns a step of `ChainSSVM` with Hamming cost; exact search finds the most violating sequence."""

    def step(parameters: Parameters, inputs: Tensor, tags: Tensor, rate: Tensor, candidates: Tensor | None = None) -> None:
        batch = tags.shape[1]
        # Subtracting 1 from the true tag is equivalent to adding cost 1 to every wrong tag.
        augmented = inputs @ parameters.weight.t() + parameters.bias
        augmented.scatter_add_(-1, tags.unsqueeze(-1), augmented.new_full((*tags.shape, 1), -1.0))
        sites = Sites.of(torch.ones_like(tags, dtype=torch.bool), is_full=True)
        violating, _ = viterbi(augmented, Chain(parameters.start, parameters.transitions, parameters.end), sites)
        # The search includes the true sequence, so the hinge is never negative.
        for path, sign in ((violating, -1.0), (tags, 1.0)):
            step_size = sign * rate / batch
            flat = path.reshape(-1)
            parameters.weight.index_add_(0, flat, inputs.reshape(len(flat), -1) * step_size)
            parameters.bias.index_add_(0, flat, step_size.expand(len(flat)))
            parameters.start.index_add_(0, path[0], step_size.expand(batch))
            parameters.end.index_add_(0, path[-1], step_size.expand(batch))
            pairs = (path[:-1].reshape(-1), path[1:].reshape(-1))
            parameters.transitions.index_put_(pairs, step_size.expand(len(pairs[0])), accumulate=True)

    return step


def random_field(length: int) -> Step:
    """Returns a step of `ChainCRF` with the rescaled forward–backward recursion."""

    def step(parameters: Parameters, inputs: Tensor, tags: Tensor, rate: Tensor, candidates: Tensor | None = None) -> None:
        batch, num_tags = tags.shape[1], len(parameters.bias)
        emissions = inputs @ parameters.weight.t() + parameters.bias
        emissions[0] += parameters.start
        emissions[-1] += parameters.end
        factors = (emissions - emissions.amax(-1, keepdim=True)).clamp(min=MIN_LOG).exp()
        links = (parameters.transitions - parameters.transitions.amax()).clamp(min=MIN_LOG).exp()
        forward, backward = [_normalize(factors[0])], [torch.ones_like(factors[0])]
        for j in range(1, length):
            forward.append(_normalize((forward[-1] @ links) * factors[j]))
            backward.append(_normalize((backward[-1] * factors[length - j]) @ links.t()))
        alpha, beta = torch.stack(forward), torch.stack(backward[::-1])
        index = tags.unsqueeze(-1)
        change = _normalize(alpha * beta)
        change.scatter_add_(-1, index, -torch.ones_like(index, dtype=change.dtype))
        change *= -rate / batch
        _add_unary(parameters, inputs, change)
        onward = factors[1:] * beta[1:]
        evidence = ((alpha[:-1] @ links) * onward).sum(-1, keepdim=True)
        pairs = (alpha[:-1] / evidence).reshape(-1, num_tags).t() @ onward.reshape(-1, num_tags)
        parameters.transitions.sub_(pairs * links * (rate / batch))
        seen = (tags[:-1].reshape(-1), tags[1:].reshape(-1))
        parameters.transitions.index_put_(seen, (rate / batch).expand(len(seen[0])), accumulate=True)

    return step


def _normalize(values: Tensor) -> Tensor:
    return values / values.sum(-1, keepdim=True)


def _add_unary(parameters: Parameters, inputs: Tensor, change: Tensor) -> None:
    """Updates all parameters but the transitions, given the `change` (L, B, |Y|) of the scores."""
    num_tags = change.shape[-1]
    flat = change.reshape(-1, num_tags)
    parameters.weight.addmm_(flat.t(), inputs.reshape(-1, inputs.shape[-1]))
    parameters.bias.add_(flat.sum(0))
    parameters.start.add_(change[0].sum(0))
    parameters.end.add_(change[-1].sum(0))
