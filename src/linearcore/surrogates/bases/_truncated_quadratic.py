"""The truncated quadratic base, Φ(z) = ½ (1 + z)₊²."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from linearcore.surrogates.bases._base import Base, Half


@dataclass(frozen=True)
class TruncatedQuadraticBase(Base):
    """The truncated quadratic base, Φ(z) = ½ (1 + z)₊²: exactly zero below z = −1.

    Margins above τ + 1 have zero loss and zero gradient, so the gradient is sparse over the competing classes. The
    Huber-smoothed hinge of width γ < 1 is this base with τ = 1 − γ and sharpness 1/γ.
    """

    name: ClassVar[str] = "truncated_quadratic"
    kernel_index: ClassVar[int | None] = 2
    at_zero: ClassVar[float] = 0.5
    slope_at_zero: ClassVar[float] = 1.0
    left: ClassVar[Half] = Half(slope=1.0, curvature=1.0, knots=(-1.0,))
    right: ClassVar[Half] = Half(slope=math.inf, curvature=1.0)
    is_monotone: ClassVar[bool] = True
    vanishes: ClassVar[bool] = True

    def value(self, z: Tensor) -> Tensor:
        return 0.5 * F.relu(1 + z).square()

    def derivative(self, z: Tensor) -> Tensor:
        return F.relu(1 + z)

    def curvature(self, z: Tensor) -> Tensor:
        return (z > -1).to(z.dtype)
