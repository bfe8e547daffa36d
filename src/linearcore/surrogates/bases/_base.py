"""What a base is: the function Φ that shapes the tails of a linear-core surrogate."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor


@dataclass(frozen=True)
class Half:
    """Facts about Φ on one half line, z ≤ 0 (`left`) or z ≥ 0 (`right`).

    Attributes:
        slope: sup |Φ'| there.
        curvature: sup Φ'' there.
        is_flat_at_zero: Φ is C² there and Φ'' → 0 as z → 0 from that side, which makes φ twice differentiable.
        knots: points z ≠ 0 there at which Φ is not smooth.
    """

    slope: float
    curvature: float
    is_flat_at_zero: bool = False
    knots: tuple[float, ...] = ()


class Base(ABC):
    """A convex, continuously differentiable Φ ≥ 0 with Φ'(0) > 0 and its facts.

    `value`, `derivative` and `curvature` take and give float32 or float64 tensors. They must be right at any z, ±inf
    included, and autograd must be able to differentiate `value` twice.

    Attributes:
        name: the word `LinearCore(base=…)` knows it by.
        at_zero, slope_at_zero: Φ(0) and Φ'(0).
        left, right: facts on z ≤ 0 and on z ≥ 0.
        is_monotone: Φ' ≥ 0 on z ≤ 0.
        vanishes: Φ(z) → 0 as z → −∞.
        is_proven: the facts are proven, and not only checked on a grid.
    """

    is_proven: ClassVar[bool] = True

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def at_zero(self) -> float: ...

    @property
    @abstractmethod
    def slope_at_zero(self) -> float: ...

    @property
    @abstractmethod
    def left(self) -> Half: ...

    @property
    @abstractmethod
    def right(self) -> Half: ...

    @property
    @abstractmethod
    def is_monotone(self) -> bool: ...

    @property
    @abstractmethod
    def vanishes(self) -> bool: ...

    @abstractmethod
    def value(self, z: Tensor) -> Tensor:
        """Φ(z)."""

    def value_left_(self, z: Tensor) -> Tensor:
        """Φ(z) for z ≤ 0, without a graph; may overwrite z. Kernels call it on blocks; override it to save time."""
        return self.value(z)

    @abstractmethod
    def derivative(self, z: Tensor) -> Tensor:
        """Φ'(z)."""

    @abstractmethod
    def curvature(self, z: Tensor) -> Tensor:
        """Φ''(z)."""
