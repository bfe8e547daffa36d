"""The multi-class convolutional Fenchel–Young loss of Cao et al. 2025, for Shannon's entropy and the 0-1 loss: a baseline.

Where it comes from. Take Ω(q) = Σ_v q_v log q_v on the simplex Δ and the target's Bayes risk R(q) = 1 − max_v q_v. The loss
is the Fenchel–Young loss of the *convolutional* negentropy Ω_R = Ω − R:

    L(θ, y) = Ω_R*(θ) + Ω_R(e_y) − θ_y,             Ω_R*(θ) = max_{q∈Δ} ⟨θ, q⟩ − Ω(q) + R(q),             Ω_R(e_y) = 0.

R is the least of the linear functions q ↦ 1 − q_v, so the conjugate of −R is finite on the simplex only, and a conjugate
of a sum is the infimal convolution of the conjugates:

    Ω_R*(θ) = 1 + min_{π∈Δ} logsumexp(θ − π).

The minimum puts π_v = (θ_v − c)₊ with c such that Σ_v π_v = 1. That is the projection of θ onto the simplex, so one number
a row has to be solved for. With q = softmax(θ − π) the gradient of L is q − e_y by the envelope theorem, and

    L(θ, y) = cross-entropy(θ − π, y) + 1 − π_y.

For two classes it is `ConvolutionalFenchelYoung` of θ_y − θ_v.

How far off a π with Σ π_v = 1 + f is. Its q is equal on all v with π_v > 0, so the dual value of q is Ω_R* as computed plus
f·max q, and rescaling π to the simplex costs at most f. The duality gap is at most |f|: this is the gap reported here.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from linearcore._checks import complaint, floating
from linearcore._reduce import check_reduction, reduce_losses
from linearcore._typing import Reduction, compute_dtype, result_dtype
from linearcore.analysis._minimum import NotSolvedError
from linearcore.losses import to_rows

#: Newton steps allowed; each at least drops a class, and a handful do.
STEPS = 100
#: Up to this many classes sorting is faster than the first Newton steps.
_FEW = 32


class FenchelYoungPoint(NamedTuple):
    """The inner problem solved at scores θ (N, C).

    Attributes:
        conjugate: (N,): Ω_R*(θ).
        mixture: (N, C): π, the mixture of answers; its largest entry is the answer that the linear bound is about.
        probability: (N, C): q, the gradient of Ω_R* and the estimate of the class probabilities.
        gap: (N,): a bound of the duality gap.
    """

    conjugate: Tensor
    mixture: Tensor
    probability: Tensor
    gap: Tensor


def fenchel_young_point(scores: Tensor, *, tolerance: float | None = None) -> FenchelYoungPoint:
    """Solves the inner problem of `fenchel_young_loss`: min_{π∈Δ} logsumexp(θ − π).

    Args:
        scores: θ, (N, C), float32 or float64.
        tolerance: duality gap allowed; None: 1e-9 for float64, 1e-5 for float32, whose own rounding is not far from it.

    Raises:
        NotSolvedError: if some gap is larger.

    Example:
        >>> import torch
        >>> point = fenchel_young_point(torch.tensor([[1.0, 0.5, -3.0]], dtype=torch.float64))
        >>> point.mixture
        tensor([[0.7500, 0.2500, 0.0000]], dtype=torch.float64)
        >>> bool(point.gap <= 1e-9)
        True

    Cost: O(N·C) a Newton step, of which there are at most C and usually about five.
    """
    floating("scores", scores, "pass the raw output of the network")
    if scores.dim() != 2:
        raise ValueError(complaint("scores", "have shape (N, C)", tuple(scores.shape), "give one row a sample"))
    if tolerance is None:
        tolerance = 1e-9 if scores.dtype == torch.float64 else 1e-5
    elif not 0 < tolerance < 1:
        raise ValueError(complaint("tolerance", "be between 0 and 1", tolerance, "for example 1e-9 in float64"))
    top = scores.amax(-1, keepdim=True)
    shifted = scores - top
    mixture, gap = _project(shifted, tolerance)
    capped = shifted - mixture
    conjugate = 1 + capped.logsumexp(-1)
    return FenchelYoungPoint(conjugate + top.squeeze(-1), mixture, capped.softmax(-1), gap)


def _project(shifted: Tensor, tolerance: float) -> tuple[Tensor, Tensor]:
    """π (N, C) and its gap (N,) for scores whose row maximum is 0.

    f(c) = Σ (θ − c)₊ − 1 is convex, piecewise linear and falls; from c = −1, where f ≥ 0, Newton's steps climb to its zero
    and get there after finitely many.
    """
    threshold = _by_sorting(shifted) if shifted.shape[-1] <= _FEW else torch.full_like(shifted[:, :1], -1.0)
    for _ in range(STEPS):
        mixture = (shifted - threshold).relu()
        excess = mixture.sum(-1, keepdim=True) - 1
        # NaN is no progress to wait for: it comes out as it came in.
        if not bool((excess.abs() > tolerance).any()):
            return mixture, excess.abs().squeeze(-1)
        threshold = threshold + excess / mixture.count_nonzero(-1).unsqueeze(-1)
    worst = float(excess.abs().max())
    raise NotSolvedError(f"the projection was not solved: duality gap {worst:.2g}, allowed {tolerance:.2g}")


def _by_sorting(shifted: Tensor) -> Tensor:
    """(N, 1): c = (θ_(1) + … + θ_(k) − 1)/k for the last k at which θ_(k) exceeds it."""
    ordered = shifted.sort(-1, descending=True).values
    thresholds = (ordered.cumsum(-1) - 1) / torch.arange(1, ordered.shape[-1] + 1, device=ordered.device)
    size = (ordered > thresholds).sum(-1, keepdim=True).clamp(min=1)
    return thresholds.gather(-1, size - 1)


class _Conjugate(torch.autograd.Function):
    """Ω_R*(θ); its gradient is q, whatever π does, since π is optimal (envelope theorem)."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, tolerance: float | None) -> Tensor:
        point = fenchel_young_point(scores, tolerance=tolerance)
        ctx.save_for_backward(scores, point.probability)
        ctx.tolerance = tolerance
        return point.conjugate

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        scores, probability = ctx.saved_tensors
        if torch.is_grad_enabled():  # someone wants second derivatives, for which π matters
            inside = fenchel_young_point(scores.detach(), tolerance=ctx.tolerance).mixture > 0
            threshold = (scores.masked_fill(~inside, 0.0).sum(-1, keepdim=True) - 1) / inside.sum(-1, keepdim=True)
            probability = torch.where(inside, threshold, scores).softmax(-1)
        return probability * upstream.unsqueeze(-1), None


