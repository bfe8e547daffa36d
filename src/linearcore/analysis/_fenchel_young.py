"""Baseline: the multi-class convolutional Fenchel–Young loss of Cao et al. 2025, for Shannon entropy and the 0-1 loss.

Derivation. Let Ω(q) = Σ_v q_v log q_v on the simplex Δ, and let R(q) = 1 − max_v q_v be the Bayes risk of the 0-1 loss. The
loss is the Fenchel–Young loss of the *convolutional* negentropy Ω_R = Ω − R:

    L(θ, y) = Ω_R*(θ) + Ω_R(e_y) − θ_y,             Ω_R*(θ) = max_{q∈Δ} ⟨θ, q⟩ − Ω(q) + R(q),             Ω_R(e_y) = 0.

R is the minimum of the linear functions q ↦ 1 − q_v, so the conjugate of −R is finite on the simplex only. The conjugate of
a sum is the infimal convolution of the conjugates:

    Ω_R*(θ) = 1 + min_{π∈Δ} logsumexp(θ − π).

The minimiser is π_v = (θ_v − c)₊, with c such that Σ_v π_v = 1. This is the projection of θ onto the simplex, so only c has
to be computed for each row. With q = softmax(θ − π) the gradient of L is q − e_y by the envelope theorem, and

    L(θ, y) = cross-entropy(θ − π, y) + 1 − π_y.

For two classes it is `ConvolutionalFenchelYoung` of θ_y − θ_v.

Duality gap of a π with Σ π_v = 1 + f. Its q is equal on all v with π_v > 0, so the dual value of q is the computed Ω_R* plus
f·max q, and rescaling π to the simplex changes the value by at most |f|. So the duality gap is at most |f|, which is
reported.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from linearcore._checks import complaint, floating
from linearcore._reduce import check_reduction, reduce_losses
from linearcore._typing import Reduction, compute_dtype, result_dtype
from linearcore.analysis._minimum import NotSolvedError
from linearcore.losses import to_rows

#: Maximal number of Newton steps. Each removes at least one class; about five are usual.
STEPS = 100
#: For at most this many classes, sorting is faster than Newton steps.
_MAX_SORTED = 32


class FenchelYoungPoint(NamedTuple):
    """Solution of the inner problem at scores θ (N, C).

    Attributes:
        conjugate: (N,) Ω_R*(θ).
        mixture: (N, C) π; the linear bound is for the prediction argmax π.
        probability: (N, C) q, the gradient of Ω_R*, which estimates the class probabilities.
        gap: (N,) upper bound of the duality gap.
    """

    conjugate: Tensor
    mixture: Tensor
    probability: Tensor
    gap: Tensor


def fenchel_young_point(scores: Tensor, *, tolerance: float | None = None) -> FenchelYoungPoint:
    """Solves the inner problem of `fenchel_young_loss`: min_{π∈Δ} logsumexp(θ − π).

    Args:
        scores: θ, (N, C), float32 or float64.
        tolerance: largest allowed duality gap; default 1e-9 for float64, 1e-5 for float32 (close to its rounding error).

    Raises:
        NotSolvedError: if a gap is larger.

    Example:
        >>> import torch
        >>> point = fenchel_young_point(torch.tensor([[1.0, 0.5, -3.0]], dtype=torch.float64))
        >>> point.mixture
        tensor([[0.7500, 0.2500, 0.0000]], dtype=torch.float64)
        >>> bool(point.gap <= 1e-9)
        True

    Cost: O(N·C) per Newton step; at most C steps, usually about five.
    """
    floating("scores", scores, "pass the raw output of the network")
    if scores.dim() != 2:
        raise ValueError(complaint("scores", "have shape (N, C)", tuple(scores.shape), "pass one row per sample"))
    if tolerance is None:
        tolerance = 1e-9 if scores.dtype == torch.float64 else 1e-5
    elif not 0 < tolerance < 1:
        raise ValueError(complaint("tolerance", "be between 0 and 1", tolerance, "for example 1e-9 in float64"))
    top = scores.amax(-1, keepdim=True)
    shifted = scores - top
    mixture, gap = _project(shifted, tolerance)
    clipped = shifted - mixture
    conjugate = 1 + clipped.logsumexp(-1)
    return FenchelYoungPoint(conjugate + top.squeeze(-1), mixture, clipped.softmax(-1), gap)


def _project(shifted: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:
    """Returns π (N, C) and its gap (N,) for scores whose row maximum is 0.

    f(c) = Σ (θ − c)₊ − 1 is convex, piecewise linear and decreasing, and f(−1) ≥ 0. Newton's method from c = −1 increases c
    and reaches the zero of f after finitely many steps.
    """
    threshold = _sorted_threshold(shifted) if shifted.shape[-1] <= _MAX_SORTED else torch.full_like(shifted[:, :1], -1.0)
    for _ in range(STEPS):
        mixture = (shifted - threshold).relu()
        excess = mixture.sum(-1, keepdim=True) - 1
        # This also stops at NaN, which is returned.
        if not bool((excess.abs() > tolerance).any()):
            return mixture, excess.abs().squeeze(-1)
        threshold = threshold + excess / mixture.count_nonzero(-1).unsqueeze(-1)
    worst = float(excess.abs().max())
    raise NotSolvedError(f"the projection was not solved: duality gap {worst:.2g}, allowed {tolerance:.2g}")


def _sorted_threshold(shifted: Tensor) -> Tensor:
    """Returns c (N, 1) = (θ_(1) + … + θ_(k) − 1)/k for the largest k with θ_(k) > c."""
    descending = shifted.sort(-1, descending=True).values
    thresholds = (descending.cumsum(-1) - 1) / torch.arange(1, descending.shape[-1] + 1, device=descending.device)
    size = (descending > thresholds).sum(-1, keepdim=True).clamp(min=1)
    return thresholds.gather(-1, size - 1)


class _Conjugate(torch.autograd.Function):
    """Ω_R*(θ). Its gradient is q by the envelope theorem: π is optimal, so its derivative does not matter."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, tolerance: float | None) -> Tensor:
        point = fenchel_young_point(scores, tolerance=tolerance)
        ctx.save_for_backward(scores, point.probability)
        ctx.tolerance = tolerance
        return point.conjugate

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None]:
        scores, probability = ctx.saved_tensors
        if torch.is_grad_enabled():  # Second derivatives need the derivative of π.
            is_positive = fenchel_young_point(scores.detach(), tolerance=ctx.tolerance).mixture > 0
            sums = scores.masked_fill(~is_positive, 0.0).sum(-1, keepdim=True)
            threshold = (sums - 1) / is_positive.sum(-1, keepdim=True)
            probability = torch.where(is_positive, threshold, scores).softmax(-1)
        return probability * grad_output.unsqueeze(-1), None


