"""The loss for binary and multi-label classification."""

import torch
from torch import Tensor

from linearcore._checks import complaint, floating, holds, nan_where, on_device_of, one_of, shape
from linearcore._reduce import check_reduction, reduce_losses
from linearcore._torch import is_on_host
from linearcore._typing import Reduction, result_dtype
from linearcore.kernels import binary_call, binary_elements
from linearcore.losses._arguments import tensor_or_none, weight_or_none
from linearcore.losses._multiclass import DEFAULT_SURROGATE, check_surrogate
from linearcore.surrogates import Surrogate

#: Target probabilities may leave [0, 1] by this much, for example after mixing samples in half precision.
_TOLERANCE = 0.01
#: Values of `backend` for this loss.
BINARY_BACKENDS = ("auto", "reference", "eager")


def binary_loss(
    scores: Tensor,
    target: Tensor,
    *,
    surrogate: Surrogate = DEFAULT_SURROGATE,
    pos_weight: Tensor | float | None = None,
    sample_weight: Tensor | None = None,
    signed: bool = False,
    reduction: Reduction = "mean",
    backend: str = "auto",
    validate: bool = False,
) -> Tensor:
    """Margin loss for binary or multi-label classification, with the arguments of F.binary_cross_entropy_with_logits.

    For the score h, the target t (the probability of the positive class) and the positive weight p:

        ℓ = p · t · φ(h) + (1 − t) · φ(−h),        equal to φ(y·h) for hard labels y = 2t − 1 ∈ {−1, +1} and p = 1

    Args:
        scores: any shape; columns are independent labels.
        target: same shape as `scores`. Booleans or integers in {0, 1}, or probabilities in [0, 1].
        surrogate: φ, the function of the margin, for example `LinearCore(tau=1.0)`.
        pos_weight: p, a number or a tensor that broadcasts to `scores`. As in torch, the mean does not divide by it.
        sample_weight: weights in a shape that broadcasts to `scores`; the mean divides by their sum.
        signed: targets are in {−1, +1}, or in [−1, 1], instead of 0 and 1. A floating-point 0 is then the probability ½.
        reduction: "mean", "sum" or "none".
        backend: "reference" (PyTorch operations with autograd), "eager" (blocks, with a custom backward pass), or "auto".
            Without weights, `signed` and `validate`, "auto" uses C on a CPU (reduction "sum" or "mean") and Triton on a GPU.
        validate: raise for targets out of range, infinite scores and negative weights; synchronises with the GPU. If False,
            the loss of an infinite score is NaN. A target out of range then raises on a CPU outside torch.compile, and has
            the loss NaN elsewhere.

    Returns:
        A scalar, or the unreduced loss in the shape of `scores`. The dtype is that of `scores`, or float32 under autocast.

    Raises:
        ValueError, TypeError: if an argument has an invalid shape, dtype or value.

    Example:
        >>> import torch
        >>> from linearcore import LinearCore
        >>> binary_loss(torch.tensor([0.5, -3.0]), torch.tensor([1, 0]), surrogate=LinearCore("truncated_quadratic"))
        tensor(0.5000)

    Cost: O(1) per element. Saves `scores`, `target` and `pos_weight` for the backward pass, which recomputes the rest in
    blocks.

    Reference: Theorem 3 of the paper bounds the 0-1 regret (excess 0-1 risk) by the surrogate regret, for τ = 1.
    """
    has_options = pos_weight is not None or sample_weight is not None or signed or validate
    if backend == "auto" and not has_options and isinstance(surrogate, Surrogate):

        def reference(scores: Tensor, target: Tensor) -> Tensor:
            return binary_loss(scores, target, surrogate=surrogate, reduction=reduction, backend="reference")

        loss = binary_call(surrogate.kernel_identity, scores, target, reduction, reference)
        if loss is not None:
            return loss
    floating("scores", scores, "pass the raw output of the network")
    check_reduction(reduction)
    check_surrogate(surrogate)
    one_of("backend", backend, BINARY_BACKENDS)
    if not isinstance(target, Tensor):
        raise TypeError(complaint("target", "be a torch tensor", type(target).__name__, "wrap it in torch.as_tensor"))
    shape("target", target, tuple(scores.shape), "pass one target per score")
    on_device_of(scores, "target", target)
    if validate:
        _validate(scores, target, sample_weight, signed=signed)
    sample_weight = _broadcast("sample_weight", tensor_or_none("sample_weight", sample_weight), scores)
    if sample_weight is not None:
        target = target.masked_fill(sample_weight == 0, True)  # Ignored entries may have any target, such as −100.
    is_out_of_range = _out_of_range(target, signed=signed)
    positive = _positive_probability(target, signed=signed)
    pos_weight = _broadcast("pos_weight", weight_or_none("pos_weight", pos_weight), scores)
    losses = nan_where(binary_elements(surrogate, scores, positive, pos_weight, backend), is_out_of_range)
    return reduce_losses(losses, sample_weight, None, reduction).to(result_dtype(scores))


def _out_of_range(target: Tensor, *, signed: bool) -> Tensor | None:
    """Returns a mask of the targets that are out of range, or None if there are none; on a CPU they raise."""
    if target.dtype == torch.bool:
        return None
    target, low = target.detach(), -1 if signed else 0
    if target.is_floating_point():
        mask = (target < low - _TOLERANCE) | (target > 1 + _TOLERANCE)
    else:
        target = target.long()  # −1 is 255 as uint8.
        mask = (target != low) & (target != 1)
    if not is_on_host(target):
        return mask
    if bool(mask.any()):
        _check_range(target, ~mask, signed=signed)
    return None


def _positive_probability(target: Tensor, *, signed: bool) -> Tensor:
    """Returns booleans for integer and boolean targets, otherwise the probability of the positive class."""
    if not target.is_floating_point():
        return target > 0
    return (target + 1) / 2 if signed else target


def _broadcast(name: str, tensor: Tensor | None, scores: Tensor) -> Tensor | None:
    if tensor is None:
        return None
    if tensor.dim() == 0:
        tensor = tensor.to(scores.device)  # As in torch, a scalar may be on the CPU.
    on_device_of(scores, name, tensor)
    try:
        return tensor.expand(scores.shape)
    except RuntimeError:
        must = f"broadcast to the shape of `scores`, {tuple(scores.shape)}"
        raise ValueError(complaint(name, must, tuple(tensor.shape), "add or drop dimensions of size 1")) from None


def _validate(scores: Tensor, target: Tensor, sample_weight: Tensor | None, *, signed: bool) -> None:
    advice = "lower the learning rate, or look for an overflow in the network"
    holds("scores", scores.isfinite(), "be finite", advice, values=scores)
    low = -1 if signed else 0
    inside = (target >= low) & (target <= 1) if target.is_floating_point() else (target == low) | (target == 1)
    _check_range(target, inside, signed=signed)
    if sample_weight is not None:
        holds("sample_weight", sample_weight >= 0, "not be negative", "pass weights of 0 or more", values=sample_weight)


def _check_range(target: Tensor, inside: Tensor, *, signed: bool) -> None:
    ends = "-1, 1" if signed else "0, 1"
    allowed = f"[{ends}]" if target.is_floating_point() else f"{{{ends}}}"
    advice = "for labels 0 and 1 pass `signed=False`" if signed else "for labels −1 and +1 pass `signed=True`"
    holds("target", inside, f"be in {allowed}", advice, values=target)
