"""The linear-core surrogate: linear near margin zero, with a convex tail beyond τ."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from linearcore._checks import one_of, positive
from linearcore.surrogates._base import KernelIdentity, Surrogate
from linearcore.surrogates.bases import BASES, Base, resolve_base


@dataclass(frozen=True, repr=False)
class LinearCore(Surrogate):
    """Convex surrogate that is exactly linear, with slope −1, for margins near zero (the core).

    With `sides=1` its slope and curvature are bounded, except for the base "quartic" (see `lipschitz`, `smoothness`).

    The base Φ defines the tail. With c = Φ(0)/Φ'(0) and sharpness 1:

        φ(u) = τ − u + c                 in the core: u ≤ τ (one-sided), |u| ≤ τ (two-sided)
             = Φ(τ − u)/Φ'(0)            for u > τ
             = Φ(−τ − u)/Φ'(0) + 2τ      for u < −τ, two-sided only

    Sharpness β replaces Φ(z) by Φ(βz)/β. It scales the curvature of the tail by β, and φ_{τ,β}(u) = φ_{βτ,1}(βu)/β.

    For binary labels the 0-1 regret (excess risk) is at most the surrogate regret divided by τ, for `sides` 1 and 2. With
    more classes the bound depends on the form: see section (a) of `docs/reading-the-paper-with-care.md`. Use `Logistic` for
    calibrated probabilities, because `posterior` is ½ for |u| ≤ τ.

    Args:
        base: Φ: "logistic", "exponential", "quartic", "truncated_quadratic", "gamma", or a `Base`.
        tau: τ > 0, the margin at which the core ends.
        sides: 1: linear for all u ≤ τ. 2: the core ends at −τ, too; for u < −τ the slope is below −1.
        sharpness: β > 0, factor of the curvature of the tail; with larger β the loss falls to 0 faster beyond τ.

    Example:
        >>> phi = LinearCore("truncated_quadratic", tau=1.0)
        >>> [float(phi.value(u)) for u in (-1.0, 0.0, 1.0, 1.5, 3.0)]
        [2.5, 1.5, 0.5, 0.125, 0.0]
        >>> phi.lipschitz, phi.smoothness, phi.knots
        (1.0, 1.0, (1.0, 2.0))

    Cost: a few elementwise operations and one evaluation of the base.

    Reference: Eqs. (1) and (2) of the paper (τ = 1), and appendix C for other τ.
    """

    base: str | Base = "logistic"
    tau: float = 1.0
    sides: int = 1
    sharpness: float = 1.0

    _identity: ClassVar[KernelIdentity | None]

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", resolve_base(self.base))
        object.__setattr__(self, "tau", positive("tau", self.tau, "pass the end of the linear core, for example 1.0"))
        one_of("sides", self.sides, (1, 2), "1: linear for all u ≤ tau; 2: tails on both sides")
        object.__setattr__(self, "sides", int(self.sides))
        sharpness = positive("sharpness", self.sharpness, "pass the factor of the curvature of the tail, for example 1.0")
        object.__setattr__(self, "sharpness", sharpness)
        # Stored, because every call of a loss reads it.
        object.__setattr__(self, "_identity", self._make_identity())

    def __repr__(self) -> str:
        base = repr(self._base.name) if BASES.get(self._base.name) == self._base else repr(self._base)
        return f"LinearCore({base}, tau={self.tau:g}, sides={self.sides}, sharpness={self.sharpness:g})"

    @property
    def offset(self) -> float:
        """φ(τ) = c/β."""
        return self._base.at_zero / self._base.slope_at_zero / self.sharpness

    @property
    def lipschitz(self) -> float:
        max_slope = self._base.left.slope if self.sides == 1 else max(self._base.left.slope, self._base.right.slope)
        return max_slope / self._base.slope_at_zero

    @property
    def smoothness(self) -> float:
        max_curvature = (
            self._base.left.curvature if self.sides == 1 else max(self._base.left.curvature, self._base.right.curvature)
        )
        return self.sharpness * max_curvature / self._base.slope_at_zero

    @property
    def is_c1(self) -> bool:
        return True

    @property
    def is_c2(self) -> bool:
        return self._base.left.is_flat_at_zero and (self.sides == 1 or self._base.right.is_flat_at_zero)

    @property
    def is_monotone(self) -> bool:
        return self._base.is_monotone

    @property
    def vanishes(self) -> bool:
        return self._base.vanishes

    @property
    def is_proven(self) -> bool:
        return self._base.is_proven

    @property
    def knots(self) -> tuple[float, ...]:
        right_of_core = [self.tau - z / self.sharpness for z in (0.0, *self._base.left.knots)]
        left_of_core = [-self.tau - z / self.sharpness for z in (0.0, *self._base.right.knots)]
        return tuple(sorted(right_of_core + (left_of_core if self.sides == 2 else [])))

    @property
    def core(self) -> tuple[float, float]:
        return (-math.inf if self.sides == 1 else -self.tau, self.tau)

    @property
    def kernel_identity(self) -> KernelIdentity | None:
        return self._identity

    @property
    def _base(self) -> Base:
        """The base as an object; `__post_init__` has resolved its name."""
        return self.base  # type: ignore[return-value]

    def _make_identity(self) -> KernelIdentity | None:
        if self._base.kernel_index is None:
            return None
        width = math.inf if self.sides == 1 else 2 * self.sharpness * self.tau
        tail_scale, factor = 1 / self._base.slope_at_zero, 1 / self.sharpness
        parameters = self._base.kernel_parameters
        return KernelIdentity(self._base.kernel_index, self.tau, width, self.sharpness, tail_scale, factor, *parameters)

    def _value(self, u: Tensor) -> Tensor:
        # Eqs. (1), (2) without branches, with z = β(τ − u): right tail for z < 0, core for 0 ≤ z ≤ 2βτ, then left tail.
        # z = line + tail_z, where `line` is z clamped to the core. At each point only one of the two has a nonzero
        # gradient, so autograd is correct at the knots too.
        z = self._from_core_end(u)
        line = F.relu(z if self.sides == 1 else z.clamp(max=2 * self.sharpness * self.tau))
        tail = self._base.value(self._tail_z(z))
        return _times(line.add(tail, alpha=1 / self._base.slope_at_zero), 1 / self.sharpness)

    def _derivative(self, u: Tensor) -> Tensor:
        tail_z = self._tail_z(self._from_core_end(u))
        return _times(self._base.derivative(tail_z), -1 / self._base.slope_at_zero)

    def _curvature(self, u: Tensor) -> Tensor:
        z = self._from_core_end(u)
        is_core = (z > 0) if self.sides == 1 else (z > 0) & (z <= 2 * self.sharpness * self.tau)
        # masked_fill instead of a product with the mask, because 0 · inf is NaN.
        curvature = _times(self._base.curvature(self._tail_z(z)), self.sharpness / self._base.slope_at_zero)
        return curvature.masked_fill(is_core, 0.0)

    def _value_of_difference(self, reference: Tensor, scores: Tensor, *, overwrite: bool) -> Tensor:
        z = self._from_core_end_(reference, scores, overwrite)
        line = z.clamp(min=0) if self.sides == 1 else z.clamp(0, 2 * self.sharpness * self.tau)
        tail_z = self._tail_z_(z)
        tail = self._base.value_left_(tail_z) if self.sides == 1 else self._base.value(tail_z)
        line.add_(tail, alpha=1 / self._base.slope_at_zero)
        return line if self.sharpness == 1 else line.mul_(1 / self.sharpness)

    def _derivative_of_difference(self, reference: Tensor, scores: Tensor, *, overwrite: bool) -> tuple[Tensor, float]:
        z = self._from_core_end_(reference, scores, overwrite)
        return self._base.derivative(self._tail_z_(z)).contiguous(), -1 / self._base.slope_at_zero

    def _from_core_end_(self, reference: Tensor, scores: Tensor, overwrite: bool) -> Tensor:
        """Returns β(τ − (reference − scores)). τ is added last, because rounding would lose it in a large reference."""
        z = (scores.sub_(reference) if overwrite else scores - reference).add_(self.tau)
        return z if self.sharpness == 1 else z.mul_(self.sharpness)

    def _tail_z_(self, z: Tensor) -> Tensor:
        """Returns `_tail_z(z)`; overwrites z."""
        return z.clamp_(max=0) if self.sides == 1 else z.sub_(z.clamp(0, 2 * self.sharpness * self.tau))

    def _from_core_end(self, u: Tensor) -> Tensor:
        """Returns z = β(τ − u)."""
        return _times(self.tau - u, self.sharpness)

    def _tail_z(self, z: Tensor) -> Tensor:
        """Returns the part of z outside the core: 0 in the core, negative in the right tail, positive in the left."""
        right_tail = z.clamp(max=0)
        return right_tail if self.sides == 1 else right_tail + F.relu(z - 2 * self.sharpness * self.tau)


def _times(tensor: Tensor, factor: float) -> Tensor:
    """Returns `tensor * factor`, without a copy if the factor is 1."""
    return tensor if factor == 1 else tensor * factor