def fenchel_young_loss(
    scores: Tensor, target: Tensor, *, reduction: Reduction = "mean", tolerance: float | None = None
) -> Tensor:
    """Computes the multi-class convolutional Fenchel–Young loss (Shannon, 0-1), a baseline with a linear bound.

        L(θ, y) = 1 + min_{π∈Δ} logsumexp(θ − π) − θ_y

    It is convex and C1. The 0-1 regret of the prediction argmax θ = argmax π is at most C times the surrogate regret for C
    classes, and this constant is the best possible (`fenchel_young_regret_ratio`). Prefer `multiclass_loss`, which needs no
    solver and does not synchronise with the GPU.

    Args:
        scores: θ: (C), (N, C) or (N, C, d1, …, dk), any floating dtype; half precision is computed in float32.
        target: class indices or probabilities, as in `multiclass_loss`.
        reduction: "mean", "sum" or "none".
        tolerance: as in `fenchel_young_point`.

    Returns:
        A scalar, or the unreduced loss.

    Raises:
        NotSolvedError: if the duality gap of the inner problem exceeds `tolerance`.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[0.5, 0.0], [2.0, 0.0]], dtype=torch.float64)
        >>> losses = fenchel_young_loss(scores, torch.tensor([0, 0]), reduction="none")
        >>> from linearcore import ConvolutionalFenchelYoung
        >>> bool((losses - ConvolutionalFenchelYoung().value(scores[:, 0])).abs().max() < 1e-12)
        True

    Cost: cross-entropy plus about five passes over the scores, each with one GPU synchronisation.

    Reference: Cao, Bao, Feng and An, "Establishing linear surrogate regret bounds for convex smooth losses via convolutional
    Fenchel–Young losses", 2025.
    """
    floating("scores", scores, "pass the raw output of the network")
    check_reduction(reduction)
    rows = to_rows(scores, target, -100)
    wide = rows.scores.to(compute_dtype(scores))
    # The loss does not change if a constant is subtracted, and rounding errors are smallest near zero.
    wide = wide - wide.detach().amax(-1, keepdim=True)
    if rows.index is not None:
        target_score = wide.gather(-1, rows.index.unsqueeze(-1)).squeeze(-1)
    else:
        assert rows.probability is not None
        target_score = (wide * rows.probability.to(wide.dtype)).sum(-1)
    conjugate: Tensor = _Conjugate.apply(wide, tolerance)  # type: ignore[no-untyped-call]
    losses = reduce_losses(conjugate - target_score, None, rows.is_counted, reduction).to(result_dtype(scores))
    return losses.reshape(rows.shape) if reduction == "none" else losses
