"""The gamma base, defined by Φ''(z) = z² e^{−|z|}."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from linearcore.surrogates.bases._base import Base, Half

#: |z| is clamped here: e^{−746} is 0 in float64, and z² e^z would be inf · 0 = NaN for z = −1e30 in float32.
_MAX_DISTANCE = 746.0


@dataclass(frozen=True)
class GammaBase(Base):
    """The gamma base: C2, monotone and Lipschitz. No base of the paper has all three properties.

        Φ(z) = (z² − 4z + 6) e^z          for z ≤ 0
             = 4z + (z² + 4z + 6) e^{−z}   for z > 0,        Φ''(z) = z² e^{−|z|}

    Φ'' is proportional to a symmetrised gamma density.
    """

    name: ClassVar[str] = "gamma"
    kernel_index: ClassVar[int | None] = 3
    at_zero: ClassVar[float] = 6.0
    slope_at_zero: ClassVar[float] = 2.0
    left: ClassVar[Half] = Half(slope=2.0, curvature=4 * math.exp(-2), is_flat_at_zero=True)
    right: ClassVar[Half] = Half(slope=4.0, curvature=4 * math.exp(-2), is_flat_at_zero=True)
    is_monotone: ClassVar[bool] = True
    vanishes: ClassVar[bool] = True

    def value(self, z: Tensor) -> Tensor:
        # With a = |z| both branches are (a² + 4a + 6) e^{−a}, plus 4z for z > 0.
        a = _distance(z)
        return 4 * F.relu(z) + (a * (a + 4) + 6) * torch.exp(-a)

    def derivative(self, z: Tensor) -> Tensor:
        # Φ' = (a² + 2a + 2) e^{−a} for z ≤ 0, and 4 − (a² + 2a + 2) e^{−a} for z > 0.
        a = _distance(z)
        left = (a * (a + 2) + 2) * torch.exp(-a)
        return torch.where(z > 0, 4 - left, left)

    def curvature(self, z: Tensor) -> Tensor:
        a = _distance(z)
        return a.square() * torch.exp(-a)


def _distance(z: Tensor) -> Tensor:
    """Returns min(|z|, _MAX_DISTANCE) with gradient −1 at zero. The gradient of torch.abs at zero is 0, wrong for Φ."""
    return (F.relu(z) - z.clamp(max=0)).clamp(max=_MAX_DISTANCE)
