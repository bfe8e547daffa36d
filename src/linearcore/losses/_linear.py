"""The multi-class loss of a linear layer, computed in chunks of scores."""

from collections.abc import Callable, Sequence
from numbers import Integral

import torch
import torch.nn.functional as F
from torch import Tensor

from linearcore._checks import complaint, floating, on_device_of, shape
from linearcore._reduce import check_reduction
from linearcore._torch import is_traced
from linearcore._typing import Reduction, result_dtype
from linearcore.forms import Form, Labels, tensor_attributes
from linearcore.kernels import resolve_backend, slices
from linearcore.losses._arguments import tensor_or_none
from linearcore.losses._batch import _check_weights, _reduce, check_label_smoothing
from linearcore.losses._infinite import check_finite
from linearcore.losses._linear_chunks import CHUNK_BYTES, DEVICE_CHUNK_BYTES, LinearLoss, rows_of_chunk
from linearcore.losses._multiclass import DEFAULT_SURROGATE, check_form, form_losses, multiclass_loss
from linearcore.losses._targets import Rows, to_rows, validate_target
from linearcore.surrogates import Surrogate


def linear_multiclass_loss(
    hidden: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
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
    chunk_bytes: int | None = None,
) -> Tensor:
    """`multiclass_loss` of F.linear(hidden, linear_weight, linear_bias), storing at most `chunk_bytes` of scores.

    Use it for a last layer with many classes, where the scores and their gradient are most of the memory of a step. Use
    `multiclass_loss` with few classes, or if you need the scores. If one matrix product with all classes is too slow, use
    `sampled_multiclass_loss`.

    Scores are computed in chunks. The gradients of `hidden`, weight and bias are accumulated from the gradient of each
    chunk, which overwrites the scores in Triton kernels and in chunks of classes. A chunk is a block of rows for logodds,
    for probability targets and usually for the C kernels, and a block of classes for pairwise and centered otherwise. Unless
    `reduction` is "none" or the dtype is float16, this happens in the forward pass.

    Args:
        hidden: (…, H) inputs of the last layer.
        linear_weight: (C, H), as in nn.Linear.
        target: class indices (…), or probabilities (…, C).
        linear_bias: (C), or None. A bias of −inf masks a class out.
        surrogate, form, normalize, weight, sample_weight, class_margin, ignore_index, label_smoothing, reduction, validate:
            as in `multiclass_loss`, for scores of shape (…, C).
        backend: as in `multiclass_loss`. "reference" stores all scores, and so does "auto" under torch.compile, in
            torch.func transforms, for second derivatives, and if scores and gradient fit into a chunk.
        chunk_bytes: size of a chunk; None: 0.5 GiB, 128 MiB on a CPU.

    Returns:
        A scalar, or (…) with reduction="none".

    Raises:
        ValueError, TypeError: if an argument has an invalid shape, dtype or value.

    Example:
        >>> layer = torch.nn.Linear(16, 50_000)
        >>> hidden, target = torch.randn(4, 32, 16, requires_grad=True), torch.randint(50_000, (4, 32))
        >>> loss = linear_multiclass_loss(hidden, layer.weight, target, linear_bias=layer.bias, form="pairwise")
        >>> loss.backward()

    Cost: three matrix products, N·C·H multiplications each; four with "none" or float16. Memory: a chunk, the gradients, and
    for half precisions a float32 copy of the gradient of `hidden`. Sums over chunks of rows are rounded to the dtype of
    `linear_weight` after each chunk.
    """
    form = check_form(form, normalize, surrogate)
    check_reduction(reduction)
    check_label_smoothing(label_smoothing)
    flat, target = _rows_of(hidden, linear_weight, linear_bias, target)
    lead, sample_weight = hidden.shape[:-1], _per_row(hidden, sample_weight)
    _check_tensors(weight=weight, class_margin=class_margin, sample_weight=sample_weight)
    options = {
        "surrogate": surrogate, "form": form, "weight": weight, "sample_weight": sample_weight, "class_margin": class_margin,
        "ignore_index": ignore_index, "label_smoothing": label_smoothing, "reduction": reduction, "validate": validate,
    }  # fmt: skip

    def reference(hidden: Tensor, linear_weight: Tensor, linear_bias: Tensor | None, backend: str = "reference") -> Tensor:
        scores = F.linear(hidden, linear_weight, linear_bias)
        return multiclass_loss(scores, target, backend=backend, **options)  # type: ignore[arg-type]

    others = (
        weight,
        sample_weight,
        class_margin,
        None if target.dim() == 1 else target,
        *tensor_attributes(form, surrogate),
    )
    layer = flat, linear_weight, linear_bias
    can_fuse = target.dim() == 1 and label_smoothing == 0 and form.loss_code(surrogate) is not None
    if not should_chunk(*layer, others, backend, chunk_bytes, can_fuse=can_fuse):
        loss = reference(*layer, backend)
        return loss.reshape(lead) if reduction == "none" else loss
    layer = cast_as_autocast(*layer)
    rows = to_rows(_shape_only(layer[0], len(linear_weight)), target, ignore_index)
    labels = _labels(rows, weight, class_margin, label_smoothing)
    if validate:
        _validate(rows, labels, target, weight, sample_weight, layer)
    dtype, is_hard = result_dtype(layer[0]), rows.index is not None and label_smoothing == 0

    def finish(losses: Tensor) -> Tensor:
        return _reduce(losses, rows, weight, sample_weight, is_hard=is_hard, reduction=reduction).to(dtype)

    loss = LinearLoss(
        form, surrogate, backend, rows, labels, finish, reduction != "none", reference, chunk_bytes or default_chunk(flat)
    )(*layer)
    return loss.reshape(lead) if reduction == "none" else loss


