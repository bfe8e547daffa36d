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
    """A margin loss for classification; takes what torch.nn.functional.cross_entropy takes.

    For one sample with scores s and label y, by form:

        pairwise   Σ_{v≠y} φ(s_y − s_v)                the paper's sum loss
        centered   Σ_{v≠y} φ(−(s_v − mean s))          the one whose linear bound holds
        logodds    φ(s_y − logsumexp_{v≠y} s_v)        the one that trains like cross-entropy (default)

    Classes with score −inf are masked out: they are no competitors and, for `centered`, not part of the mean.

    Args:
        scores: (C), (N, C) or (N, C, d1, …, dk), any floating dtype. They are not log-probabilities.
        target: class indices, (), (N) or (N, d1, …, dk), or probabilities in the shape of `scores`.
        surrogate: φ.
        form: "pairwise", "centered", "logodds", or a `Form`.
        normalize: divide the sum over competitors by their number. None: yes for pairwise and centered. logodds has
            one margin and refuses True.
        weight: (C) class weights. As in torch, "mean" divides by the weights of the targets, and by their number for
            probability targets.
        sample_weight: in the shape of the unreduced loss; "mean" divides by their sum, so that a weight of 2 is the same
            as the sample twice.
        class_margin: (C) Δ: every margin of a sample with label y is reduced by Δ_y, which asks more of rare classes.
        ignore_index: samples with this target count for nothing.
        label_smoothing: ε in [0, 1]: the target becomes (1 − ε)·target + ε/C.
        reduction: "mean", "sum" or "none".
        backend: "reference" (one graph of torch operations), "eager" (rows in blocks, recomputed in the backward pass),
            "fused" (Triton, for logodds with index targets on a GPU), or "auto": the fastest of these, and the reference
            under torch.compile, torch.func and forward-mode differentiation.
        validate: look at the numbers too (labels in range, probabilities that add up, no NaN). Waits for the device. A label
            out of range always raises on a CPU; elsewhere, unless validated, it makes the loss NaN.

    Returns:
        A scalar, or the unreduced loss (), (N) or (N, d1, …, dk). Dtype as F.cross_entropy: that of `scores`, float32 under
        autocast; half precisions are computed and summed in float32.

    Raises:
        ValueError, TypeError: if shapes, dtypes or options do not fit; if `centered` gets a two-sided surrogate (its linear
            bound would be lost) or `logodds` a non-monotone one (it would not be convex).

    Example:
        >>> import torch
        >>> scores = torch.tensor([[2.0, 0.0, -1.0], [0.5, 0.0, 1.0]])
        >>> target = torch.tensor([0, 1])
        >>> multiclass_loss(scores, target, surrogate=LinearCore("truncated_quadratic"), form="pairwise")
        tensor(1.1250)
        >>> multiclass_loss(scores, target, reduction="none").shape
        torch.Size([2])

    Cost: time O(N·C); with probability targets or label smoothing O(N·C²) for pairwise, and for centered with
    `class_margin`. Memory with the eager backend: kept for the backward pass are `scores`, `target` and at most three
    numbers a row; temporaries are one block (2 MiB of float32 each on a CPU, cut along the classes too where C² is
    needed); the backward pass adds the gradient itself. Scores with d1, …, dk are copied once. Differentiating twice uses
    the reference, a handful of N×C tensors.

    Reference: Eq. (3) of the paper for pairwise; centered and logodds are this library's.
    """
    form = checked_form(form, normalize, surrogate)
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
    """(N,): the losses of rows, by the backend that `backend` and the tensors ask for."""
    others = (labels.probability, labels.weight, labels.margin, *tensor_attributes(form, surrogate))
    chosen = resolve_backend(backend, (scores,), others, can_fuse=form.can_fuse and labels.is_hard)
    return row_losses(form, surrogate, scores, labels, chosen)


def checked_form(form: str | Form, normalize: bool | None, surrogate: object) -> Form:
    """The form, after asking it whether it goes with the surrogate."""
    form = resolve_form(form, normalize)
    form.check(check_surrogate(surrogate))
    return form


def check_surrogate(surrogate: object) -> Surrogate:
    """Returns `surrogate`, or raises unless it is one."""
    if isinstance(surrogate, Surrogate):
        return surrogate
    advice = "for example linearcore.LinearCore()"
    raise TypeError(complaint("surrogate", "be a `Surrogate`", type(surrogate).__name__, advice))
