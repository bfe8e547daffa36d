"""The robust preset: the pairwise form on scores that are put on a sphere, inside the core."""

import math

import torch
from torch import Tensor

from linearcore._checks import complaint, positive
from linearcore._typing import Reduction, compute_dtype
from linearcore.forms import Labels, Pairwise
from linearcore.losses._batch import batch_loss
from linearcore.losses._multiclass import check_surrogate, form_losses
from linearcore.losses._targets import Rows
from linearcore.surrogates import LinearCore, Surrogate

#: Wide enough for every margin on the unit sphere, which are at most √2.
ROBUST_SURROGATE = LinearCore(tau=2.0)

#: ε, below which a norm is no longer divided by. Far below the norms of scores that say anything, and large enough that a
#: network whose last layer starts at zero gets a gradient that fits into half precision.
FLOOR = 1e-3


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
    """The pairwise loss of scores on a sphere: bounded, symmetric, and tolerant to uniform label noise.

    Use it when up to about a third of the labels are wrong. With more, use a wide core on `linearcore.NormedScores`; with
    clean labels, `multiclass_loss`. Measurements: `docs/wrong-labels.md`; proofs and the choice of `scale`:
    `docs/proofs.md`.

        ŝ = r (s − s̄) / max(‖s − s̄‖, ε),   ε = 0.001        mean and norm over the classes that are not masked
        ℓ = scale · mean_{v≠y} φ(ŝ_y − ŝ_v)

    Margins of ŝ are at most √2·r. If the core is that wide (τ ≥ √2·r, the module's `is_symmetric`), then
    ℓ = scale · (φ(0) − n/(n − 1) · ŝ_y), and Σ_y ℓ(s, y) is the same for all s. The risk is then minimised where ŝ points
    along p − 1/n, the 0-1 regret is bounded by the square root of the surrogate regret, and uniform label noise at a rate
    below 1 − 1/n does not change the minimisers. Nothing is proven for noise that depends on the class or the input.

    The loss is not convex in s. Two classes are refused, since their gradient is zero; so is that of rows with two unmasked
    classes.

    Args:
        radius: r, the norm of ŝ.
        surrogate: φ.
        scale: a factor of the loss. It matters relative to weight decay and other terms; Adam is invariant to it.
        scores, target, weight, sample_weight, ignore_index, label_smoothing, reduction, backend, validate: as in
            `multiclass_loss`. Classes with score −inf are masked out; a masked label costs infinity.

    Returns:
        A scalar, or the unreduced loss, as `multiclass_loss` returns it; it raises as `multiclass_loss` does.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        >>> robust_loss(scores, torch.tensor([0, 0]), reduction="none")
        tensor([2.1615, 3.3863])

    Cost: that of `multiclass_loss` with form="pairwise", plus a few N×C tensors kept for the backward pass.
    """
    radius, scale = check_radius(radius), check_scale(scale)
    check_surrogate(surrogate)

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
    """(N, C): c / max(‖c‖, ε) with c = s − s̄, and −inf for masked classes, in float32 for half precisions.

    The result does not change when a row is shifted or scaled. Both are taken out first, so that no square overflows and no
    difference is lost against a large mean. They are constants for every derivative.
    """
    scores = rows.scores.to(compute_dtype(rows.scores))
    if rows.counted is not None:
        # A row that is left out may hold anything, and 0 · NaN would be its gradient.
        scores = scores.masked_fill(~rows.counted.unsqueeze(-1), 0.0)
    present = scores != -math.inf
    top = scores.detach().amax(-1, keepdim=True)
    top = top.masked_fill(top == -math.inf, 0.0)  # All classes masked: zeros here, masked again at the end.
    below = torch.where(present, scores, top) - top
    size = below.detach().abs().amax(-1, keepdim=True).clamp(min=FLOOR)
    below = below / size
    number = present.to(scores.dtype).sum(-1, keepdim=True)
    centred = (below - below.sum(-1, keepdim=True) / number.clamp(min=1)).masked_fill(~present, 0.0)
    # Floored before the root, whose slope at zero is infinite.
    square = torch.maximum(centred.square().sum(-1, keepdim=True), (FLOOR / size).square())
    return (centred / square.sqrt()).masked_fill(~present, -math.inf)


def is_symmetric(surrogate: Surrogate, radius: float) -> bool:
    """Whether Σ_y ℓ(s, y) is the same for all s: φ is straight for all margins on a sphere of that radius.

    Example:
        >>> is_symmetric(LinearCore(tau=1.5), radius=1.0), is_symmetric(LinearCore(tau=1.0), radius=1.0)
        (True, False)
    """
    if surrogate.core is None:
        return False
    low, high = surrogate.core
    largest = math.sqrt(2) * radius
    return low <= -largest and largest <= high


def check_sphere(num_classes: int) -> None:
    """Raises for two classes: their sphere is two points, the loss a step, and its gradient zero."""
    if num_classes == 2:
        advice = "on the sphere two classes have no gradient; use multiclass_loss"
        raise ValueError(complaint("scores", "have three classes or more", num_classes, advice))


def check_radius(radius: object) -> float:
    """`radius` as a float, or raises unless it is a positive number."""
    return positive("radius", radius, "pass the norm that scores are given, for example 1.0")


def check_scale(scale: object) -> float:
    """`scale` as a float, or raises unless it is a positive number."""
    return positive("scale", scale, "pass the factor of the loss, for example 1.0")
