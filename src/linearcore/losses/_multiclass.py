"""The multi-class loss."""

from torch import Tensor

from linearcore._checks import complaint, floating, holds, shape
from linearcore._reduce import check_reduction, reduce_losses
from linearcore._typing import Reduction, result_dtype
from linearcore.kernels import Labels, dense_rows
from linearcore.losses._forms import Form, resolve_form
from linearcore.losses._targets import Rows, to_rows, validate_rows
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

    A score of −inf is a class that is not there: it is no competitor and, for `centered`, not part of the mean.

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
        backend: "plain" (one graph of torch operations), "blocked" (rows in blocks, recomputed in the backward pass), or
            "auto": blocked in eager mode, plain under torch.compile, torch.func and forward-mode differentiation.
        validate: look at the numbers too (labels in range, probabilities that add up, no NaN). Waits for the device.

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
    `class_margin`. Memory with the blocked backend: kept for the backward pass are `scores`, `target` and at most three
    numbers a row; temporaries are one block (2 MiB of float32 each on a CPU, cut along the classes too where C² is
    needed); the backward pass adds the gradient itself. Scores with d1, …, dk are copied once. Differentiating twice uses
    the plain graph, a handful of N×C tensors.

    Reference: Eq. (3) of the paper for pairwise; centered and logodds are this library's.
    """
    floating("scores", scores, "pass the raw output of the network")
    check_reduction(reduction)
    form = checked_form(form, normalize, surrogate)
    check_label_smoothing(label_smoothing)
    rows = to_rows(scores, target, ignore_index)
    sample_weight = rows.per_row("sample_weight", sample_weight)
    for name, vector in (("weight", weight), ("class_margin", class_margin)):
        if vector is not None:
            shape(name, vector, (rows.scores.shape[1],), "give one number for every class")
    if validate:
        _validate(rows, weight, sample_weight)

    is_hard = rows.index is not None and label_smoothing == 0
    shares = None if is_hard or weight is None else weight
    labels = Labels(rows.index, rows.probability, shares, class_margin, float(label_smoothing))
    losses = dense_rows(form.kernel(surrogate), rows.scores, labels, backend)
    losses = _reduce(losses, rows, weight, sample_weight, is_hard=is_hard, reduction=reduction)
    return losses.to(result_dtype(scores))


def checked_form(form: str | Form, normalize: bool | None, surrogate: object) -> Form:
    """The form, after asking it whether it goes with the surrogate."""
    form = resolve_form(form, normalize)
    form.check(check_surrogate(surrogate))
    return form


def check_label_smoothing(label_smoothing: float) -> None:
    """Raises unless ε is a share."""
    if not 0 <= label_smoothing <= 1:
        raise ValueError(complaint("label_smoothing", "be in [0, 1]", label_smoothing, "for example 0.1"))


def check_surrogate(surrogate: object) -> Surrogate:
    """Returns `surrogate`, or raises unless it is one."""
    if isinstance(surrogate, Surrogate):
        return surrogate
    advice = "for example linearcore.LinearCore()"
    raise TypeError(complaint("surrogate", "be a `Surrogate`", type(surrogate).__name__, advice))


def _reduce(
    losses: Tensor, rows: Rows, weight: Tensor | None, sample_weight: Tensor | None, *, is_hard: bool, reduction: Reduction
) -> Tensor:
    """torch's rules: the weighted mean divides by the weights of the targets, for probability targets by their number."""
    if rows.index is None or weight is None:
        losses = reduce_losses(losses, sample_weight, rows.counted, reduction)
    else:
        of_target = weight.to(losses.dtype)[rows.index]
        row_weight = of_target if sample_weight is None else of_target * sample_weight
        if is_hard:
            losses = reduce_losses(losses, row_weight, rows.counted, reduction)
        else:  # The shares hold the class weights already, so only the mean has to know them.
            whole = reduce_losses(losses, sample_weight, rows.counted, "none" if reduction == "none" else "sum")
            losses = whole / reduce_losses(row_weight, None, rows.counted, "sum") if reduction == "mean" else whole
    return losses.reshape(rows.shape) if reduction == "none" else losses


def _validate(rows: Rows, weight: Tensor | None, sample_weight: Tensor | None) -> None:
    validate_rows(rows)
    for name, tensor in (("weight", weight), ("sample_weight", sample_weight)):
        if tensor is not None:
            holds(name, tensor >= 0, "not be negative", "a negative weight would reward errors")