def linear_row_loss(
    layer: tuple[Tensor, Tensor, Tensor | None],
    index: Tensor,
    finish: Callable[[Tensor], Tensor],
    *,
    form: Form,
    surrogate: Surrogate,
    is_scalar: bool,
    chunk_bytes: int | None,
) -> Tensor:
    """Returns finish(losses (N,)) for the scores of a linear layer; for callers that reduce the losses themselves.

    Args:
        layer: hidden (N, H), weight (C, H), and bias (C,) or None.
        index: (N,) labels in [0, C).
        finish: a linear function of the losses.
        form, surrogate: define the loss.
        is_scalar: whether `finish` returns a scalar.
        chunk_bytes: as in `linear_multiclass_loss`.
    """
    labels = Labels(index)

    def reference(hidden: Tensor, weight: Tensor, bias: Tensor | None, backend: str = "reference") -> Tensor:
        return finish(form_losses(form, surrogate, F.linear(hidden, weight, bias), labels, backend))

    others = tensor_attributes(form, surrogate)
    if not should_chunk(*layer, others, "auto", chunk_bytes, can_fuse=form.loss_code(surrogate) is not None):
        return reference(*layer, "auto")
    hidden, weight, bias = cast_as_autocast(*layer)
    rows = Rows(_shape_only(hidden, len(weight)), index, None, None, None, hidden.shape[:1])
    chunk_bytes = chunk_bytes or default_chunk(hidden)
    loss = LinearLoss(form, surrogate, "auto", rows, labels, finish, is_scalar, reference, chunk_bytes)
    return loss(hidden, weight, bias)


def _shape_only(hidden: Tensor, num_classes: int) -> Tensor:
    """Returns a tensor with the shape of the scores (N, C) that stores one number; checks of rows need only the shape."""
    return hidden.new_zeros(()).expand(len(hidden), num_classes)


def should_chunk(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, others: Sequence[Tensor | None], backend: str,
    chunk_bytes: int | None, *, can_fuse: bool,
) -> bool:  # fmt: skip
    """Returns True if the loss is computed in chunks of scores, False if from all scores at once.

    Args:
        hidden, weight, bias: the linear layer and its input (N, H).
        others: tensors that only the reference implementation can differentiate.
        backend: argument of the public function.
        chunk_bytes: size of a chunk; None: the default.
        can_fuse: whether the fused kernels implement the loss.
    """
    tensors = [hidden, weight] if bias is None else [hidden, weight, bias]
    check_chunk_bytes(chunk_bytes)
    if is_traced():
        return False
    # Support of the C kernels is checked for each chunk later. Here an explicit "compiled" is always accepted.
    if resolve_backend(backend, tensors, others, can_fuse=can_fuse, can_compile=backend == "compiled") == "reference":
        return False
    # All scores and their gradient in one chunk need fewer calls.
    fits = 2 * len(hidden) * len(weight) * hidden.element_size() <= (chunk_bytes or default_chunk(hidden))
    return not (fits and backend == "auto") and min(hidden.shape) > 0 and len(weight) > 0


def _check_tensors(**options: object) -> None:
    for name, value in options.items():
        tensor_or_none(name, value)


def check_chunk_bytes(chunk_bytes: int | None) -> None:
    """Raises ValueError if `chunk_bytes` is not a positive integer or None."""
    if chunk_bytes is not None and (
        isinstance(chunk_bytes, bool) or not isinstance(chunk_bytes, Integral) or chunk_bytes < 1
    ):
        advice = "pass the memory for scores, for example 2**28"
        raise ValueError(complaint("chunk_bytes", "be a positive integer or None", repr(chunk_bytes), advice))


