"""A mean over all tag sequences, estimated with the linear part of the surrogate taken out and put back exactly.

Inside the core φ is a straight line, and the mean of a straight line over all sequences needs no draws: it is known from the
mean score. Only what bends is left to chance:

    φ(m) = −α m + (φ(m) + α m)          φ'(m) = −α + (α + φ'(m))

The first part is averaged in closed form, the second over draws. With α = −φ' throughout, as in the core with α = 1, nothing
is random. With α far from −φ', as for α = 1 at large margins where φ' is nearly 0, it adds more noise than it removes.
"""

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.surrogates import Surrogate


def controlled_estimate(surrogate: Surrogate, truth: Tensor, draws: Tensor, mean: Tensor, slope: float | Tensor) -> Tensor:
    """(B,): unbiased for 1/M Σ_{y'} φ(h(y) − h(y')) over all M sequences of each chain, in value and in gradient.

        1/K Σ_k (φ(m_k) + α m_k) − α (h(y) − mean h),      m_k = h(y) − h(y_k)

    What it needs: y_k drawn uniformly, `mean` exact, and an α that does not depend on these draws; one that was made from
    them biases it. α is held fixed in the gradient. For another law of y_k it is unbiased for the mean under that law, if
    `mean` is the mean score under it.

    Args:
        surrogate: φ.
        truth: (B,), h(y).
        draws: (K, B), h(y_k).
        mean: (B,), from `mean_score`.
        slope: α, a number or a tensor that broadcasts with (B,); 0 is the plain average. See `RunningSlope`.

    Time and memory O(K·B).
    """
    alpha = slope.detach() if isinstance(slope, Tensor) else slope
    margin = truth - draws
    return (surrogate._value(margin) + alpha * margin).mean(0) - alpha * (truth - mean)


class RunningSlope:
    """α for `controlled_estimate`: a running mean of −φ' over past margins, starting from 1, its value in the core.

        α ← α + rate · (mean of −φ'(m) − α)

    Update it *after* the estimate that used it, so that no estimate sees an α made from its own draws.

    Args:
        rate: 0 < rate ≤ 1; 1 forgets all but the last.

    Raises:
        ValueError: if `rate` is out of range.

    Example:
        >>> from linearcore import LinearCore
        >>> alpha = RunningSlope(rate=0.5)
        >>> alpha.update(LinearCore(), torch.tensor([100.0, 200.0]))
        >>> float(alpha.value)
        0.5
    """

    def __init__(self, rate: float = 0.1) -> None:
        if not 0 < rate <= 1:
            raise ValueError(complaint("rate", "be above 0 and at most 1", rate, "for example 0.1"))
        self.rate = rate
        self.value = torch.ones(())

    @torch.no_grad()
    def update(self, surrogate: Surrogate, margin: Tensor) -> None:
        """Takes in margins of any shape. Reads nothing back from a device."""
        value = self.value.to(margin)
        self.value = value + self.rate * (-surrogate.derivative(margin).mean() - value)
