"""The multi-class loss with sampled competitors."""

import torch
from torch import Tensor

from linearcore._checks import complaint, floating, in_range, nan_where, shape
from linearcore._reduce import check_reduction, reduce_losses
from linearcore._typing import Reduction, compute_dtype, result_dtype
from linearcore.forms import Form
from linearcore.kernels import entries
from linearcore.losses._multiclass import DEFAULT_SURROGATE, checked_form
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
    sparse: bool = True,
    generator: torch.Generator | None = None,
) -> Tensor:
    """`multiclass_loss` of hidden @ linear_weight.T + linear_bias, from a few sampled competitors: for very many classes.

    The scores of all classes are never made, and with `sparse` the gradients of weight and bias are sparse, so that a step
    with torch.optim.SGD or SparseAdam costs the same for a thousand classes and for a million.

        pairwise   Σ_k weight_k φ(s_y − s_k)                  unbiased for `multiclass_loss(form="pairwise")`
        logodds    φ(s_y − log Σ_k weight_k e^{s_k})          biased for form="logodds", O(1/K); see `proposals.InBatch`

    Args:
        hidden: (N, d) inputs of the last layer.
        linear_weight: (C, d), as in nn.Linear.
        target: (N) class indices.
        proposal: where competitors come from; see `linearcore.proposals`.
        num_samples: K, draws a row, or for the whole batch where the proposal shares them.
        linear_bias: (C).
        surrogate, form, normalize: as in `multiclass_loss`; "centered" is refused, since it needs the mean over all classes.
        sample_weight, ignore_index, reduction: as in `multiclass_loss`.
        sparse: sparse gradients of weight and bias.
        generator: of random numbers, on the device of `hidden`; None takes torch's own.

    Returns:
        A scalar, or (N) with reduction="none".

    Raises:
        ValueError, TypeError: if shapes, dtypes or options do not fit.

    Example:
        >>> from linearcore.proposals import Uniform
        >>> layer = torch.nn.Linear(16, 100_000)
        >>> hidden, target = torch.randn(8, 16), torch.randint(100_000, (8,))
        >>> loss = sampled_multiclass_loss(
        ...     hidden, layer.weight, target, linear_bias=layer.bias, proposal=Uniform(), num_samples=64
        ... )
        >>> loss.backward()
        >>> layer.weight.grad.is_sparse
        True

    Cost: time O(N·K·d), memory O(N·K + (N + K)·d), both for any number of classes; without `shared` draws O(N·K·d) memory.
    """
    floating("hidden", hidden, "pass what goes into the last layer")
    check_reduction(reduction)
    check_num_samples(num_samples)
    form = checked_form(form, normalize, surrogate)
    if not isinstance(proposal, Proposal):
        advice = "for example linearcore.proposals.Uniform()"
        raise TypeError(complaint("proposal", "be a `Proposal`", type(proposal).__name__, advice))
    if hidden.dim() != 2:
        raise ValueError(complaint("hidden", "have shape (N, d)", tuple(hidden.shape), "flatten what is in front of d"))
    floating("linear_weight", linear_weight, "pass the weight of the last layer, as in nn.Linear")
    num_classes = linear_weight.shape[0] if linear_weight.dim() else 1
    shape("linear_weight", linear_weight, (num_classes, hidden.shape[1]), "rows are classes, as in nn.Linear")
    shape("target", target, (hidden.shape[0],), "give one class for every row of `hidden`")
    if linear_bias is not None:
        shape("linear_bias", linear_bias, (num_classes,), "give one number for every class")
    if sample_weight is not None:
        shape("sample_weight", sample_weight, (hidden.shape[0],), "give one number for every row of `hidden`")

    if target.is_floating_point() or target.is_complex() or target.dtype == torch.bool:
        raise TypeError(complaint("target", "be integer class indices", target.dtype, "convert it with `.long()`"))
    index = target.long()  # First of all: −100 is no number of an unsigned type.
    counted = index != ignore_index
    index, wrong = in_range("target", index.masked_fill(~counted, 0), num_classes, "equal to `ignore_index`")
    picked = proposal.candidates(index, num_classes, num_samples, generator)
    own, others = class_scores(hidden, linear_weight, linear_bias, index, picked.index, sparse=sparse)
    losses = nan_where(form.sampled_losses(surrogate, own, others, picked.log_weight, num_classes), wrong)
    return reduce_losses(losses, sample_weight, counted, reduction).to(result_dtype(hidden))


def class_scores(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, own: Tensor, others: Tensor, *, sparse: bool
) -> tuple[Tensor, Tensor]:
    """Scores of some classes: (N,) of `own` (N,), and (N, K) of `others` (N, K) or (1, K), float32 for half precisions.

    Products are taken in the dtype of `hidden`, as a last layer would; the gradients of weight and bias are one sparse
    tensor each.
    """
    dtype = compute_dtype(hidden)
    rows = hidden.shape[0]
    classes = torch.cat([own, others.reshape(-1)])
    looked_up = entries(weight, classes, sparse=sparse)
    ours, theirs = looked_up[:rows], looked_up[rows:]
    own_scores = (hidden.to(dtype) * ours.to(dtype)).sum(-1)
    if others.shape[0] == 1:
        other_scores = (hidden @ theirs.to(hidden.dtype).t()).to(dtype)
    else:
        theirs = theirs.view(*others.shape, hidden.shape[1]).to(hidden.dtype)
        other_scores = torch.einsum("nd,nkd->nk", hidden, theirs).to(dtype)
    if bias is None:
        return own_scores, other_scores
    offsets = entries(bias, classes, sparse=sparse).to(dtype)
    return own_scores + offsets[:rows], other_scores + offsets[rows:].view(others.shape)
