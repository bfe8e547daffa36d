"""Forms over a few weighted competitors that stand for all."""

import math

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.kernels._form import FormKernel
from linearcore.kernels._logodds import LogOddsKernel
from linearcore.kernels._pairwise import PairwiseKernel


def sampled_rows(kernel: FormKernel, own: Tensor, others: Tensor, log_weight: Tensor, num_classes: int | Tensor) -> Tensor:
    """(N,): the form with Σ_{v≠y} f(s_v) replaced by Σ_k weight_k f(s_k).

        pairwise   Σ_k weight_k φ(s_y − s_k)                       unbiased for the sum over all, and so is its gradient
        logodds    φ(s_y − log Σ_k weight_k e^{s_k})               biased: the logarithm of an estimate. It errs low on the
                   competitors' side by about half the relative variance of Σ_k weight_k e^{s_k}, O(1/K)

    `centered` needs the mean score of all classes, and with it all classes: it is refused.

    Args:
        kernel: form and surrogate.
        own: (N,) scores of the labels.
        others: (N, K) scores of the candidates, float32 or float64.
        log_weight: (N, K) logarithms of their weights; −inf for one that counts for nothing.
        num_classes: n; `pairwise` with `normalize` divides by n − 1.

    Time and memory O(N·K).
    """
    if isinstance(kernel, LogOddsKernel):
        weighted = others + log_weight.to(others.dtype)
        peak = weighted.detach().amax(-1, keepdim=True)
        # Where every candidate counts for nothing there is nothing to lose to: margin +inf.
        nothing = peak == -math.inf
        peak = peak.masked_fill(nothing, 0.0)
        total = (weighted - peak).exp().sum(-1, keepdim=True).masked_fill(nothing, 1.0)
        margin = (own.unsqueeze(-1) - peak) - total.log()
        return kernel.surrogate._value(margin.masked_fill(nothing, math.inf)).squeeze(-1)
    if isinstance(kernel, PairwiseKernel):
        # A score of −inf is a class that is not there: φ(∞) need not be 0, nor its slope a number.
        idle = (log_weight == -math.inf) | (others == -math.inf)
        margin = (own.unsqueeze(-1) - others).masked_fill(idle, 0.0)
        weight = log_weight.to(others.dtype).exp().masked_fill(idle, 0.0)
        total = (weight * kernel.surrogate._value(margin)).sum(-1)
        if not kernel.normalize:
            return total
        return total / ((num_classes - 1).clamp(min=1) if isinstance(num_classes, Tensor) else max(1, num_classes - 1))
    advice = "take 'pairwise' or 'logodds', or look at all classes"
    raise ValueError(complaint("form", "not need the mean over all classes when it is sampled", "'centered'", advice))


class _Entries(torch.autograd.Function):
    """parameter[indices], with a sparse gradient: as many entries as were looked up, whatever the parameter's size."""

    @staticmethod
    def forward(ctx, parameter: Tensor, *indices: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(*indices)
        ctx.size = parameter.shape
        return parameter[indices]

    @staticmethod
    def backward(ctx, upstream: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[no-untyped-def]
        indices = torch.stack([index.reshape(-1) for index in ctx.saved_tensors])
        values = upstream.reshape(-1, *ctx.size[len(indices) :])
        gradient = torch.sparse_coo_tensor(indices, values, ctx.size, check_invariants=False)
        return gradient, *(None for _ in ctx.saved_tensors)


def entries(parameter: Tensor, *indices: Tensor, sparse: bool) -> Tensor:
    """parameter[indices] for equally shaped `indices` of its leading dimensions.

    With `sparse` the gradient is a sparse COO tensor, uncoalesced, which torch.optim.SGD and SparseAdam apply as it is: the
    cost of a step then does not depend on the parameter's size. Without, it is dense.
    """
    if not sparse:
        return parameter[indices]
    found: Tensor = _Entries.apply(parameter, *indices)  # type: ignore[no-untyped-call]
    return found
