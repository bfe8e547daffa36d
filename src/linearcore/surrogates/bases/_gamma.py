"""Φ''(z) = z² e^{−|z|}, integrated twice."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from linearcore.surrogates.bases._base import Base, Half

#: e^{−746} is zero in float64; products with it are cut there, because z² e^z is inf · 0 at z = −1e30 in float32.
_FAR = 746.0


@dataclass(frozen=True)
class GammaBase(Base):
    """The gamma base: C2, monotone and Lipschitz at once, which no base of the paper is.

        Φ(z) = (z² − 4z + 6) e^z          for z ≤ 0
             = 4z + (z² + 4z + 6) e^{−z}   for z > 0,        Φ''(z) = z² e^{−|z|}

    Its curvature is a gamma density mirrored about zero, hence the name.
    """

    name: ClassVar[str] = "gamma"
    at_zero: ClassVar[float] = 6.0
    slope_at_zero: ClassVar[float] = 2.0
    left: ClassVar[Half] = Half(slope=2.0, curvature=4 * math.exp(-2), is_flat_at_zero=True)
    right: ClassVar[Half] = Half(slope=4.0, curvature=4 * math.exp(-2), is_flat_at_zero=True)
    is_monotone: ClassVar[bool] = True
    vanishes: ClassVar[bool] = True

    def value(self, z: Tensor) -> Tensor:
        # With a = |z| both branches are (a² + 4a + 6) e^{−a}; the right one has 4z more.
        a = _distance(z)
        return 4 * F.relu(z) + (a * (a + 4) + 6) * torch.exp(-a)

    def derivative(self, z: Tensor) -> Tensor:
        # Φ' = (a² + 2a + 2) e^{−a} on the left and 4 minus that on the right.
        a = _distance(z)
        left = (a * (a + 2) + 2) * torch.exp(-a)
        return torch.where(z > 0, 4 - left, left)

    def curvature(self, z: Tensor) -> Tensor:
        a = _distance(z)
        return a.square() * torch.exp(-a)


def _distance(z: Tensor) -> Tensor:
    """|z|, cut at `_FAR`, with slope −1 at zero: autograd's slope of `abs` there is 0, which would be wrong in Φ."""
    return (F.relu(z) - z.clamp(max=0)).clamp(max=_FAR)
