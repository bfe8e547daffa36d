"""Tag sequences drawn uniformly, with scores that add up over sites: a mean gradient and its variance in closed form.

    ψ(y) = (e_{1,y_1} + … + e_{L,y_L}) / √L,      h(y) = w·ψ(y),      so that ‖ψ(y)‖ = R = 1 for every y

Around a truth y, one uniform draw y' gives the gradient g = φ'(m) (ψ(y) − ψ(y')) with margin m = h(y) − h(y'). All w are
multiples of one step, so that m lives on a grid and its law, over as many as 10^20 sequences, is a convolution of L
histograms. Then

    ∇_{j,v} = E g_{j,v} = (1[v = y_j] E φ' − E[φ' | y'_j = v] / |Y|) / √L
    E ‖g‖² = (2/L) Σ_j (E φ'² − E[φ'² | y'_j = y_j] / |Y|)

since ‖ψ(y) − ψ(y')‖² = 2/L times the number of sites that differ. The variance of one draw is E ‖g‖² − ‖∇‖².
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
    """Scores of one input. The truth is tag 0 at every site.

    Args:
        levels: (L, |Y|) integers: w / `GRID`.
    """

    levels: Tensor

    @classmethod
    def draw(cls, num_tags: int, margin: float, spread: float, seed: int) -> "UniformTags":
        """w normal, rounded: h has standard deviation `spread` over sequences, and the truth is `margin` above its mean."""
        stream = torch.Generator().manual_seed(seed)
        weights = spread * torch.randn(LENGTH, num_tags, generator=stream, dtype=torch.float64)
        weights[:, 0] = margin / math.sqrt(LENGTH)
        return cls((weights / GRID).round().long())

    @property
    def num_tags(self) -> int:
        """|Y|."""
        return self.levels.shape[1]

    def exact(self, surrogate: Surrogate, lift: float = 0.0) -> tuple[Tensor, float]:
        """∇ as (L·|Y|,), and the variance of one draw, by the formulas above with φ' + `lift` for φ'.

        A control variate leaves φ' + α to draws, so that its variance is the second number at `lift` = α.
        """
        steps = (self.levels[:, :1] - self.levels).numpy()
        low, width = int(steps.min()), int(np.ptp(steps)) + 1
        shares = [np.bincount(row - low, minlength=width) / self.num_tags for row in steps]
        gradient, square = np.zeros(steps.shape), 0.0
        for site, row in enumerate(steps):
            first, second = self._given(site, shares, low, surrogate, lift)
            gradient[site] = -first[row - low] / self.num_tags
            gradient[site, 0] += shares[site] @ first
            square += shares[site] @ second - second[-low] / self.num_tags
        gradient /= math.sqrt(LENGTH)
        return torch.from_numpy(gradient.reshape(-1)), float(2 / LENGTH * square - np.square(gradient).sum())

    def _given(self, site: int, shares: list[Array], low: int, surrogate: Surrogate, lift: float) -> tuple[Array, Array]:
        """E[φ' | this site adds t] and E[φ'² | the same], for every t on the grid from `low` on."""
        rest = np.ones(1)
        for other, share in enumerate(shares):
            rest = rest if other == site else np.convolve(rest, share)
        own = low + np.arange(len(shares[site]))
        others = (LENGTH - 1) * low + np.arange(len(rest))
        margins = GRID / math.sqrt(LENGTH) * (own[:, None] + others)
        slopes = np.asarray(surrogate.derivative(margins), dtype=np.float64) + lift
        return slopes @ rest, np.square(slopes) @ rest

    def gradients(self, runs: int, losses: Losses) -> Tensor:
        """(runs, L·|Y|): gradients in w of independent copies of a loss, by automatic differentiation."""
        weights = (GRID * self.levels.double()).unsqueeze(1).repeat(1, runs, 1).requires_grad_()
        (found,) = torch.autograd.grad(losses(weights / math.sqrt(LENGTH)).sum(), weights)
        return found.movedim(1, 0).flatten(1)


def sites_of(runs: int) -> Sites:
    """Chains of full length."""
    return Sites.of(torch.ones(LENGTH, runs, dtype=torch.bool), is_full=True)


def no_chain(num_tags: int) -> Chain:
    """Scores of tags alone: zeros, and a transition matrix that takes no memory."""
    nothing = torch.zeros(num_tags, dtype=torch.float64)
    return Chain(nothing, torch.zeros(1, 1, dtype=torch.float64).expand(num_tags, num_tags), nothing)
