"""A surrogate from a user's function, with properties that are measured instead of declared."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.surrogates._base import Surrogate
from linearcore.surrogates._expression import TensorFunction, parse_expression
from linearcore.surrogates._measure import Facts, measure


@dataclass(frozen=True)
class _Formula:
    """The function of a formula. It is compared, copied and pickled by its text."""

    text: str
    function: TensorFunction = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "function", parse_expression(self.text))

    def __call__(self, u: Tensor) -> Tensor:
        return self.function(u).expand_as(u)  # A constant is one number.

    def __reduce__(self) -> tuple[type["_Formula"], tuple[str]]:
        return type(self), (self.text,)


@dataclass(frozen=True, repr=False)
class UserSurrogate(Surrogate):
    """Surrogate from a callable φ, for the analysis and for losses.

    Its properties (constants, knots, core, monotone, smooth) are measured at points in [−30, 30] and at a few points up to
    ±10⁴. That is not a proof: `is_proven` is False. If φ is a linear core of a base Φ, `UserBase` needs fewer assumptions.

    Args:
        function: φ, written with torch operations, elementwise on a tensor of any shape. Derivatives are autograd's.
        name: name in reports.

    Raises:
        TypeError: if `function` does not map tensors to tensors of the same shape.
        ValueError: if φ is not finite near 0, not convex, negative, not differentiable at 0, or has φ'(0) ≥ 0.

    Example:
        >>> from linearcore.surrogates import UserSurrogate
        >>> phi = UserSurrogate.from_expression("max(0, 1 - u)")
        >>> phi.core, phi.knots, phi.is_c1
        ((-inf, 1.0), (1.0,), False)
    """

    function: Callable[[Tensor], Tensor]
    name: str = "user"
    facts: Facts = field(init=False, compare=False)

    def __post_init__(self) -> None:
        zero = torch.zeros(2, dtype=torch.float64)
        try:
            is_elementwise = self._value(zero).shape == zero.shape and self._curvature(zero).shape == zero.shape
        except Exception as error:
            must, advice = "map tensors to tensors", "write it with torch operations"
            raise TypeError(complaint("function", must, f"{error!r}", advice)) from error
        if not is_elementwise:
            must, advice = "return a tensor of the shape of its input", "write it with elementwise operations"
            raise TypeError(complaint("function", must, tuple(self._value(zero).shape), advice))
        object.__setattr__(self, "facts", measure(self._value, self._derivative, self._curvature))

    @classmethod
    def from_expression(cls, text: str) -> "UserSurrogate":
        """Returns the surrogate of a formula such as "log1p(exp(-u))"; see `parse_expression`.

        Surrogates of equal text are equal, and can be pickled.
        """
        formula = _Formula(text.strip() if isinstance(text, str) else text)
        return cls(formula, formula.text)

    def __repr__(self) -> str:
        return f"UserSurrogate({self.name!r})"

    @property
    def is_proven(self) -> bool:
        return False

    @property
    def lipschitz(self) -> float:
        return self.facts.lipschitz

    @property
    def smoothness(self) -> float:
        return self.facts.smoothness

    @property
    def is_c1(self) -> bool:
        return self.facts.is_c1

    @property
    def is_c2(self) -> bool:
        return self.facts.is_c1 and not self.facts.knots

    @property
    def is_monotone(self) -> bool:
        return self.facts.is_monotone

    @property
    def vanishes(self) -> bool:
        return self.facts.vanishes

    @property
    def knots(self) -> tuple[float, ...]:
        return self.facts.knots

    @property
    def core(self) -> tuple[float, float] | None:
        return self.facts.core

    @property
    def lines(self) -> tuple[tuple[float, float], ...]:
        return self.facts.lines

    def _value(self, u: Tensor) -> Tensor:
        return self.function(u)

    def _derivative(self, u: Tensor) -> Tensor:
        return _slope(self.function, u)

    def _curvature(self, u: Tensor) -> Tensor:
        return _slope(self._derivative, u)


def _slope(function: Callable[[Tensor], Tensor], u: Tensor) -> Tensor:
    slope: Tensor = torch.func.grad(lambda point: function(point).sum())(u)
    return slope
