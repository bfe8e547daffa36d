"""The robust loss: the pairwise form of scores that are normalised to a fixed norm, for noisy labels."""

import math

import torch
from torch import Tensor

from linearcore._checks import complaint, positive
from linearcore._typing import Reduction, compute_dtype
from linearcore.forms import Labels, Pairwise
from linearcore.kernels import FormCode, LossCode, dense_loss
from linearcore.losses._batch import batch_loss
from linearcore.losses._multiclass import check_surrogate, form_losses
from linearcore.losses._targets import Rows
from linearcore.surrogates import LinearCore, Surrogate

#: The core contains all margins on the unit sphere, which are at most √2.
ROBUST_SURROGATE = LinearCore(tau=2.0)

#: ε, lower bound of the norm that scores are divided by. It is far below typical norms of scores, and large enough that the
#: gradient of a network whose last layer starts at zero fits into half precision.
MIN_NORM = 1e-3


def robust_loss(
    scores: Tensor,
    target: Tensor,
    *,
    radius: float = 1.0,
    surrogate: Surrogate = ROBUST_SURROGATE,
    scale: float = 1.0,
    weight: Tensor | None = None,
    sample_weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: Reduction = "mean",
    backend: str = "auto",
    validate: bool = False,
) -> Tensor:
    """Pairwise loss of scores normalised to a sphere: bounded, symmetric, and robust to uniform label noise.

    Use it if up to about a third of the labels are wrong. With more, use a wide core after `linearcore.NormedScores`; with
    clean labels use `multiclass_loss`. Measurements: `docs/wrong-labels.md`. Proofs, choice of `scale`: `docs/proofs.md`.

        ŝ = r (s − s̄) / max(‖s − s̄‖, ε),   ε = 0.001        mean s̄ and norm over the unmasked classes
        ℓ = scale · mean_{v≠y} φ(ŝ_y − ŝ_v)

    Margins of ŝ are at most √2·r. If the core contains them (τ ≥ √2·r, `RobustLinearCoreLoss.is_symmetric`), then
    ℓ = scale · (φ(0) − n/(n − 1) · ŝ_y), and Σ_y ℓ(s, y) is the same for all s. The risk is then minimal if ŝ is a positive
    multiple of p − 1/n, with p the probabilities of the n classes given the input. The 0-1 regret is bounded by the square
    root of the surrogate regret, and uniform label noise at a rate below 1 − 1/n does not change the minimisers. Nothing is
    proven for class- or input-dependent noise.

    The loss is not convex in s. With two classes it raises, because the gradient would be zero. Rows with two unmasked
    classes have zero gradient.

    Args:
        radius: r, the norm of ŝ.
        surrogate: φ, the function of the margin, for example `LinearCore(tau=2.0)`.
        scale: factor of the loss. It matters relative to weight decay and other loss terms; Adam alone is invariant to it.
        scores, target, weight, sample_weight, ignore_index, label_smoothing, reduction, backend, validate: as in
            `multiclass_loss`, infinite scores included.

    Returns:
        A scalar, or the unreduced loss, as `multiclass_loss`. Raises the errors of `multiclass_loss`.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        >>> robust_loss(scores, torch.tensor([0, 0]), reduction="none")
        tensor([2.1615, 3.3863])

    Cost: as `multiclass_loss` with form="pairwise", plus a few N×C tensors saved for the backward pass.
    """
    radius, scale = check_radius(radius), check_scale(scale)
    identity = check_surrogate(surrogate).kernel_identity
    is_sphere = isinstance(scores, Tensor) and scores.shape[-1:] != (2,)  # `batch_loss` has the messages for other scores.
    if backend == "auto" and not validate and identity is not None and is_sphere:

        def reference(scores: Tensor, target: Tensor) -> Tensor:
            return robust_loss(
                scores, target, radius=radius, surrogate=surrogate, scale=scale, weight=weight, sample_weight=sample_weight,
                ignore_index=ignore_index, label_smoothing=label_smoothing, reduction=reduction, backend="reference",
            )  # fmt: skip

        code = LossCode(FormCode.PAIRWISE, True, identity, radius, scale)
        weights = weight, sample_weight
        loss = dense_loss(code, scores, target, ignore_index, reduction, reference, weights, label_smoothing)
        if loss is not None:
            return loss

    def row_losses(rows: Rows, labels: Labels) -> Tensor:
        check_sphere(rows.scores.shape[1])
        return scale * form_losses(Pairwise(), surrogate, radius * on_unit_sphere(rows), labels, backend)

    return batch_loss(
        row_losses,
        scores,
        target,
        weight=weight,
        sample_weight=sample_weight,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction=reduction,
        validate=validate,
    )


def on_unit_sphere(rows: Rows) -> Tensor:
    """Returns c / max(‖c‖, ε) with c = s − s̄, and −inf for masked classes, (N, C), in float32 for half precisions.

    Each row is first shifted and scaled by detached constants, to avoid overflow of squares and cancellation with a large
    mean. The result is invariant to both.
    """
    scores = rows.scores.to(compute_dtype(rows.scores))
    if rows.is_counted is not None:
        # Ignored rows may contain NaN, and 0 · NaN would be their gradient.
        scores = scores.masked_fill(~rows.is_counted.unsqueeze(-1), 0.0)
    is_unmasked = scores != -math.inf
    max_score = scores.detach().amax(-1, keepdim=True)
    max_score = max_score.masked_fill(max_score == -math.inf, 0.0)  # All classes are masked: 0 here, −inf at the end.
    shifted = torch.where(is_unmasked, scores, max_score) - max_score
    size = shifted.detach().abs().amax(-1, keepdim=True).clamp(min=MIN_NORM)
    scaled = shifted / size
    num_classes = is_unmasked.to(scores.dtype).sum(-1, keepdim=True)
    centred = (scaled - scaled.sum(-1, keepdim=True) / num_classes.clamp(min=1)).masked_fill(~is_unmasked, 0.0)
    # The lower bound is applied before the square root, whose derivative at zero is infinite.
    square = torch.maximum(centred.square().sum(-1, keepdim=True), (MIN_NORM / size).square())
    return (centred / square.sqrt()).masked_fill(~is_unmasked, -math.inf)


def is_symmetric(surrogate: Surrogate, radius: float) -> bool:
    """Whether Σ_y ℓ(s, y) is the same for all s: φ is linear for all margins on the sphere with this radius.

    Example:
        >>> is_symmetric(LinearCore(tau=1.5), radius=1.0), is_symmetric(LinearCore(tau=1.0), radius=1.0)
        (True, False)
    """
    if surrogate.core is None:
        return False
    low, high = surrogate.core
    max_margin = math.sqrt(2) * radius
    return low <= -max_margin and max_margin <= high


def check_sphere(num_classes: int) -> None:
    """Raises for two classes: their sphere has two points, so the loss is a step function with zero gradient."""
    if num_classes == 2:
        advice = "with two classes the gradient is zero; use multiclass_loss"
        raise ValueError(complaint("scores", "have three classes or more", num_classes, advice))


def check_radius(radius: object) -> float:
    """Returns `radius` as a float; raises if it is not a positive number."""
    return positive("radius", radius, "pass the norm of the normalised scores, for example 1.0")


def check_scale(scale: object) -> float:
    """Returns `scale` as a float; raises if it is not a positive number."""
    return positive("scale", scale, "pass the factor of the loss, for example 1.0")
