"""Control variate for a mean over all tag sequences: the linear part of the surrogate is averaged exactly.

In the core φ is linear, and the mean of a linear function over all sequences follows from the mean score without sampling.
Only the remainder is sampled:

    φ(m) = −α m + (φ(m) + α m)          φ'(m) = −α + (α + φ'(m))

The first term is averaged in closed form, the second over samples. If α = −φ' for all samples, as in the core with α = 1,
the estimate has variance zero. If α is far from −φ', for example α = 1 at large margins where φ' ≈ 0, it increases.
"""

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.surrogates import Surrogate


def controlled_estimate(
    surrogate: Surrogate, true_score: Tensor, scores: Tensor, mean: Tensor, slope: float | Tensor
) -> Tensor:
    """Estimates 1/M Σ_{y'} φ(h(y) − h(y')) (B,) over all M sequences; unbiased in value and gradient.

        1/K Σ_k (φ(m_k) + α m_k) − α (h(y) − mean h),      m_k = h(y) − h(y_k)

    It requires uniform samples y_k, the exact `mean`, and an α that does not depend on these samples. α is constant in the
    gradient. With samples and `mean` from another distribution it estimates the mean under that distribution.

    Args:
        surrogate: φ.
        true_score: (B,), score h(y) of the true sequence.
        scores: (K, B), scores h(y_k) of the samples.
        mean: (B,), from `mean_score`.
        slope: α, a number or a tensor that broadcasts with (B,); 0 gives the plain average. See `RunningSlope`.

    Time and memory O(K·B).
    """
    alpha = slope.detach() if isinstance(slope, Tensor) else slope
    margin = true_score - scores
    return (surrogate._value(margin) + alpha * margin).mean(0) - alpha * (true_score - mean)


class RunningSlope:
    """Running mean of −φ' over past margins, used as α in `controlled_estimate`. It starts at 1, its value in the core.

        α ← α + momentum · (mean of −φ'(m) − α)

    Update it *after* the estimate that used it, so α never depends on the samples of the same estimate.

    Args:
        momentum: 0 < momentum ≤ 1, as in torch.nn.BatchNorm1d; 1 uses only the last update.

    Raises:
        ValueError: if `momentum` is out of range.

    Example:
        >>> from linearcore import LinearCore
        >>> alpha = RunningSlope(momentum=0.5)
        >>> alpha.update(LinearCore(), torch.tensor([100.0, 200.0]))
        >>> float(alpha.value)
        0.5
    """

    def __init__(self, momentum: float = 0.1) -> None:
        if not 0 < momentum <= 1:
            raise ValueError(complaint("momentum", "be above 0 and at most 1", momentum, "for example 0.1"))
        self.momentum = momentum
        self.value = torch.ones(())

    @torch.no_grad()
    def update(self, surrogate: Surrogate, margin: Tensor) -> None:
        """Updates `value` with margins of any shape. No GPU synchronisation."""
        value = self.value.to(margin)
        self.value = value + self.momentum * (-surrogate.derivative(margin).mean() - value)
