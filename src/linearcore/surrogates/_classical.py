"""Classical surrogates with the interface of `LinearCore`, for comparison."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from linearcore._checks import positive
from linearcore.surrogates._base import KernelIdentity, Surrogate
from linearcore.surrogates.bases import Base, ExponentialBase, LogisticBase, TruncatedQuadraticBase


@dataclass(frozen=True)
class Hinge(Surrogate):
    """φ(u) = (1 − u)₊, the loss of support vector machines; linear for u < 1, with a kink at 1."""

    lipschitz: ClassVar[float] = 1.0
    smoothness: ClassVar[float] = math.inf
    is_c1: ClassVar[bool] = False
    is_c2: ClassVar[bool] = False
    is_monotone: ClassVar[bool] = True
    vanishes: ClassVar[bool] = True
    knots: ClassVar[tuple[float, ...]] = (1.0,)
    core: ClassVar[tuple[float, float]] = (-math.inf, 1.0)
    lines: ClassVar[tuple[tuple[float, float], ...]] = ((-1.0, 1.0), (0.0, 0.0))

    def _value(self, u: Tensor) -> Tensor:
        return F.relu(1 - u)

    def _derivative(self, u: Tensor) -> Tensor:
        # torch.where propagates NaN and keeps the graph; the comparison alone does not.
        return torch.where(u.isnan(), u, -(u < 1).to(u.dtype))

    def _curvature(self, u: Tensor) -> Tensor:
        return torch.zeros_like(u)


@dataclass(frozen=True)
class SquaredHinge(Surrogate):
    """φ(u) = (1 − u)₊², the squared hinge loss."""

    lipschitz: ClassVar[float] = math.inf
    smoothness: ClassVar[float] = 2.0
    is_c1: ClassVar[bool] = True
    is_c2: ClassVar[bool] = False
    is_monotone: ClassVar[bool] = True
    vanishes: ClassVar[bool] = True
    knots: ClassVar[tuple[float, ...]] = (1.0,)
    core: ClassVar[None] = None

    @property
    def kernel_identity(self) -> KernelIdentity | None:
        return _identity(TruncatedQuadraticBase, tail_scale=2.0)

    def _value(self, u: Tensor) -> Tensor:
        return F.relu(1 - u).square()

    def _derivative(self, u: Tensor) -> Tensor:
        return -2 * F.relu(1 - u)

    def _curvature(self, u: Tensor) -> Tensor:
        return 2 * (u < 1).to(u.dtype)


@dataclass(frozen=True)
class SmoothedHinge(Surrogate):
    """The Huber-smoothed hinge of width γ.

        φ(u) = 1 − γ/2 − u          for u ≤ 1 − γ
             = (1 − u)² / (2γ)      for 1 − γ < u ≤ 1
             = 0                    for u > 1

    For γ < 1 it equals `LinearCore("truncated_quadratic", tau=1 − γ, sharpness=1/γ)`.

    Args:
        width: γ > 0, length of the quadratic interval that replaces the kink of the hinge.
    """

    width: float = 0.5

    lipschitz: ClassVar[float] = 1.0
    is_c1: ClassVar[bool] = True
    is_c2: ClassVar[bool] = False
    is_monotone: ClassVar[bool] = True
    vanishes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive("width", self.width, "pass the width of the quadratic interval, for example 0.5")

    @property
    def smoothness(self) -> float:
        return 1 / self.width

    @property
    def knots(self) -> tuple[float, ...]:
        return (1 - self.width, 1.0)

    @property
    def core(self) -> tuple[float, float] | None:
        return (-math.inf, 1 - self.width) if self.width < 1 else None

    @property
    def kernel_identity(self) -> KernelIdentity | None:
        return _identity(
            TruncatedQuadraticBase, tau=1 - self.width, width=math.inf, sharpness=1 / self.width, factor=self.width
        )

    def _value(self, u: Tensor) -> Tensor:
        violation = F.relu(1 - u)
        # Gradients at violation = width: clamp has 1 and relu has 0, so their sum is the correct slope.
        return violation.clamp(max=self.width).square() / (2 * self.width) + F.relu(violation - self.width)

    def _derivative(self, u: Tensor) -> Tensor:
        return -F.relu(1 - u).clamp(max=self.width) / self.width

    def _curvature(self, u: Tensor) -> Tensor:
        violation = 1 - u
        return ((violation > 0) & (violation <= self.width)).to(u.dtype) / self.width


@dataclass(frozen=True)
class Logistic(Surrogate):
    """φ(u) = log(1 + e^{−u}), the logistic loss; equals cross-entropy with `form="logodds"`."""

    lipschitz: ClassVar[float] = 1.0
    smoothness: ClassVar[float] = 0.25
    is_c1: ClassVar[bool] = True
    is_c2: ClassVar[bool] = True
    is_monotone: ClassVar[bool] = True
    vanishes: ClassVar[bool] = True
    knots: ClassVar[tuple[float, ...]] = ()
    core: ClassVar[None] = None

    @property
    def kernel_identity(self) -> KernelIdentity | None:
        return _identity(LogisticBase)

    def _value(self, u: Tensor) -> Tensor:
        return -F.logsigmoid(u)

    def _derivative(self, u: Tensor) -> Tensor:
        return -torch.sigmoid(-u)

    def _curvature(self, u: Tensor) -> Tensor:
        return torch.sigmoid(u) * torch.sigmoid(-u)


@dataclass(frozen=True)
class Exponential(Surrogate):
    """φ(u) = e^{−u}, the loss of AdaBoost; overflows to inf for u < −88 in float32."""

    lipschitz: ClassVar[float] = math.inf
    smoothness: ClassVar[float] = math.inf
    is_c1: ClassVar[bool] = True
    is_c2: ClassVar[bool] = True
    is_monotone: ClassVar[bool] = True
    vanishes: ClassVar[bool] = True
    knots: ClassVar[tuple[float, ...]] = ()
    core: ClassVar[None] = None

    @property
    def kernel_identity(self) -> KernelIdentity | None:
        return _identity(ExponentialBase, parameter_1=math.inf)

    def _value(self, u: Tensor) -> Tensor:
        return torch.exp(-u)

    def _derivative(self, u: Tensor) -> Tensor:
        return -torch.exp(-u)

    def _curvature(self, u: Tensor) -> Tensor:
        return torch.exp(-u)


@dataclass(frozen=True)
class ConvolutionalFenchelYoung(Surrogate):
    """Binary convolutional Fenchel–Young loss of Cao et al. 2025, for Shannon entropy and the 0-1 loss, in closed form.

        φ(u) = log(1 + e^{1−u})             for u > 1
             = (1 − u)/2 + log 2            for |u| ≤ 1
             = log(1 + e^{−1−u}) + 1        for u < −1

    It equals ½ · `LinearCore("logistic", tau=1, sides=2)`. For more classes use `analysis.fenchel_young_loss`.
    """

    lipschitz: ClassVar[float] = 1.0
    smoothness: ClassVar[float] = 0.25
    is_c1: ClassVar[bool] = True
    is_c2: ClassVar[bool] = False
    is_monotone: ClassVar[bool] = True
    vanishes: ClassVar[bool] = True
    knots: ClassVar[tuple[float, ...]] = (-1.0, 1.0)
    core: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    @property
    def kernel_identity(self) -> KernelIdentity | None:
        return _identity(LogisticBase, tau=1.0, width=2.0, tail_scale=2.0, factor=0.5)

    def _value(self, u: Tensor) -> Tensor:
        # Split into core and tail as in `LinearCore._value`, for correct gradients at the knots.
        line = F.relu((1 - u).clamp(max=2)) / 2
        return line - F.logsigmoid(-self._tail_argument(u))

    def _derivative(self, u: Tensor) -> Tensor:
        return -torch.sigmoid(self._tail_argument(u))

    def _curvature(self, u: Tensor) -> Tensor:
        z = self._tail_argument(u)
        return (torch.sigmoid(z) * torch.sigmoid(-z)).masked_fill((u >= -1) & (u < 1), 0.0)

    @staticmethod
    def _tail_argument(u: Tensor) -> Tensor:
        return (1 - u).clamp(max=0) + F.relu(-1 - u)


def _identity(
    base: type[Base], tau: float = 0.0, width: float = 0.0, sharpness: float = 1.0, tail_scale: float = 1.0,
    factor: float = 1.0, parameter_1: float = 0.0,
) -> KernelIdentity | None:  # fmt: skip
    """Returns the identity with this base; the default is φ(u) = Φ(−u)."""
    if base.kernel_index is None:
        return None
    return KernelIdentity(base.kernel_index, tau, width, sharpness, tail_scale, factor, parameter_1)
