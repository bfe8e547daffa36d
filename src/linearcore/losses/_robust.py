"""The robust preset: the pairwise form on scores that are put on a sphere, inside the core."""

import math

from torch import Tensor

from linearcore._checks import complaint, positive
from linearcore._typing import Reduction
from linearcore.forms import Labels, Pairwise
from linearcore.losses._batch import batch_loss
from linearcore.losses._multiclass import check_surrogate, form_losses
from linearcore.losses._sphere import Norm, check_norm, in_class_units, on_unit_sphere
from linearcore.losses._targets import Rows
from linearcore.surrogates import LinearCore, Surrogate

#: Wide enough for every margin on the unit sphere, which are at most √2.
ROBUST_SURROGATE = LinearCore(tau=2.0)


def robust_loss(
    scores: Tensor,
    target: Tensor,
    *,
    norm: Norm = "sample",
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
    are answered well push less, and the loss is not symmetric any more. The loss is not convex in s. Proofs:
    `docs/proofs.md`; when to use it: `docs/wrong-labels.md`. For clean labels prefer `multiclass_loss`.

    The gradient with respect to s is orthogonal to s − s̄ and at most scale · r · √(n/(n − 1)) / ‖s − s̄‖ in the core. Where
    ‖s − s̄‖ < ε it is scale times the pairwise loss of r/ε · s: equal scores cost scale · φ(0) and have the finite gradient
    −scale · r/ε · n/(n − 1) · (1_y − 1/n) in the core, so that training can begin at a last layer of zeros. With two classes
    the sphere is two points and the gradient zero: refused; rows with two classes that are there teach nothing.

    With `norm="batch"` the length is shared: ŝ = r (s − s̄) / max(L, ε), L the root mean square of ‖s − s̄‖ over the rows that
    count, `sample_weight` included. Samples that the model is sure of may then have long scores and others short ones. The
    losses of a batch hang together: a row of NaN or +inf is in all of them, and of two classes, which are welcome here, a
    batch of one row teaches nothing. Instead of the above, without class weights and −inf:

    - Over all inputs, the risk can only be least where at every input the scores have the order of p. φ has to be smooth and
      not to rise; wrong labels may do what they like so long as they leave that order, as uniform ones do.
    - While all margins are in the core, uniformly wrong labels at rate η < 1 − 1/n multiply the risk by 1 − η n/(n − 1) and
      add a constant, batch by batch; over all inputs it is least where s − s̄ is p − 1/n times one positive number for all.
      Only scores that are longer than τ/(√2·r) times L can have margins beyond τ, in the tail, and push less.

    With `norm="class"` the network has normed its scores itself: it ends in `linearcore.NormedScores(n, sphere=True)`, which
    gives every class the mean 0 and the variance 1 over the batch, and keeps running means for later. ŝ = r √(n − 1)/n · s:
    n equally frequent classes that are told apart without doubt then have margins of r. While all margins are in the core
    (rare classes have larger ones), without weights, and if all rows count:

    - Only the covariance of each class's scores with its labels counts. Labels that are replaced with probability η < 1 by a
      draw from *any* law, the same for all inputs, multiply the expected risk of every network by 1 − η and add a constant.
    - If every input has one true label, the risk is least exactly where each class's scores are its normed membership, with
      the true class ahead, whatever those wrong labels are.
    - Where classes overlap it asks which class an input has more of than other inputs have, in standard deviations, and not
      which is likeliest: the answer at the least risk can be another.

    Nothing is proven there for wrong labels that depend on the class or the input.

    Args:
        norm: whose length is made r: that of each sample ("sample"), or the root mean square over the batch ("batch"). With
            "class" nothing is normed here: the network has to end in `NormedScores`.
        radius: r, the length of ŝ; with "class", the margin of certain answers about equally frequent classes.
        surrogate: φ.
        scale: a factor of the loss. It counts against weight decay and other terms; Adam does not see it.
        scores, target, weight, sample_weight, ignore_index, label_smoothing, reduction, backend, validate: as in
            `multiclass_loss`. A score of −inf is a class that is not there; a label that is not there costs infinity.

    Returns:
        A scalar, or the unreduced loss, as `multiclass_loss` gives it.

    Raises:
        ValueError, TypeError: if shapes, dtypes or options do not fit.

    Example:
        >>> import torch
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
    check_norm(norm)
    radius, scale = check_radius(radius), check_scale(scale)
    check_surrogate(surrogate)

    def row_losses(rows: Rows, labels: Labels) -> Tensor:
        if norm == "sample":
            check_sphere(rows.scores.shape[1])
        if norm == "class":
            put = in_class_units(rows)
        else:
            put = on_unit_sphere(rows, norm, rows.per_row("sample_weight", sample_weight))
        return scale * form_losses(Pairwise(), surrogate, radius * put, labels, backend)

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


def is_symmetric(surrogate: Surrogate, radius: float, norm: Norm = "sample") -> bool:
    """Whether Σ_y ℓ(s, y) is the same for all s: φ is straight for all margins on a sphere of that radius.

    Example:
        >>> is_symmetric(LinearCore(tau=1.5), radius=1.0), is_symmetric(LinearCore(tau=1.0), radius=1.0)
        (True, False)
        >>> is_symmetric(LinearCore(tau=1.5), radius=1.0, norm="batch")  # One sample may be as long as it likes.
        False
    """
    if surrogate.core is None or norm != "sample":
        return False
    low, high = surrogate.core
    largest = math.sqrt(2) * radius
    return low <= -largest and largest <= high


def check_sphere(num_classes: int) -> None:
    """Raises for two classes: their sphere is two points, the loss a step, and its gradient zero, which teaches nothing."""
    if num_classes == 2:
        advice = "on the sphere two classes have no gradient; pass norm='batch', or use multiclass_loss"
        raise ValueError(complaint("scores", "have three classes or more", num_classes, advice))


def check_radius(radius: object) -> float:
    """`radius` as a float, or raises unless it is a positive number."""
    return positive("radius", radius, "pass the length that scores are given, for example 1.0")


def check_scale(scale: object) -> float:
    """`scale` as a float, or raises unless it is a positive number."""
    return positive("scale", scale, "pass the factor of the loss, for example 1.0")
