"""The multi-class loss with sampled negative classes."""

import torch
from torch import Tensor

from linearcore._checks import complaint, floating, in_range, nan_where, shape
from linearcore._reduce import check_reduction, reduce_losses
from linearcore._typing import Reduction, compute_dtype, result_dtype
from linearcore.forms import Form
from linearcore.kernels import entries
from linearcore.losses._infinite import mark_infinite
from linearcore.losses._multiclass import DEFAULT_SURROGATE, check_form
from linearcore.proposals import Proposal, check_num_samples
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
) -> Tensor:
    """Estimates `multiclass_loss` of hidden @ linear_weight.T + linear_bias from sampled negatives, for very many classes.

    Only the scores of sampled classes are computed. With `sparse` the gradients of weight and bias are sparse, so the time
    of a step with torch.optim.SGD or SparseAdam does not depend on the number of classes. In the formulas, k runs over the K
    sampled classes, and weight_k is the importance weight of class k.

        pairwise   Σ_k weight_k φ(s_y − s_k)                  unbiased for `multiclass_loss(form="pairwise")`
        logodds    φ(s_y − log Σ_k weight_k e^{s_k})          bias O(1/K) for form="logodds"; see `proposals.InBatch`

    Args:
        hidden: (N, d) inputs of the last layer.
        linear_weight: (C, d), as in nn.Linear.
        target: (N) class indices.
        proposal: distribution of the sampled classes; see `linearcore.proposals`.
        num_samples: K, number of samples per row, or per batch if the proposal shares them.
        linear_bias: (C) bias, or None.
        surrogate, form, normalize: as in `multiclass_loss`. "centered" is an error, because it needs all classes.
        sample_weight, ignore_index, reduction: as in `multiclass_loss`.
        sparse: return sparse gradients for weight and bias; needs an optimiser that supports them.
        generator: random generator on the device of `hidden`; None: torch's default.

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
    check_num_samples(num_samples)
    form = check_form(form, normalize, surrogate)
    if not isinstance(proposal, Proposal):
        advice = "pass linearcore.proposals.Uniform(), for example"
        raise TypeError(complaint("proposal", "be a `Proposal`", type(proposal).__name__, advice))
    if hidden.dim() != 2:
        raise ValueError(complaint("hidden", "have shape (N, d)", tuple(hidden.shape), "flatten the leading dimensions"))
    floating("linear_weight", linear_weight, "pass the weight of the last layer, as in nn.Linear")
    num_classes = linear_weight.shape[0] if linear_weight.dim() else 1
    shape("linear_weight", linear_weight, (num_classes, hidden.shape[1]), "rows are classes, as in nn.Linear")
    shape("target", target, (hidden.shape[0],), "pass one class per row of `hidden`")
    if linear_bias is not None:
        shape("linear_bias", linear_bias, (num_classes,), "pass one value per class")
    if sample_weight is not None:
        shape("sample_weight", sample_weight, (hidden.shape[0],), "pass one value per row of `hidden`")

    if target.is_floating_point() or target.is_complex() or target.dtype == torch.bool:
        raise TypeError(complaint("target", "be integer class indices", target.dtype, "convert it with `.long()`"))
    index = target.long()  # Before the comparison, because unsigned types cannot represent −100.
    is_counted = index != ignore_index
    index, is_out_of_range = in_range("target", index.masked_fill(~is_counted, 0), num_classes, "equal to `ignore_index`")
    sample = proposal.candidates(index, num_classes, num_samples, generator)
    label_scores, scores = class_scores(hidden, linear_weight, linear_bias, index, sample.index, sparse=sparse)
    losses = form.sampled_losses(surrogate, label_scores, scores, sample.log_weight, num_classes)
    losses = mark_infinite(nan_where(losses, is_out_of_range), label_scores.masked_fill(~is_counted, 0.0))
    return reduce_losses(losses, sample_weight, is_counted, reduction).to(result_dtype(hidden))


def class_scores(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor, candidates: Tensor, *, sparse: bool
) -> tuple[Tensor, Tensor]:
    """Returns the scores (N,) of `labels` (N,) and (N, K) of `candidates`, (N, K) or (1, K); float32 for half precisions.

    Products are computed in the dtype of `hidden`, as in nn.Linear. The gradients of weight and bias are one sparse tensor
    each.
    """
    dtype = compute_dtype(hidden)
    rows = hidden.shape[0]
    classes = torch.cat([labels, candidates.reshape(-1)])
    class_weights = entries(weight, classes, sparse=sparse)
    label_weights, candidate_weights = class_weights[:rows], class_weights[rows:]
    label_scores = (hidden.to(dtype) * label_weights.to(dtype)).sum(-1)
    if candidates.shape[0] == 1:
        scores = (hidden @ candidate_weights.to(hidden.dtype).t()).to(dtype)
    else:
        candidate_weights = candidate_weights.view(*candidates.shape, hidden.shape[1]).to(hidden.dtype)
        scores = torch.einsum("nd,nkd->nk", hidden, candidate_weights).to(dtype)
    if bias is None:
        return label_scores, scores
    class_bias = entries(bias, classes, sparse=sparse).to(dtype)
    return label_scores + class_bias[:rows], scores + class_bias[rows:].view(candidates.shape)
