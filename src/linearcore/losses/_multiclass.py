"""The multi-class loss."""

from torch import Tensor

from linearcore._checks import complaint
from linearcore._typing import Reduction
from linearcore.forms import (
    Form,
    Labels,
    can_compile_rows,
    can_fuse_rows,
    can_trace_rows,
    resolve_form,
    row_losses,
    tensor_attributes,
)
from linearcore.kernels import dense_loss, resolve_backend
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

        pairwise   mean_{v≠y} φ(s_y − s_v)             Eq. (3) of the paper, divided by C − 1 (`normalize=False`: the sum)
        centered   mean_{v≠y} φ(−(s_v − mean s))       0-1 regret ≤ constant · surrogate regret (`docs/guarantees.md`)
        logodds    φ(s_y − logsumexp_{v≠y} s_v)        accuracy close to cross-entropy (default)

    The default has a square-root regret bound, no linear one. Classes with score −inf are masked out: they are neither
    competitors (classes v ≠ y) nor part of the mean in `centered`. Scores of +inf or NaN, and labels whose class is masked
    out, are invalid: their loss is inf or NaN, or with `validate` they raise.

    Args:
        scores: (C), (N, C) or (N, C, d1, …, dk), any floating dtype: raw logits.
        target: class indices, (), (N) or (N, d1, …, dk), or probabilities in the shape of `scores`.
        surrogate: φ, the function of the margin, for example `LinearCore(tau=1.0)`.
        form: "pairwise", "centered", "logodds", or a `Form`.
        normalize: mean (True) or sum (False) over competitors. None: True for "pairwise" and "centered". "logodds" has no
            sum over competitors; True raises.
        weight: (C) class weights; "mean" divides by the sum of the weights of the labels, as in torch.
        sample_weight: weights in the shape of the unreduced loss; "mean" divides by their sum.
        class_margin: (C) Δ: all margins of a sample with label y are reduced by Δ_y. Use larger values for rare classes.
        ignore_index: samples with this target are ignored.
        label_smoothing: ε in [0, 1]: the target becomes (1 − ε)·target + ε/C.
        reduction: "mean", "sum" or "none".
        backend: "reference": PyTorch operations with autograd. "eager": PyTorch operations on blocks of rows, with a custom
            backward pass. "compiled": C kernels (not torch.compile), on a CPU in float32 or float64 without class margins;
            "eager" if a score is infinite. "fused": Triton, on a GPU for index targets in float32 or half precision.
            "auto": the fastest that torch.compile and torch.func allow; for "mean" and "sum" also C for half precision.
        validate: raise a ValueError for invalid scores, labels out of range and invalid target probabilities; synchronises
            with the GPU. A label out of range always raises on a CPU outside torch.compile; elsewhere its loss is NaN.

    Returns:
        A scalar, or the unreduced loss (), (N) or (N, d1, …, dk); dtype as in F.cross_entropy, computed in float32 at least.

    Raises:
        ValueError, TypeError: if an argument has an invalid shape, dtype or value; if the surrogate is two-sided with
            `centered` (the linear bound would not hold) or not monotone with `logodds` (the loss would not be convex).

    Example:
        >>> import torch
        >>> scores, target = torch.tensor([[2.0, 0.0, -1.0], [0.5, 0.0, 1.0]]), torch.tensor([0, 1])
        >>> multiclass_loss(scores, target, surrogate=LinearCore("truncated_quadratic"), form="pairwise")
        tensor(1.1250)

    Cost: time O(N·C); with probability targets or label smoothing O(N·C²) for pairwise, and for centered with
    `class_margin`. Saved for the backward pass: with "eager" `scores`, `target` and three values per row; with "compiled"
    and "fused" `scores`, `target` and the gradient. Temporary memory with "eager": one block of 2 MiB.
    """
    form = check_form(form, normalize, surrogate)
    if backend == "auto" and class_margin is None and not validate:

        def reference(scores: Tensor, target: Tensor) -> Tensor:
            return multiclass_loss(
                scores,
                target,
                surrogate=surrogate,
                form=form,
                weight=weight,
                sample_weight=sample_weight,
                ignore_index=ignore_index,
                label_smoothing=label_smoothing,
                reduction=reduction,
                backend="reference",
            )

        code, weights = form.loss_code(surrogate), (weight, sample_weight)
        loss = dense_loss(code, scores, target, ignore_index, reduction, reference, weights, label_smoothing)
        if loss is not None:
            return loss
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
    backend = resolve_backend(
        backend,
        (scores,),
        other_inputs,
        can_fuse=can_fuse_rows(form, surrogate, labels),
        can_compile=can_compile_rows(form, surrogate, scores, labels),
        can_trace=can_trace_rows(form, surrogate, scores, labels),
    )
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
