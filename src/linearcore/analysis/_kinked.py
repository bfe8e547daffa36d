"""Minima for piecewise linear surrogates, such as the hinge, by a linear program."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore._extras import require
from linearcore.analysis._risk import Risk
from linearcore.analysis._solve import Solution

Array = npt.NDArray[np.float64]

#: Bound of the scores. Without it a risk that is constant in some direction has no vertex as its minimum.
_BOX = 1e3


def minimise_kinked(risk: Risk, cone: Tensor | None, offset: float | Tensor = 0.0) -> Solution:
    """Minimises Σ_k a_k φ(m_k) subject to Cθ + offset ≥ 0, where φ is the maximum of lines. The residual is the duality gap.

    min Σ_k a_k x_k      x_k ≥ slope · m_k(θ) + height for each line,   Cθ + offset ≥ 0
    """
    lines = risk.surrogate.lines
    if not lines or not risk.system.is_linear:
        advice = "use a differentiable surrogate, or a form with linear margins"
        got = f"{risk.surrogate} with {type(risk.system).__name__}"
        must = "be differentiable, or piecewise linear with linear margins"
        raise ValueError(complaint("surrogate", must, got, advice))
    rows = risk.system.directions[:, 0].numpy()
    constraints = np.zeros((0, rows.shape[1])) if cone is None else cone.numpy()
    offsets = np.broadcast_to(np.asarray(offset, dtype=np.float64), len(constraints))
    solutions = [_linear_program(lines, weight, rows, constraints, offsets) for weight in risk.coefficients.numpy()]
    theta, value, gap = (torch.tensor(np.array(column), dtype=torch.float64) for column in zip(*solutions, strict=True))
    return Solution(theta, value, gap)


def _linear_program(
    lines: tuple[tuple[float, float], ...], weight: Array, rows: Array, cone: Array, offsets: Array
) -> tuple[Array, float, float]:
    require("scipy", extra="lab")
    from scipy.optimize import linprog

    margins, size = rows.shape
    objective = np.concatenate([np.zeros(size), weight])
    # The line 0 becomes a bound of the variables, which is faster than constraints.
    minimum, lines = (0.0 if (0.0, 0.0) in lines else None), tuple(line for line in lines if line != (0.0, 0.0))
    line_constraints = [np.hstack([slope * rows, -np.eye(margins)]) for slope, _ in lines]
    cone_constraints = np.hstack([-cone, np.zeros((len(cone), margins))])
    limits = np.concatenate([*(np.full(margins, -height) for _, height in lines), offsets])
    bounds = [(-_BOX, _BOX)] * size + [(minimum, None)] * margins
    constraints = np.vstack([*line_constraints, cone_constraints])
    result = linprog(objective, A_ub=constraints, b_ub=limits, bounds=bounds, method="highs")
    if result.status != 0:
        return np.zeros(size), float("nan"), float("inf")
    box_multipliers = np.abs(result.lower.marginals[:size]).sum() + np.abs(result.upper.marginals[:size]).sum()
    if box_multipliers > 1e-9:  # The box is active, so this is not the minimum of the problem without it.
        return np.zeros(size), float("nan"), float("inf")
    dual = result.ineqlin.marginals @ limits
    return result.x[:size], float(result.fun), abs(float(result.fun - dual))
