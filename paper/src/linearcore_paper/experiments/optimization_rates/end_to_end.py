"""0-1 excess risk of linear scores, against gradient steps on the population and against samples.

Features are Gaussian, x = A z, and the label depends on the first coordinate of z: its bias is t(z₁), an odd function. For
every convex decreasing loss the best linear score then has the direction of z₁, the Bayes classifier, by symmetry. So the
0-1 excess of every loss tends to 0, and only the speed differs. It is a function of the angle between the scores and z₁.

The bound is T⁻¹(surrogate excess over all measurable scores), T the transformation of Theorem 3.2; T(t) ≥ τt for a linear
core. A linear score cannot attain the pointwise minimum, so the bound does not tend to 0.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore.analysis import transform
from linearcore.surrogates import Hinge, LinearCore, Logistic, Surrogate
from linearcore_paper.experiments._numbers import round_values

LOSSES: dict[str, tuple[str, Surrogate]] = {
    "hinge": ("hinge", Hinge()),
    "logistic": ("logistic loss", Logistic()),
    "lc-0.25": ("linear core (τ = 0.25)", LinearCore(tau=0.25)),
    "lc-1": ("linear core (τ = 1)", LinearCore()),
    "lc-4": ("linear core (τ = 4)", LinearCore(tau=4.0)),
}
#: Bias of the label as a function of z₁.
LAWS: dict[str, tuple[str, Callable[[Tensor], Tensor]]] = {
    "boundary": ("noise near the boundary", lambda z: torch.tanh(1.5 * z)),
    "flips": ("20 % random flips", lambda z: 0.6 * torch.sign(z)),
}
#: Condition number and angle of the features' covariance, in the plane of the steps.
CONDITION, ANGLE = 100.0, 1.0
#: Step sizes, as multiples of 1/L for smooth losses and of 1/√k for the hinge; the best
#: one counts.
MULTIPLES = tuple(2 ** (power / 2) for power in range(16))
#: The 0-1 excess that a run must reach.
TARGET = 0.01
#: Number of features in the curves against samples.
FEATURES = 10


def against_steps(loss: str, law: str, points: int, steps: int) -> dict[str, Any]:
    """Runs gradient descent on the population risk in two dimensions, with every step size.

    The excess of a step is the largest from there on, because scores may swing past the best direction. Returns the step
    size that keeps the excess below `TARGET` first, with its excess and bound after some of the steps.
    """
    phi, population = LOSSES[loss][1], Population.on_grid(LOSSES[loss][1], law, points)
    turn = torch.tensor([[math.cos(ANGLE), -math.sin(ANGLE)], [math.sin(ANGLE), math.cos(ANGLE)]], dtype=torch.float64)
    covariance = turn @ torch.diag(torch.tensor([1.0, 1 / CONDITION], dtype=torch.float64)) @ turn.T
    is_smooth = math.isfinite(phi.smoothness)
    multiples = torch.tensor(MULTIPLES, dtype=torch.float64).unsqueeze(-1)
    v = torch.zeros(len(MULTIPLES), 2, dtype=torch.float64)
    path = torch.empty(steps, len(MULTIPLES), 2, dtype=torch.float64)
    for step in range(1, steps + 1):
        size = multiples / (phi.smoothness if is_smooth else math.sqrt(step))
        # Gradient descent on the weights of x moves the weights of z along the covariance.
        v = v - size * population.gradient(v) @ covariance
        path[step - 1] = v
    excess = zero_one_excess(law, path)
    from_here_on = np.maximum.accumulate(excess[::-1])[::-1]
    reached = [int(np.argmax(below)) + 1 if below.any() else None for below in (from_here_on <= TARGET).T]
    best = min(range(len(MULTIPLES)), key=lambda index: (reached[index] or steps + 1, from_here_on[-1, index]))
    recorded = np.unique(np.geomspace(1, steps, 40).astype(int))
    return {
        "multiple": MULTIPLES[best],
        "reached": reached[best],
        "step": recorded.tolist(),
        "excess": round_values(from_here_on[recorded - 1, best], 4),
        "bound": round_values(population.bound(path[recorded - 1, best]), 4),
    }


def against_samples(loss: str, law: str, sizes: tuple[int, ...], runs: int, points: int, seed: int) -> dict[str, Any]:
    """Minimises the empirical risk in ten dimensions, for each number of samples.

    Every loss sees the same samples. Returns mean and standard error of the 0-1 excess, the mean bound, the slope of a
    log-log fit, and the excess of every run with the most samples.
    """
    phi, population = LOSSES[loss][1], Population.on_grid(LOSSES[loss][1], law, points)
    rows, bounds = [], []
    for size in sizes:
        stream = torch.Generator().manual_seed(seed + size)
        z = torch.randn(runs, size, FEATURES, dtype=torch.float64, generator=stream)
        bias = LAWS[law][1](z[..., 0])
        labels = torch.where(torch.rand(runs, size, dtype=torch.float64, generator=stream) < (1 + bias) / 2, 1.0, -1.0)
        signed = z * labels.unsqueeze(-1)
        w = _fit(phi, signed) if math.isfinite(phi.smoothness) else torch.stack([_fit_hinge(one) for one in signed])
        # By symmetry only the length of the other coordinates matters.
        v = torch.stack([w[:, 0], w[:, 1:].norm(dim=-1)], -1)
        rows.append(zero_one_excess(law, v))
        bounds.append(population.bound(v).mean())
    values = np.array(rows)
    means = values.mean(-1)
    return {
        "samples": list(sizes),
        "excess": round_values(means, 4),
        "error": round_values(values.std(-1, ddof=1) / math.sqrt(runs), 3),
        "bound": round_values(bounds, 4),
        "slope": round_values(np.polyfit(np.log(sizes[-3:]), np.log(means[-3:]), 1)[0], 4),
        "last": round_values(values[-1], 3),
    }


class Population(NamedTuple):
    """The population of two-dimensional features on a grid; t is odd, so half of the plane is enough.

    Attributes:
        phi: the surrogate.
        z: (points, 2).
        less, more: weights of the less and of the more likely label, (points,).
        least: the least risk over all measurable scores.
    """

    phi: Surrogate
    z: Tensor
    less: Tensor
    more: Tensor
    least: float

    @classmethod
    def on_grid(cls, phi: Surrogate, law: str, points: int) -> "Population":
        """Takes midpoints of a grid on z₁ > 0 with normalised Gaussian weights."""
        axis = (torch.arange(2 * points, dtype=torch.float64) + 0.5) / points * 6 - 6
        z = torch.cartesian_prod(axis[points:], axis)
        weights = torch.exp(-z.square().sum(-1) / 2)
        weights = weights / weights.sum()
        t = LAWS[law][1](z[:, 0])
        least = weights.numpy() @ (float(phi.value(0.0)) - transform(phi, t.numpy()))
        return cls(phi, z, (1 - t) / 2 * weights, (1 + t) / 2 * weights, float(least))

    def gradient(self, v: Tensor) -> Tensor:
        """Returns the gradient of the risk at each row of v (rows, 2)."""
        margins = v @ self.z.T
        return (self.more * self.phi.derivative(margins) - self.less * self.phi.derivative(-margins)) @ self.z

    def bound(self, v: Tensor) -> npt.NDArray[np.float64]:
        """Returns the bound on the 0-1 excess at each row of v: T⁻¹ of the surrogate excess."""
        margins = v @ self.z.T
        risk = (self.more * self.phi.value(margins) + self.less * self.phi.value(-margins)).sum(-1)
        t = np.concatenate([[0.0], np.geomspace(1e-9, 1, 400)])
        return np.asarray(np.interp(risk.numpy() - self.least, transform(self.phi, t), t))


def zero_one_excess(law: str, v: Tensor) -> npt.NDArray[np.float64]:
    """Returns the 0-1 excess of scores v (…, 2), a function of their angle to z₁, interpolated between 500 angles.

    It is 2 ∫ |t(z)| P(the signs differ | z₁ = z) over z > 0.
    """
    angles = np.concatenate([[0.0], np.geomspace(1e-6, math.pi / 2, 500)])
    tangents = torch.from_numpy(np.tan(angles).clip(1e-12)).unsqueeze(-1)
    # A grid in units of the tangent where that is small, because the signs differ only up to z of its size.
    unit = tangents.clamp(max=1.0) / 250
    z = (torch.arange(2000, dtype=torch.float64) + 0.5) * unit
    weight = torch.exp(-z.square() / 2) / math.sqrt(2 * math.pi) * unit * LAWS[law][1](z).abs()
    table = (torch.erfc(z / tangents / math.sqrt(2)) * weight).sum(-1).numpy()
    angle = torch.atan2(v[..., 1].abs(), v[..., 0]).numpy()
    # Beyond a right angle the scores are wrong more often than right.
    return np.asarray(np.where(angle <= math.pi / 2, np.interp(angle, angles, table), 2 * table[-1]))


def _fit(phi: Surrogate, signed: Tensor, steps: int = 500) -> Tensor:
    """Minimises the mean of φ(w · x y) for each data set by Nesterov's method from 0."""
    runs, size, features = signed.shape
    largest = torch.linalg.matrix_norm(signed, 2).square() / size
    rate = (1 / (phi.smoothness * largest)).unsqueeze(-1)
    w = torch.zeros(runs, features, dtype=torch.float64)
    ahead, weight = w, 1.0
    for _ in range(steps):
        slopes = phi.derivative(torch.einsum("rnd,rd->rn", signed, ahead))
        new = ahead - rate * torch.einsum("rn,rnd->rd", slopes, signed) / size
        grown = (1 + math.sqrt(1 + 4 * weight**2)) / 2
        ahead, weight = new + (weight - 1) / grown * (new - w), grown
        w = new
    return w


def _fit_hinge(signed: Tensor) -> Tensor:
    """Minimises the mean hinge loss as a linear program: min Σ ξ with ξ ≥ 0 and ξ ≥ 1 − w · x y."""
    from scipy.optimize import linprog
    from scipy.sparse import eye, hstack

    size, features = signed.shape
    costs = np.concatenate([np.zeros(features), np.ones(size)])
    constraints = hstack([-signed.numpy(), -eye(size)], format="csr")
    bounds = [(None, None)] * features + [(0, None)] * size
    solution = linprog(costs, A_ub=constraints, b_ub=-np.ones(size), bounds=bounds, method="highs")
    return torch.from_numpy(solution.x[:features].copy())
