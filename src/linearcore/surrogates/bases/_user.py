"""A base from a user-defined function."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.surrogates.bases._base import Base, Half
from linearcore.surrogates.bases._verify import verify_base

_UNKNOWN = Half(slope=math.inf, curvature=math.inf)


@dataclass(frozen=True, repr=False)
class UserBase(Base):
    """Base from a callable Φ, checked at construction.

    Args:
        function: Φ, written with torch operations, elementwise on a tensor of any shape.
        first: Φ'; None: autograd of `function`.
        second: Φ''; None: autograd of Φ'.
        left, right: properties on z ≤ 0 and z ≥ 0. By default the constants are infinite and `is_c2` is False.
        is_monotone: Φ' ≥ 0 on z ≤ 0; required for `form="logodds"`.
        vanishes: Φ(z) → 0 as z → −∞. False is always correct, but slower.
        name: name in reports.

    Raises:
        ValueError: if Φ is not convex, not C1, negative, has Φ'(0) ≤ 0, or violates a declared property, on a grid over
            [−30, 30].

    Example:
        >>> import torch
        >>> from linearcore import LinearCore
        >>> from linearcore.surrogates import UserBase
        >>> root = UserBase(lambda z: (z + torch.sqrt(z * z + 4)) / 2, is_monotone=True, name="root")
        >>> float(LinearCore(root).value(0.0))
        3.0
    """

    is_proven: ClassVar[bool] = False
    function: Callable[[Tensor], Tensor] = field(repr=False)
    first: Callable[[Tensor], Tensor] | None = field(default=None, repr=False)
    second: Callable[[Tensor], Tensor] | None = field(default=None, repr=False)
    left: Half = _UNKNOWN
    right: Half = _UNKNOWN
    is_monotone: bool = False
    vanishes: bool = False
    name: str = "user"
    _at_zero: float = field(init=False, repr=False, default=math.nan)
    _slope_at_zero: float = field(init=False, repr=False, default=math.nan)

    def __post_init__(self) -> None:
        zero = torch.zeros(1, dtype=torch.float64)
        try:
            is_elementwise = self.value(zero).shape == self.derivative(zero).shape == zero.shape
        except Exception as error:
            raise TypeError(
                complaint("function", "map tensors to tensors", f"{error!r}", "write it with torch operations")
            ) from error
        if not is_elementwise:
            shape = tuple(self.value(zero).shape)
            raise TypeError(
                complaint(
                    "function", "return a tensor of the shape of its input", shape, "write it with elementwise operations"
                )
            )
        object.__setattr__(self, "_at_zero", float(self.value(zero)))
        object.__setattr__(self, "_slope_at_zero", float(self.derivative(zero)))
        verify_base(self)

    def __repr__(self) -> str:
        return f"UserBase({self.name!r})"

    @property
    def at_zero(self) -> float:
        return self._at_zero

    @property
    def slope_at_zero(self) -> float:
        return self._slope_at_zero

    def value(self, z: Tensor) -> Tensor:
        return self.function(z)

    def derivative(self, z: Tensor) -> Tensor:
        return self.first(z) if self.first is not None else _slope(self.function, z)

    def curvature(self, z: Tensor) -> Tensor:
        return self.second(z) if self.second is not None else _slope(self.derivative, z)


def _slope(function: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
    # torch.func instead of torch.autograd, because it composes with vmap, compile and higher derivatives.
    slope: Tensor = torch.func.grad(lambda point: function(point).sum())(z)
    return slope