def default_chunk(hidden: Tensor) -> int:
    """Returns the default size of a chunk of scores in bytes."""
    return CHUNK_BYTES if hidden.is_cpu else DEVICE_CHUNK_BYTES


def cast_as_autocast(*layer: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Returns hidden, weight and bias as F.linear casts them under autocast."""
    device = next(tensor.device.type for tensor in layer if tensor is not None)
    if device != "meta" and torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        layer = tuple(
            tensor.to(dtype) if tensor is not None and tensor.dtype != torch.float64 else tensor for tensor in layer
        )
    return layer  # type: ignore[return-value]


def _rows_of(hidden: Tensor, weight: Tensor, bias: Tensor | None, target: Tensor) -> tuple[Tensor, Tensor]:
    """Checks shapes, dtypes and devices; returns hidden (N, H), and the target as (N,) or (N, C)."""
    floating("hidden", hidden, "pass the input of the last layer")
    floating("linear_weight", weight, "pass the weight of the last layer, as in nn.Linear")
    if hidden.dim() == 0:
        raise ValueError(complaint("hidden", "have shape (…, H)", "a scalar", "pass the input of the last layer"))
    num_classes = weight.shape[0] if weight.dim() else 1
    shape("linear_weight", weight, (num_classes, hidden.shape[-1]), "rows are classes, as in nn.Linear")
    if bias is not None:
        shape("linear_bias", bias, (num_classes,), "pass one value per class")
    if not isinstance(target, Tensor):
        raise TypeError(complaint("target", "be a torch tensor", type(target).__name__, "wrap it in torch.as_tensor"))
    is_cast = hidden.device.type != "meta" and torch.is_autocast_enabled(hidden.device.type)
    for name, tensor in (("linear_weight", weight), ("linear_bias", bias), ("target", target)):
        if tensor is None:
            continue
        if tensor.device != hidden.device:
            must = f"be on the device of `hidden`, {hidden.device}"
            raise ValueError(complaint(name, must, tensor.device, f"move it with `.to({str(hidden.device)!r})`"))
        if name != "target" and tensor.dtype != hidden.dtype and not is_cast:
            advice = "cast one of them, or use torch.autocast"
            raise TypeError(complaint(name, f"have the dtype of `hidden`, {hidden.dtype}", tensor.dtype, advice))
    lead = hidden.shape[:-1]
    if target.shape != lead and target.shape != (*lead, num_classes):
        must = f"have shape {tuple(lead)}, or {(*lead, num_classes)} for probabilities"
        advice = "class indices have the shape of `hidden` without the last dimension"
        raise ValueError(complaint("target", must, tuple(target.shape), advice))
    flat = hidden.reshape(lead.numel(), hidden.shape[-1])
    return flat, target.reshape(-1) if target.shape == lead else target.reshape(lead.numel(), num_classes)


def _per_row(hidden: Tensor, sample_weight: Tensor | None) -> Tensor | None:
    if sample_weight is None:
        return None
    shape("sample_weight", sample_weight, tuple(hidden.shape[:-1]), "pass one value per target")
    on_device_of(hidden, "sample_weight", sample_weight)
    return sample_weight.reshape(-1)


def _labels(rows: Rows, weight: Tensor | None, class_margin: Tensor | None, smoothing: float) -> Labels:
    """Returns the labels as `batch_loss` makes them; checks the vectors with one value per class."""
    for name, vector in (("weight", weight), ("class_margin", class_margin)):
        if vector is not None:
            shape(name, vector, (rows.scores.shape[1],), "pass one value per class")
            on_device_of(rows.scores, name, vector)
    is_hard = rows.index is not None and smoothing == 0
    return Labels(rows.index, rows.probability, None if is_hard else weight, class_margin, float(smoothing))


def _validate(
    rows: Rows, labels: Labels, target: Tensor, weight: Tensor | None, sample_weight: Tensor | None,
    layer: tuple[Tensor, Tensor, Tensor | None],
) -> None:  # fmt: skip
    """The checks of `multiclass_loss` with `validate`; scores are computed in chunks of rows, once more."""
    validate_target(target, rows)
    _check_weights(weight, sample_weight)
    hidden, linear_weight, bias = (None if tensor is None else tensor.detach() for tensor in layer)
    assert hidden is not None and linear_weight is not None
    for chunk in slices(len(hidden), default_chunk(hidden) // (hidden.element_size() * len(linear_weight))):
        scores = F.linear(hidden[chunk], linear_weight, bias)
        try:
            check_finite(scores, target[chunk], rows_of_chunk(rows, scores, chunk), labels.rows(chunk))
        except ValueError as error:
            raise ValueError(f"{error} (rows are counted from row {chunk.start})") from None