def fenchel_young_loss(
    scores: Tensor, target: Tensor, *, reduction: Reduction = "mean", tolerance: float | None = None
) -> Tensor:
    """The multi-class convolutional Fenchel–Young loss (Shannon, 0-1), a baseline with a linear bound.

        L(θ, y) = 1 + min_{π∈Δ} logsumexp(θ − π) − θ_y

    Convex and C1. The 0-1 regret of the answer argmax π, which is argmax θ, is at most C times the surrogate regret, for
    C classes, and no smaller constant will do (`fenchel_young_regret_ratio`). Prefer `multiclass_loss`, which solves
    nothing and does not wait for the device.

    Args:
        scores: θ: (C), (N, C) or (N, C, d1, …, dk), any floating dtype; half precisions are computed in float32.
        target: class indices or probabilities, as in `multiclass_loss`.
        reduction: "mean", "sum" or "none".
        tolerance: as in `fenchel_young_point`.

    Returns:
        A scalar, or the unreduced loss.

    Raises:
        NotSolvedError: if the inner problem was not solved to `tolerance`.

    Example:
        >>> import torch
        >>> scores = torch.tensor([[0.5, 0.0], [2.0, 0.0]], dtype=torch.float64)
        >>> losses = fenchel_young_loss(scores, torch.tensor([0, 0]), reduction="none")
        >>> from linearcore import ConvolutionalFenchelYoung
        >>> bool((losses - ConvolutionalFenchelYoung().value(scores[:, 0])).abs().max() < 1e-12)
        True

    Cost: that of cross-entropy and about five more passes over the scores, with one wait for the device each.

    Reference: Cao, Bao, Feng and An, "Establishing linear surrogate regret bounds for convex smooth losses via convolutional
    Fenchel–Young losses", 2025.
    """
    floating("scores", scores, "pass the raw output of the network")
    check_reduction(reduction)
    rows = to_rows(scores, target, -100)
    wide = rows.scores.to(compute_dtype(scores))
    # The loss does not see a constant, and near zero it has the most digits.
    wide = wide - wide.detach().amax(-1, keepdim=True)
    if rows.index is not None:
        own = wide.gather(-1, rows.index.unsqueeze(-1)).squeeze(-1)
    else:
        assert rows.probability is not None
        own = (wide * rows.probability.to(wide.dtype)).sum(-1)
    conjugate: Tensor = _Conjugate.apply(wide, tolerance)  # type: ignore[no-untyped-call]
    losses = reduce_losses(conjugate - own, None, rows.is_counted, reduction).to(result_dtype(scores))
    return losses.reshape(rows.shape) if reduction == "none" else losses
