"""Φ(z) = e^z."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from linearcore._checks import positive
from linearcore.surrogates.bases._base import Base, Half


@dataclass(frozen=True)
class ExponentialBase(Base):
    """The exponential base, Φ(z) = e^z, continued linearly past z = `linear_past`.

    The continuation e^p (1 + z − p) for z > p is reached only by two-sided surrogates, at margins below −τ − p/β. It keeps
    value and gradient finite for float32 margins down to −1e30 (e^16 · 1e30 < 3e38), convex and C1, where a clamp would
    zero the gradient of exactly the worst errors. The facts are those of e^z itself, so that `right` is unbounded.

    Args:
        linear_past: the point p.
    """

    linear_past: float = 16.0

    name: ClassVar[str] = "exponential"
    at_zero: ClassVar[float] = 1.0
    slope_at_zero: ClassVar[float] = 1.0
    left: ClassVar[Half] = Half(slope=1.0, curvature=1.0)
    right: ClassVar[Half] = Half(slope=math.inf, curvature=math.inf)
    is_monotone: ClassVar[bool] = True
    vanishes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive("linear_past", self.linear_past, "pass the point past which e^z goes on as a line, for example 16.0")

    def value(self, z: Tensor) -> Tensor:
        return z.clamp(max=self.linear_past).exp() * (1 + F.relu(z - self.linear_past))

    def derivative(self, z: Tensor) -> Tensor:
        return z.clamp(max=self.linear_past).exp()

    def curvature(self, z: Tensor) -> Tensor:
        return self.derivative(z) * (z <= self.linear_past)
