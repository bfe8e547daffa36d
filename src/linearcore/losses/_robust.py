"""The robust preset: the pairwise form on scores that are put on a sphere, inside the core."""

import math

import torch
from torch import Tensor

from linearcore._checks import complaint, positive
from linearcore._typing import Reduction, compute_dtype
from linearcore.kernels import Labels, dense_rows
from linearcore.losses._batch import batch_loss
from linearcore.losses._forms import Pairwise
from linearcore.losses._multiclass import check_surrogate
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

        ŝ = r (s − s̄) / max(‖s − s̄‖, ε),   ε = 0.001        mean and norm over the n classes that are there
        ℓ = scale · mean_{v≠y} φ(ŝ_y − ŝ_v)

    Margins of ŝ are at most √2·r. While φ is straight that far (τ ≥ √2·r; the module's `is_symmetric`),

        ℓ(s, y) = scale · (φ(0) − n/(n − 1) · ŝ_y),          Σ_y ℓ(s, y) = n · scale · φ(0) for all s,

    the unhinged loss of normalised scores. For a label with probabilities p, and q = p − 1/n:

    - The risk is least where ŝ points along q: the likeliest class has the highest score, alone if it alone is likeliest.
    - An answer k with 0-1 regret δ = max p − p_k has a surrogate regret of at least
      scale · r · n/(n − 1) · (‖q‖ − √(‖q‖² − δ²/2)) ≥ scale · r · n/(n − 1) · δ²/(4 ‖q‖), that is
      δ ≤ √(4 ‖q‖ (n − 1)/(n · scale · r) · regret): a square-root rate.
    - Labels that are wrong with probability η < 1 − 1/n, each other class alike, multiply q and all regrets by
      1 − η n/(n − 1) > 0: the same minimisers, whatever scores the model can give.

    Nothing is proven for noise that depends on the class or the input. With a shorter core the tail comes in: samples that
    are answered well push less, and the loss is not symmetric any more. The loss is not convex in s. Proofs, and when to
    take it: `docs/robust-loss.md`. For clean labels prefer `multiclass_loss`.

    The gradient with respect to s is orthogonal to s − s̄ and at most scale · r · √(n/(n − 1)) / ‖s − s̄‖ in the core. Where
    ‖s − s̄‖ < ε it is scale times the pairwise loss of r/ε · s: equal scores cost scale · φ(0) and have the finite gradient
    −scale · r/ε · n/(n − 1) · (1_y − 1/n) in the core, so that training can begin at a last layer of zeros. With two classes
    the sphere is two points and the gradient zero: refused; rows with two classes that are there teach nothing.

    Args:
        radius: r, the length of ŝ.
        surrogate: φ.
        scale: a factor of the loss. It counts against weight decay and other terms; Adam does not see it.
        scores, target, weight, sample_weight, ignore_index, label_smoothing, reduction, backend, validate: as in
            `multiclass_loss`. A score of −inf is a class that is not there; a label that is not there costs infinity.

    Returns:
        A scalar, or the unreduced loss, as `multiclass_loss` gives it.

    Raises:
        ValueError, TypeError: if shapes, dtypes or options do not fit.

    Example:
        >>> scores = torch.tensor([[3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
        >>> robust_loss(scores, torch.tensor([0, 0]), reduction="none")
        tensor([2.1615, 3.3863])
        >>> robust_loss(100 * scores, torch.tensor([0, 0]), reduction="none")
        tensor([2.1615, 3.3863])

    Cost: that of `multiclass_loss` with form="pairwise", O(C) a row and O(C²) with probability targets or label smoothing,
    and a handful of N×C tensors for the sphere, which are kept for the backward pass.

    Reference: van Rooyen, Menon and Williamson, NeurIPS 2015 (unhinged); Ghosh, Kumar and Sastry, AAAI 2017 (symmetric
    losses and uniform noise). Neither puts the scores of a sample on a sphere.
    """
    radius, scale = check_radius(radius), check_scale(scale)
    kernel = Pairwise().kernel(check_surrogate(surrogate))

    def row_losses(rows: Rows, labels: Labels) -> Tensor:
        check_sphere(rows.scores.shape[1])
        return scale * dense_rows(kernel, radius * _on_unit_sphere(rows), labels, backend)

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


def is_symmetric(surrogate: Surrogate, radius: float) -> bool:
    """Whether `robust_loss` has its guarantee: φ is straight for all margins on a sphere of that radius.

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
    """Raises for two classes: their sphere is two points, the loss a step, and its gradient zero, which teaches nothing."""
    if num_classes == 2:
        advice = "on the sphere two classes have no gradient; use multiclass_loss, or a loss of linearcore.losses.rivals"
        raise ValueError(complaint("scores", "have three classes or more", num_classes, advice))


def check_radius(radius: object) -> float:
    """`radius` as a float, or raises unless it is a positive number."""
    return positive("radius", radius, "pass the length that scores are given, for example 1.0")


def check_scale(scale: object) -> float:
    """`scale` as a float, or raises unless it is a positive number."""
    return positive("scale", scale, "pass the factor of the loss, for example 1.0")


def _on_unit_sphere(rows: Rows) -> Tensor:
    """(N, C): (s − s̄) / max(‖s − s̄‖, ε), −inf for classes that are not there, in float32 for half precisions.

    It sees neither a shift nor a factor of s. Both are taken out first, so that no square overflows and no difference
    drowns in a large mean; as the result does not depend on them they are constants for every derivative.
    """
    scores = rows.scores.to(compute_dtype(rows.scores))
    if rows.counted is not None:
        # A row that is ignored may hold anything, and 0 · NaN would come back as its gradient.
        scores = scores.masked_fill(~rows.counted.unsqueeze(-1), 0.0)
    present = scores != -math.inf
    top = scores.detach().amax(-1, keepdim=True)
    below = torch.where(present, scores, top) - top  # NaN in a row where nothing is there, and masked at the end.
    size = below.detach().abs().amax(-1, keepdim=True).clamp(min=FLOOR)
    below = below / size
    number = present.to(scores.dtype).sum(-1, keepdim=True).clamp(min=1)
    centred = (below - below.sum(-1, keepdim=True) / number).masked_fill(~present, 0.0)
    # Floored before the root, whose slope at zero is infinite. Beside a class at 0 and one at −1 the square is at least ½.
    square = torch.maximum(centred.square().sum(-1, keepdim=True), (FLOOR / size).square())
    return (centred / square.sqrt()).masked_fill(~present, -math.inf)
