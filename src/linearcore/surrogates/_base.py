"""Base class of surrogates: convex functions φ of a margin u, with derivatives and declared properties.

Conventions of the whole library:

* A *margin* u is positive if the prediction is correct: u = y·h for y ∈ {−1, +1}, u = s_y − s_v for scores s.
* φ is decreasing at zero: φ'(0) < 0. `value` is φ, `derivative` is φ', `curvature` is φ''.
* At a knot, where φ'' jumps, `curvature` returns the limit from the right, as autograd does.
* Properties are declared as attributes, not computed: constants and booleans that hold for all u. `tests/laws` checks
  them. An infinite constant is `math.inf`.
* Tensors keep their dtype, device and graph; half precisions are computed in float32. Other inputs are converted as
  NumPy does, and the result is NumPy.

Two examples. The paper's binary loss is a surrogate alone: `LinearCore().value(y * h)`. For n classes a *form* turns scores
into margins: `multiclass_loss(scores, target, surrogate=LinearCore(), form="pairwise")`. With `surrogate=Logistic()` and
`form="logodds"` the same call computes cross-entropy.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple, overload

import numpy as np
import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore._typing import NumPyFloat, NumPyLike, compute_dtype


class KernelIdentity(NamedTuple):
    """A surrogate that the compiled kernels implement, with the base Φ = `BASES[base]` of kernels/compiled/surrogate.h.

    z = sharpness · (tau − u),  line = min(max(z, 0), width),  tail = z − line
    φ(u) = factor · (line + tail_scale · Φ(tail)),   −φ'(u) = factor · sharpness · tail_scale · Φ'(tail)
    """

    base: int
    tau: float
    width: float
    sharpness: float
    tail_scale: float
    factor: float
    parameter_1: float = 0.0
    parameter_2: float = 0.0


class Surrogate(ABC):
    """Convex surrogate φ(u) of the 0-1 loss 1[u ≤ 0], with derivatives and declared properties.

    To add a surrogate, subclass this as a frozen dataclass, implement `_value`, `_derivative` and `_curvature` for
    float32/float64 tensors, and declare the properties. Add an instance to `tests/cases.py`; the tests check it.

    Attributes:
        lipschitz: sup |φ'|.
        smoothness: sup φ''; inf if φ' has a jump.
        is_convex, is_c1, is_c2: φ is convex, once or twice continuously differentiable.
        is_monotone: φ is non-increasing.
        vanishes: φ(u) → 0 as u → ∞, so a competing class with score −inf adds no loss.
        knots: margins at which φ is not C^∞, in ascending order.
        core: the largest interval around 0 on which φ is linear (affine), or None.
        lines: (slope, intercept) of each line if φ is a maximum of lines, otherwise empty.
        is_proven: the declared properties are proven, not only checked on a grid as for a `UserBase`.
    """

    is_convex: ClassVar[bool] = True

    @property
    def is_proven(self) -> bool:
        return True

    @property
    def kernel_identity(self) -> KernelIdentity | None:
        """What the compiled kernels need to know, or None if they do not implement the surrogate."""
        return None

    @property
    @abstractmethod
    def lipschitz(self) -> float: ...

    @property
    @abstractmethod
    def smoothness(self) -> float: ...

    @property
    @abstractmethod
    def is_c1(self) -> bool: ...

    @property
    @abstractmethod
    def is_c2(self) -> bool: ...

    @property
    @abstractmethod
    def is_monotone(self) -> bool: ...

    @property
    @abstractmethod
    def vanishes(self) -> bool: ...

    @property
    @abstractmethod
    def knots(self) -> tuple[float, ...]: ...

    @property
    @abstractmethod
    def core(self) -> tuple[float, float] | None: ...

    @property
    def lines(self) -> tuple[tuple[float, float], ...]:
        return ()

    @property
    def bounds_zero_one(self) -> bool:
        """Whether φ(u) ≥ 1[u ≤ 0] everywhere.

        φ is convex, φ'(0) < 0 and φ ≥ 0, so φ(0) ≥ 1 is necessary and sufficient. With several competing classes the
        property holds for the sum of φ, but not for the mean.
        """
        return float(self.value(0.0)) >= 1.0

    @abstractmethod
    def _value(self, u: Tensor) -> Tensor: ...

    @abstractmethod
    def _derivative(self, u: Tensor) -> Tensor: ...

    @abstractmethod
    def _curvature(self, u: Tensor) -> Tensor: ...

    def _value_of_difference(self, reference: Tensor, scores: Tensor, *, overwrite: bool) -> Tensor:
        """Returns φ(reference − scores) without a graph, in new memory; may overwrite `scores` if `overwrite`.

        Kernels call this on blocks. Override it to save memory traffic and temporaries.
        """
        # A user's function may return an expanded constant; contiguous() copies it.
        return self._value(reference - scores).contiguous()

    def _derivative_of_difference(self, reference: Tensor, scores: Tensor, *, overwrite: bool) -> tuple[Tensor, float]:
        """Returns (t, c) with t · c = φ'(reference − scores); otherwise as `_value_of_difference`."""
        return self._derivative(reference - scores).contiguous(), 1.0

    @overload
    def value(self, margin: Tensor) -> Tensor: ...
    @overload
    def value(self, margin: NumPyLike) -> NumPyFloat: ...
    def value(self, margin: Tensor | NumPyLike) -> Tensor | NumPyFloat:
        """Returns φ(u), elementwise, for any shape."""
        return _evaluate(self._value, margin)

    @overload
    def derivative(self, margin: Tensor) -> Tensor: ...
    @overload
    def derivative(self, margin: NumPyLike) -> NumPyFloat: ...
    def derivative(self, margin: Tensor | NumPyLike) -> Tensor | NumPyFloat:
        """Returns φ'(u), elementwise, for any shape; at a kink the right derivative."""
        return _evaluate(self._derivative, margin)

    @overload
    def curvature(self, margin: Tensor) -> Tensor: ...
    @overload
    def curvature(self, margin: NumPyLike) -> NumPyFloat: ...
    def curvature(self, margin: Tensor | NumPyLike) -> Tensor | NumPyFloat:
        """Returns φ''(u), elementwise, for any shape; at a knot the limit from the right."""
        return _evaluate(self._curvature, margin)

    @overload
    def posterior(self, margin: Tensor) -> Tensor: ...
    @overload
    def posterior(self, margin: NumPyLike) -> NumPyFloat: ...
    def posterior(self, margin: Tensor | NumPyLike) -> Tensor | NumPyFloat:
        """Returns the P(label = +1) for which u minimises the expected loss: φ'(−u) / (φ'(u) + φ'(−u)).

        With a `LinearCore` the result is exactly ½ for |u| ≤ τ, so the loss does not estimate probabilities there. Margins
        at which a non-monotone φ increases minimise no expected loss; the result is 0 or 1.
        """
        return _evaluate(self._posterior, margin)

    def _posterior(self, u: Tensor) -> Tensor:
        slope = -self._derivative(u).clamp(max=0)
        mirrored = -self._derivative(-u).clamp(max=0)
        # 1/(1 + a/b) instead of b/(a + b): a slope may be infinite, but the ratio is finite. If the ratio would overflow,
        # the posterior is 0; dividing by 1 then keeps its gradient 0 as well.
        is_zero = mirrored <= slope * torch.finfo(u.dtype).tiny
        ratio = slope / torch.where(is_zero, torch.ones_like(mirrored), mirrored)
        return torch.where(is_zero, torch.zeros_like(mirrored), 1 / (1 + ratio))


def _evaluate(function: Callable[[Tensor], Tensor], margin: Tensor | NumPyLike) -> Tensor | NumPyFloat:
    """Applies `function`, written for float32/float64 tensors, to a tensor or to NumPy-like input."""
    if isinstance(margin, Tensor):
        if not margin.is_floating_point():
            raise TypeError(complaint("margin", "be floating point", margin.dtype, "convert it with `.float()`"))
        return function(margin.to(compute_dtype(margin))).to(margin.dtype)
    array = np.asarray(margin)
    if array.dtype.kind in "iub" or (array.dtype.kind == "f" and array.dtype.itemsize > 8):
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        raise TypeError(complaint("margin", "be real numbers", array.dtype, "pass a tensor, an array or a float"))
    # Copied, because torch warns about read-only arrays and rejects non-native byte orders.
    result = _evaluate(function, torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C")))
    out: NumPyFloat = result.numpy()[()]  # type: ignore[union-attr]
    return out
