"""The multi-class loss."""

from torch import Tensor

from linearcore._checks import complaint
from linearcore._typing import Reduction
from linearcore.forms import Form, Labels, resolve_form, row_losses, tensor_attributes
from linearcore.kernels import resolve_backend
from linearcore.losses._batch import batch_loss
from linearcore.surrogates import LinearCore, Surrogate

DEFAULT_SURROGATE = LinearCore()


def multiclass_loss(
    scores: Tensor,
    target: Tensor,
    *,
    surrogate: Surrogate = DEFAULT_SURROGATE,
    form: str | Form = "logodds",
    normalize: bool | None = None,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    class_margin: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    backend: str = "auto",
    validate: bool = False,
) -> Tensor:
    """Margin loss for classification, with the arguments of torch.nn.functional.cross_entropy.

    For one sample with scores s and label y, the form defines the loss:

        pairwise   mean_{v≠y} φ(s_y − s_v)             the paper's loss (the paper uses the sum: `normalize=False`)
        centered   mean_{v≠y} φ(−(s_v − mean s))       0-1 regret ≤ constant · surrogate regret (`docs/guarantees.md`)
        logodds    φ(s_y − logsumexp_{v≠y} s_v)        accuracy close to cross-entropy (default)

    Classes with score −inf are masked out: they are neither competitors (classes v ≠ y) nor part of the mean in `centered`.

    Args:
        scores: (C), (N, C) or (N, C, d1, …, dk), any floating dtype: raw logits.
        target: class indices, (), (N) or (N, d1, …, dk), or probabilities in the shape of `scores`.
        surrogate: φ, the function of the margin, for example `LinearCore(tau=1.0)`.
        form: "pairwise", "centered", "logodds", or a `Form`.
        normalize: mean (True) or sum (False) over competitors. None: True for pairwise and centered. True is an error for
            logodds.
        weight: (C) class weights. As in torch, "mean" divides by the sum of the target weights; with probability targets by
            the number of samples.
        sample_weight: weights in the shape of the unreduced loss. "mean" divides by their sum; weight 2 equals duplicating
            the sample.
        class_margin: (C) Δ: all margins of a sample with label y are reduced by Δ_y. Use larger values for rare classes.
        ignore_index: samples with this target are ignored.
        label_smoothing: ε in [0, 1]: the target becomes (1 − ε)·target + ε/C.
        reduction: "mean", "sum" or "none".
        backend: "reference" (plain autograd), "eager" (blocks of rows, recomputed in the backward pass), "fused" (Triton,
            for logodds with index targets on a GPU), or "auto": the fastest of these; the reference under torch.compile,
            torch.func and forward-mode differentiation.
        validate: check values (labels in range, probabilities sum to 1, no NaN). Synchronises with the GPU. A label out of
            range always raises on a CPU; on a GPU without `validate` its loss is NaN.

    Returns:
        A scalar, or the unreduced loss (), (N) or (N, d1, …, dk). The dtype is that of `scores`, or float32 under autocast,
        as in F.cross_entropy. Half precisions are computed in float32.

    Raises:
        ValueError, TypeError: if an argument has an invalid shape, dtype or value; if the surrogate is two-sided with
            `centered` (the linear bound would not hold) or not monotone with `logodds` (the loss would not be convex).

    Example:
        >>> import torch
        >>> scores = torch.tensor([[2.0, 0.0, -1.0], [0.5, 0.0, 1.0]])
        >>> target = torch.tensor([0, 1])
        >>> multiclass_loss(scores, target, surrogate=LinearCore("truncated_quadratic"), form="pairwise")
        tensor(1.1250)
        >>> multiclass_loss(scores, target, reduction="none").shape
        torch.Size([2])

    Cost: time O(N·C); with probability targets or label smoothing O(N·C²) for pairwise, and for centered with
    `class_margin`. The eager backend saves `scores`, `target` and at most three values per row for the backward pass;
    temporaries are one block (2 MiB of float32 on a CPU). Double backward uses the reference, with a few N×C tensors.

    Reference: Eq. (3) of the paper for pairwise. centered and logodds are not in the paper.
    """
    form = check_form(form, normalize, surrogate)
    return batch_loss(
        lambda rows, labels: form_losses(form, surrogate, rows.scores, labels, backend),
        scores,
        target,
        weight=weight,
        sample_weight=sample_weight,
        class_margin=class_margin,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction=reduction,
        validate=validate,
    )


def form_losses(form: Form, surrogate: Surrogate, scores: Tensor, labels: Labels, backend: str) -> Tensor:
    """Returns the losses (N,) of rows, after resolving `backend` for these tensors."""
    other_inputs = (labels.probability, labels.weight, labels.margin, *tensor_attributes(form, surrogate))
    backend = resolve_backend(backend, (scores,), other_inputs, can_fuse=form.can_fuse and labels.is_hard)
    return row_losses(form, surrogate, scores, labels, backend)


def check_form(form: str | Form, normalize: bool | None, surrogate: object) -> Form:
    """Returns the form as an object; raises if it does not support the surrogate."""
    form = resolve_form(form, normalize)
    form.check(check_surrogate(surrogate))
    return form


def check_surrogate(surrogate: object) -> Surrogate:
    """Returns `surrogate`; raises if it is not a `Surrogate`."""
    if isinstance(surrogate, Surrogate):
        return surrogate
    advice = "pass linearcore.LinearCore(), for example"
    raise TypeError(complaint("surrogate", "be a `Surrogate`", type(surrogate).__name__, advice))
