"""The quartic base, Φ(z) = a z + z⁴/12 + K: the paper's example of a twice differentiable surrogate."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

from torch import Tensor

from linearcore._checks import complaint, positive
from linearcore.surrogates.bases._base import Base, Half


@dataclass(frozen=True)
class QuarticBase(Base):
    """The paper's quartic base, Φ(z) = a z + z⁴/12 + K: C2, but not monotone and not Lipschitz.

    Φ is decreasing for z < −(3a)^{1/3}, so the loss increases for margins above τ + (3a)^{1/3}: correct predictions with a
    large margin are penalised. Prefer `GammaBase`, which is C2, monotone and Lipschitz.

    Args:
        a: the slope at zero, positive.
        constant: K; None: the smallest K with Φ ≥ 0, which is (3a/4)(3a)^{1/3}.

    Reference: the paper, section 3.1, "The condition Φ''(0) = 0 is not vacuous".
    """

    a: float = 1.0
    constant: float | None = None

    name: ClassVar[str] = "quartic"
    kernel_index: ClassVar[int | None] = 4
    left: ClassVar[Half] = Half(slope=math.inf, curvature=math.inf, is_flat_at_zero=True)
    right: ClassVar[Half] = Half(slope=math.inf, curvature=math.inf, is_flat_at_zero=True)
    is_monotone: ClassVar[bool] = False
    vanishes: ClassVar[bool] = False

    def __post_init__(self) -> None:
        a = positive("a", self.a, "pass the slope of the quartic at zero, for example 1.0")
        least = 0.75 * a * (3 * a) ** (1 / 3)
        constant = least if self.constant is None else self.constant
        if not (isinstance(constant, Real) and least <= constant < math.inf):
            raise ValueError(
                complaint("constant", f"be at least {least:.6g}", constant, "a smaller one makes the base negative")
            )
        object.__setattr__(self, "a", a)
        object.__setattr__(self, "constant", float(constant))

    @property
    def at_zero(self) -> float:
        assert self.constant is not None  # set in __post_init__
        return self.constant

    @property
    def slope_at_zero(self) -> float:
        return self.a

    @property
    def kernel_parameters(self) -> tuple[float, float]:
        return self.a, self.at_zero

    def value(self, z: Tensor) -> Tensor:
        # Factored, because a z + z⁴/12 is −inf + inf = NaN at z = −inf.
        return z * (self.a + z * z * z / 12) + self.at_zero

    def derivative(self, z: Tensor) -> Tensor:
        return self.a + z * z * z / 3

    def curvature(self, z: Tensor) -> Tensor:
        return z * z
