"""The exponential base, Φ(z) = e^z."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from linearcore._checks import positive
from linearcore.surrogates.bases._base import Base, Half


@dataclass(frozen=True)
class ExponentialBase(Base):
    """The exponential base: Φ(z) = e^z for z ≤ p, and its tangent e^p (1 + z − p) for z > p.

    Only two-sided surrogates reach z > p, at margins below −τ − p/β. The tangent keeps value and gradient finite for float32
    margins down to −1e30 (e^16 · 1e30 < 3e38), and Φ stays convex and C1. A clamp would set the gradient of the largest
    errors to zero. The declared properties are those of e^z, so `right` is unbounded.

    Args:
        linear_past: p > 0.
    """

    linear_past: float = 16.0

    name: ClassVar[str] = "exponential"
    kernel_index: ClassVar[int | None] = 1
    at_zero: ClassVar[float] = 1.0
    slope_at_zero: ClassVar[float] = 1.0
    left: ClassVar[Half] = Half(slope=1.0, curvature=1.0)
    right: ClassVar[Half] = Half(slope=math.inf, curvature=math.inf)
    is_monotone: ClassVar[bool] = True
    vanishes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive("linear_past", self.linear_past, "pass the point after which e^z is linear, for example 16.0")

    @property
    def kernel_parameters(self) -> tuple[float, float]:
        return self.linear_past, 0.0

    def value(self, z: Tensor) -> Tensor:
        return z.clamp(max=self.linear_past).exp() * (1 + F.relu(z - self.linear_past))

    def derivative(self, z: Tensor) -> Tensor:
        return z.clamp(max=self.linear_past).exp()

    def curvature(self, z: Tensor) -> Tensor:
        return self.derivative(z) * (z <= self.linear_past)
