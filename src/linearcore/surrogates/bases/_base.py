"""Base class of the functions Φ that define the tails of a linear-core surrogate."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor


@dataclass(frozen=True)
class Half:
    """Properties of Φ on one half-line H: z ≤ 0 (`left`) or z ≥ 0 (`right`).

    Attributes:
        slope: sup |Φ'| on H.
        curvature: sup Φ'' on H.
        is_flat_at_zero: Φ is C² on H and Φ''(z) → 0 as z → 0 in H, so φ is C² at the end of the core.
        knots: points z ≠ 0 in H at which Φ is not C^∞.
    """

    slope: float
    curvature: float
    is_flat_at_zero: bool = False
    knots: tuple[float, ...] = ()


class Base(ABC):
    """Convex, continuously differentiable function Φ ≥ 0 with Φ'(0) > 0, with declared properties.

    `value`, `derivative` and `curvature` map float32 or float64 tensors to tensors. They must be correct for all z
    including ±inf, and `value` must be twice differentiable by autograd.

    Attributes:
        name: the name in `LinearCore(base=name)`.
        at_zero, slope_at_zero: Φ(0) and Φ'(0).
        left, right: properties on z ≤ 0 and on z ≥ 0.
        is_monotone: Φ' ≥ 0 on z ≤ 0.
        vanishes: Φ(z) → 0 as z → −∞.
        is_proven: the declared properties are proven, not only checked on a grid.
        kernel_index, kernel_parameters: number and parameters of Φ in kernels/compiled/surrogate.h; None: not compiled.
    """

    is_proven: ClassVar[bool] = True
    kernel_index: ClassVar[int | None] = None

    @property
    def kernel_parameters(self) -> tuple[float, float]:
        return 0.0, 0.0

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
        """Returns Φ(z)."""

    def value_left_(self, z: Tensor) -> Tensor:
        """Returns Φ(z) for z ≤ 0 without a graph; may overwrite z. Kernels call it on blocks; override it for speed."""
        return self.value(z)

    @abstractmethod
    def derivative(self, z: Tensor) -> Tensor:
        """Returns Φ'(z)."""

    @abstractmethod
    def curvature(self, z: Tensor) -> Tensor:
        """Returns Φ''(z)."""
