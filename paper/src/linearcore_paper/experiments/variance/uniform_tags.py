"""Uniform tag sequences with scores that are a sum over positions; mean gradient and variance in closed form.

    ψ(y) = (e_{1,y_1} + … + e_{L,y_L}) / √L,      h(y) = w·ψ(y),      so ‖ψ(y)‖ = R = 1 for every y

For a true sequence y, one uniform sample y' gives the gradient g = φ'(m) (ψ(y) − ψ(y')) with margin m = h(y) − h(y'). All w
are multiples of one grid step, so the distribution of m over up to 10^20 sequences is a convolution of L histograms on this
grid. Then

    ∇_{j,v} = E g_{j,v} = (1[v = y_j] E φ' − E[φ' | y'_j = v] / |Y|) / √L
    E ‖g‖² = (2/L) Σ_j (E φ'² − E[φ'² | y'_j = y_j] / |Y|)

since ‖ψ(y) − ψ(y')‖² is 2/L times the number of positions that differ. The variance of one sample is E ‖g‖² − ‖∇‖².
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore.structures import Chain, Sites
from linearcore.surrogates import Surrogate

LENGTH = 5
#: w is a multiple of this.
GRID = 0.05

Array = npt.NDArray[np.float64]
#: Emissions (L, B, |Y|) of B copies of a problem ↦ one loss for each (B,).
Losses = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class UniformTags:
    """Scores of one input. The true tag is 0 at every position.

    Args:
        levels: (L, |Y|) integers: w / `GRID`.
    """

    levels: Tensor

    @classmethod
    def draw(cls, num_tags: int, margin: float, spread: float, seed: int) -> "UniformTags":
        """Draws rounded normal w. h has standard deviation `spread`; the true sequence is `margin` above its mean."""
        stream = torch.Generator().manual_seed(seed)
        weights = spread * torch.randn(LENGTH, num_tags, generator=stream, dtype=torch.float64)
        weights[:, 0] = margin / math.sqrt(LENGTH)
        return cls((weights / GRID).round().long())

    @property
    def num_tags(self) -> int:
        """|Y|."""
        return self.levels.shape[1]

    def exact(self, surrogate: Surrogate, lift: float = 0.0) -> tuple[Tensor, float]:
        """Returns ∇ (L·|Y|,) and the variance of one sample, by the formulas above with φ' + `lift` for φ'.

        With a control variate the samples estimate φ' + α, so the variance is the second number at `lift` = α.
        """
        steps = (self.levels[:, :1] - self.levels).numpy()
        low, width = int(steps.min()), int(np.ptp(steps)) + 1
        frequencies = [np.bincount(row - low, minlength=width) / self.num_tags for row in steps]
        gradient, square = np.zeros(steps.shape), 0.0
        for site, row in enumerate(steps):
            first, second = self._conditional_moments(site, frequencies, low, surrogate, lift)
            gradient[site] = -first[row - low] / self.num_tags
            gradient[site, 0] += frequencies[site] @ first
            square += frequencies[site] @ second - second[-low] / self.num_tags
        gradient /= math.sqrt(LENGTH)
        return torch.from_numpy(gradient.reshape(-1)), float(2 / LENGTH * square - np.square(gradient).sum())

    def _conditional_moments(
        self, site: int, frequencies: list[Array], low: int, surrogate: Surrogate, lift: float
    ) -> tuple[Array, Array]:
        """Returns E[φ' | this position adds t] and E[φ'² | the same], for every t on the grid from `low` on."""
        rest = np.ones(1)
        for other, frequency in enumerate(frequencies):
            rest = rest if other == site else np.convolve(rest, frequency)
        steps = low + np.arange(len(frequencies[site]))
        others = (LENGTH - 1) * low + np.arange(len(rest))
        margins = GRID / math.sqrt(LENGTH) * (steps[:, None] + others)
        slopes = np.asarray(surrogate.derivative(margins), dtype=np.float64) + lift
        return slopes @ rest, np.square(slopes) @ rest

    def gradients(self, runs: int, losses: Losses) -> Tensor:
        """Returns gradients (runs, L·|Y|) with respect to w of independent copies of a loss, by autograd."""
        weights = (GRID * self.levels.double()).unsqueeze(1).repeat(1, runs, 1).requires_grad_()
        (gradients,) = torch.autograd.grad(losses(weights / math.sqrt(LENGTH)).sum(), weights)
        return gradients.movedim(1, 0).flatten(1)


def sites_of(runs: int) -> Sites:
    """Returns `Sites` of unmasked sequences."""
    return Sites.of(torch.ones(LENGTH, runs, dtype=torch.bool), is_full=True)


def no_chain(num_tags: int) -> Chain:
    """Returns a chain with zero scores; its transition matrix is an expanded scalar and takes no memory."""
    zeros = torch.zeros(num_tags, dtype=torch.float64)
    return Chain(zeros, torch.zeros(1, 1, dtype=torch.float64).expand(num_tags, num_tags), zeros)
