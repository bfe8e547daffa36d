"""What a surrogate is: a convex function φ of a margin u, with its derivatives and its facts.

Conventions, fixed here once for the whole library:

* A *margin* u is positive when the prediction is right: u = y·h for y ∈ {−1, +1}, u = s_y − s_v for scores s.
* φ decreases through zero: φ'(0) < 0. `value` is φ, `derivative` φ', `curvature` φ''.
* At a knot, where φ'' jumps, `curvature` gives the limit from the right, which is also what autograd gives.
* *Facts* are attributes, not computations: constants and yes/no properties that hold on the whole line and that
  `tests/laws` reads back and checks. An infinite constant is `math.inf`.
* Tensors go in and come out with their dtype, device and graph; half precisions are computed in float32. Anything
  else is taken as NumPy takes it, and NumPy comes back.

Two worked pairings. The paper's loss for a binary label is a surrogate alone: `LinearCore().value(y * h)`. For n classes it
is a surrogate and a *form* that makes margins from scores: `multiclass_loss(scores, target, surrogate=LinearCore(),
form="pairwise")`. Put `Logistic()` and `form="logodds"` in the same call and it is cross-entropy.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, overload

import numpy as np
import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore._typing import NumPyFloat, NumPyLike, compute_dtype


class Surrogate(ABC):
    """A convex surrogate φ(u) of the 0-1 loss 1[u ≤ 0], with its derivatives and declared facts.

    To add one, subclass it as a frozen dataclass, write the three closed forms on float32/float64 tensors and declare
    the facts; then add an instance to `tests/cases.py`, and every law is checked on it.

    Attributes:
        lipschitz: sup |φ'|.
        smoothness: sup φ'' where it exists; inf where φ' jumps.
        is_convex, is_c1, is_c2: φ is convex, continuously differentiable once, twice.
        is_monotone: φ never increases.
        vanishes: φ(u) → 0 as u → ∞, so a competitor that is infinitely far away costs nothing.
        knots: margins, in rising order, where φ is not smooth (C^∞).
        core: the widest interval around 0 on which φ is affine, or None.
        lines: (slope, height at 0) of straight lines whose maximum φ is; none if it is no such maximum.
        is_proven: the facts are proven, and not only checked on a grid as those of a `UserBase` are.
    """

    is_convex: ClassVar[bool] = True
    lines: ClassVar[tuple[tuple[float, float], ...]] = ()

    @property
    def is_proven(self) -> bool:
        return True

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
    def bounds_zero_one(self) -> bool:
        """Whether φ(u) ≥ 1[u ≤ 0] everywhere.

        φ is convex and falls through zero, so φ(0) ≥ 1 decides for u ≤ 0, and φ ≥ 0 for u > 0. With several competitors
        it carries over to sums of φ, not to means.
        """
        return float(self.value(0.0)) >= 1.0

    @abstractmethod
    def _value(self, u: Tensor) -> Tensor: ...

    @abstractmethod
    def _derivative(self, u: Tensor) -> Tensor: ...

    @abstractmethod
    def _curvature(self, u: Tensor) -> Tensor: ...

    def _value_of_difference(self, reference: Tensor, scores: Tensor, *, overwrite: bool) -> Tensor:
        """φ(reference − scores), without a graph, in memory that the caller may overwrite; `scores` too if `overwrite`.

        Kernels call this on blocks, where passes over memory and temporaries are what costs. Override it to save some.
        """
        # contiguous copies what a user's function may have expanded from a constant.
        return self._value(reference - scores).contiguous()

    def _derivative_of_difference(self, reference: Tensor, scores: Tensor, *, overwrite: bool) -> tuple[Tensor, float]:
        """φ'(reference − scores) up to a factor, and the factor; otherwise as `_value_of_difference`."""
        return self._derivative(reference - scores).contiguous(), 1.0

    @overload
    def value(self, margin: Tensor) -> Tensor: ...
    @overload
    def value(self, margin: NumPyLike) -> NumPyFloat: ...
    def value(self, margin: Tensor | NumPyLike) -> Tensor | NumPyFloat:
        """φ(u), elementwise, any shape."""
        return _evaluate(self._value, margin)

    @overload
    def derivative(self, margin: Tensor) -> Tensor: ...
    @overload
    def derivative(self, margin: NumPyLike) -> NumPyFloat: ...
    def derivative(self, margin: Tensor | NumPyLike) -> Tensor | NumPyFloat:
        """φ'(u), elementwise, any shape; where φ has a kink, the slope on its right."""
        return _evaluate(self._derivative, margin)

    @overload
    def curvature(self, margin: Tensor) -> Tensor: ...
    @overload
    def curvature(self, margin: NumPyLike) -> NumPyFloat: ...
    def curvature(self, margin: Tensor | NumPyLike) -> Tensor | NumPyFloat:
        """φ''(u), elementwise, any shape; at a knot its limit from the right."""
        return _evaluate(self._curvature, margin)

    @overload
    def posterior(self, margin: Tensor) -> Tensor: ...
    @overload
    def posterior(self, margin: NumPyLike) -> NumPyFloat: ...
    def posterior(self, margin: Tensor | NumPyLike) -> Tensor | NumPyFloat:
        """P(label = +1) for which u minimises the expected loss: φ'(−u) / (φ'(u) + φ'(−u)).

        Exactly ½ inside a linear core, where every margin is optimal for a fair coin: a linear-core loss does not
        estimate probabilities there. Margins past the point where a non-monotone φ turns upwards minimise no
        expected loss; they get 0 or 1.
        """
        return _evaluate(self._posterior, margin)

    def _posterior(self, u: Tensor) -> Tensor:
        against = -self._derivative(u).clamp(max=0)
        towards = -self._derivative(-u).clamp(max=0)
        # 1/(1 + a/b) and not b/(a + b): the slopes themselves may be infinite, their ratio then is not. Where the ratio
        # would overflow the answer is 0, and dividing by 1 instead keeps its gradient 0 as well.
        certain = towards <= against * torch.finfo(u.dtype).tiny
        ratio = against / torch.where(certain, torch.ones_like(towards), towards)
        return torch.where(certain, torch.zeros_like(towards), 1 / (1 + ratio))


def _evaluate(function: Callable[[Tensor], Tensor], margin: Tensor | NumPyLike) -> Tensor | NumPyFloat:
    """Applies a closed form written for float32/float64 tensors to whatever the user has."""
    if isinstance(margin, Tensor):
        if not margin.is_floating_point():
            raise TypeError(complaint("margin", "be floating point", margin.dtype, "convert it with `.float()`"))
        return function(margin.to(compute_dtype(margin))).to(margin.dtype)
    array = np.asarray(margin)
    if array.dtype.kind in "iub" or (array.dtype.kind == "f" and array.dtype.itemsize > 8):
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        raise TypeError(complaint("margin", "be real numbers", array.dtype, "pass a tensor, an array or a float"))
    # A copy, because torch warns about arrays that NumPy marks read-only and refuses foreign byte orders.
    result = _evaluate(function, torch.from_numpy(np.array(array, dtype=array.dtype.newbyteorder("="), order="C")))
    out: NumPyFloat = result.numpy()[()]  # type: ignore[union-attr]
    return out
