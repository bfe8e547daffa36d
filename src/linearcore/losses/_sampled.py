"""The multi-class loss with sampled negative classes, and the variance that the samples add."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from linearcore._checks import floating
from linearcore._reduce import check_reduction, reduce_losses
from linearcore._typing import Reduction, result_dtype
from linearcore.forms import Form
from linearcore.losses._multiclass import DEFAULT_SURROGATE, check_form
from linearcore.losses._sampled_batch import SampledBatch
from linearcore.proposals import Proposal
from linearcore.surrogates import Surrogate


def sampled_multiclass_loss(
    hidden: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    proposal: Proposal,
    num_samples: int,
    linear_bias: Tensor | None = None,
    surrogate: Surrogate = DEFAULT_SURROGATE,
    form: str | Form = "logodds",
    normalize: bool | None = None,
    sample_weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    sparse: bool = False,
    generator: torch.Generator | None = None,
    backend: str = "auto",
) -> Tensor:
    """Estimates `multiclass_loss` of hidden @ linear_weight.T + linear_bias from sampled negatives, for very many classes.

    Only the scores of sampled classes are computed. With `sparse` the gradients of weight and bias are sparse, so the time
    of a step with SGD, SparseAdam or `SparseAdamW` does not depend on the number of classes. In the formulas, k runs over
    the K sampled classes, and w_k is the importance weight of class k.

        pairwise   Σ_k w_k φ(s_y − s_k)                  unbiased for `multiclass_loss(form="pairwise")`
        logodds    φ(s_y − log Σ_k w_k e^{s_k})          estimates form="logodds" with a bias of O(1/K)

    `proposals.InBatch` has a smaller bias, because the classes of the batch are always included.

    Args:
        hidden: (N, d) inputs of the last layer.
        linear_weight: (C, d), as in nn.Linear.
        target: (N) class indices.
        proposal: distribution of the sampled classes; see `linearcore.proposals`.
        num_samples: K, number of samples per batch with `proposal.shared=True` (the default), otherwise per row.
        linear_bias: (C) bias, or None.
        surrogate, form, normalize: as in `multiclass_loss`. "centered" raises, because it needs all classes.
        sample_weight, ignore_index, reduction: as in `multiclass_loss`.
        sparse: return sparse gradients for weight and bias; needs an optimiser that supports them.
        generator: random generator on the device of `hidden`; None: torch's default.
        backend: as in `multiclass_loss`. "compiled" and "fused" need `proposal.shared=True`, a built-in surrogate, and
            contiguous `hidden` and `linear_weight`.

    Returns:
        A scalar, or (N) with reduction="none".

    Raises:
        ValueError, TypeError: if an argument has an invalid shape, dtype or value.

    Example:
        >>> from linearcore.proposals import Uniform
        >>> layer = torch.nn.Linear(16, 100_000)
        >>> hidden, target = torch.randn(8, 16), torch.randint(100_000, (8,))
        >>> loss = sampled_multiclass_loss(
        ...     hidden, layer.weight, target, linear_bias=layer.bias, proposal=Uniform(), num_samples=64, sparse=True
        ... )
        >>> loss.backward()
        >>> layer.weight.grad.is_sparse
        True

    Cost: time O(N·K·d), memory O(N·K + (N + K)·d) for any number of classes; O(N·K·d) memory if samples are not shared.
    """
    floating("hidden", hidden, "pass the input of the last layer")
    check_reduction(reduction)
    batch = SampledBatch.of(
        hidden, linear_weight, linear_bias, target, sample_weight, proposal=proposal, num_samples=num_samples,
        form=check_form(form, normalize, surrogate), surrogate=surrogate, ignore_index=ignore_index, generator=generator,
    )  # fmt: skip
    return _reduce(batch.losses(backend, sparse=sparse), batch, sample_weight, reduction)


class SampledEstimate(NamedTuple):
    """A sampled loss, and how exact it is.

    Attributes:
        loss: as `sampled_multiclass_loss` returns it, differentiable.
        variance: estimated variance of `loss` over the samples, in its shape, without gradient; NaN for one sample.
        effective_sample_size: (N,): (Σ w)² / Σ w² of the samples' importance weights w, at most K: the number of equally
            weighted samples that would give the same variance. 0 if all weights are 0.
    """

    loss: Tensor
    variance: Tensor
    effective_sample_size: Tensor


def sampled_multiclass_estimate(
    hidden: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    proposal: Proposal,
    num_samples: int,
    linear_bias: Tensor | None = None,
    surrogate: Surrogate = DEFAULT_SURROGATE,
    form: str | Form = "logodds",
    normalize: bool | None = None,
    sample_weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    sparse: bool = False,
    generator: torch.Generator | None = None,
    backend: str = "auto",
) -> SampledEstimate:
    """Returns `sampled_multiclass_loss` together with an estimate of the variance that the samples add to it.

    Use it now and then during training to choose the proposal and the number of samples. If the standard deviation is small
    compared with the standard deviation of the loss across batches, more samples do not help.

    With K samples that contribute t_k to the loss, the estimate is K/(K − 1) Σ_k (t_k − mean t)². It accounts for samples
    that all rows share. It is unbiased for `pairwise`, and a first-order approximation for `logodds`, whose samples
    contribute t_k = −φ'(margin) · w_k e^{s_k} / Σ w e^s. It is too low if the proposal rarely samples classes with a large
    contribution.

    Args:
        hidden, linear_weight, target, proposal, num_samples, linear_bias, surrogate, form, normalize, sample_weight,
            ignore_index, reduction, sparse, generator, backend: as in `sampled_multiclass_loss`.

    Returns:
        `SampledEstimate(loss, variance, effective_sample_size)`.

    Example:
        >>> from linearcore.proposals import Uniform
        >>> hidden, weight, target = torch.ones(8, 2), torch.zeros(1000, 2), torch.arange(8)
        >>> estimate = sampled_multiclass_estimate(
        ...     hidden, weight, target, proposal=Uniform(), num_samples=64, generator=torch.Generator().manual_seed(0)
        ... )
        >>> estimate.effective_sample_size.tolist()  # All samples have the same weight, and none is a target.
        [64.0, 64.0, 64.0, 64.0, 64.0, 64.0, 64.0, 64.0]
        >>> float(estimate.variance) < 1e-9  # All scores are equal.
        True

    Cost: that of the loss, and once more its forward pass. No synchronisation with a GPU.
    """
    floating("hidden", hidden, "pass the input of the last layer")
    check_reduction(reduction)
    batch = SampledBatch.of(
        hidden, linear_weight, linear_bias, target, sample_weight, proposal=proposal, num_samples=num_samples,
        form=check_form(form, normalize, surrogate), surrogate=surrogate, ignore_index=ignore_index, generator=generator,
    )  # fmt: skip
    loss = _reduce(batch.losses(backend, sparse=sparse), batch, sample_weight, reduction)
    # The samples are the last candidates; those before them are always included.
    parts, log_weight = (numbers[:, -num_samples:] for numbers in batch.influences())
    scale = _row_scales(batch.is_counted, sample_weight, reduction, parts)
    if reduction == "none" or not proposal.shared:
        variance = sampling_variance(parts * scale.unsqueeze(-1))
        variance = variance if reduction == "none" else variance.sum()
    else:
        variance = sampling_variance(scale @ parts)
    return SampledEstimate(loss, variance.to(loss.dtype), effective_sample_size(log_weight))


def _reduce(losses: Tensor, batch: SampledBatch, sample_weight: Tensor | None, reduction: Reduction) -> Tensor:
    """Reduces losses (N,), which are 0 for ignored rows."""
    if sample_weight is not None:
        losses = reduce_losses(losses, sample_weight, batch.is_counted, reduction)
    elif reduction != "none":
        losses = losses.sum()
        losses = losses / batch.is_counted.sum() if reduction == "mean" else losses
    return losses.to(result_dtype(batch.hidden))


def _row_scales(is_counted: Tensor, sample_weight: Tensor | None, reduction: Reduction, parts: Tensor) -> Tensor:
    """Returns the factors (N,) of the rows' losses in the reduced loss."""
    scale = is_counted.to(parts.dtype)
    if sample_weight is not None:
        scale = sample_weight.detach().to(parts.dtype).masked_fill(~is_counted, 0.0)
    return scale / scale.sum() if reduction == "mean" else scale


def sampling_variance(parts: Tensor) -> Tensor:
    """Returns the estimated variance (…) of the sum of K independent, equally distributed parts (…, K); NaN for K = 1."""
    num_samples = parts.shape[-1]
    factor = num_samples / (num_samples - 1) if num_samples > 1 else math.nan
    return factor * (parts - parts.mean(-1, keepdim=True)).square().sum(-1)


def effective_sample_size(log_weight: Tensor) -> Tensor:
    """Returns (Σ w)² / Σ w² (…) of log weights (…, K); 0 if all weights are 0."""
    size = (2 * log_weight.logsumexp(-1) - (2 * log_weight).logsumexp(-1)).exp()
    return torch.where(log_weight.isneginf().all(-1), 0.0, size)
