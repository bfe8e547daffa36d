"""Minima for surrogates made of straight lines, such as the hinge: a linear program."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore._extras import require
from linearcore.analysis._risk import Risk
from linearcore.analysis._solve import Solution
from linearcore.forms import LinearMargins

Array = npt.NDArray[np.float64]

#: Scores are kept in a box, since a risk that is flat far out has no vertex there.
_BOX = 1e3


def minimise_kinked(risk: Risk, cone: Tensor | None) -> Solution:
    """Minimises Σ_k a_k φ(m_k) over the cone, where φ is the greatest of straight lines; the residual is the duality gap.

    min Σ_k a_k x_k      x_k ≥ slope · m_k(θ) + height for each line,   Cθ ≥ 0
    """
    lines = risk.surrogate.lines
    if not lines or not isinstance(risk.system, LinearMargins):
        advice = "use a differentiable surrogate, or a form with linear margins"
        got = f"{risk.surrogate} with {type(risk.system).__name__}"
        raise ValueError(complaint("surrogate", "be differentiable, or straight lines of linear margins", got, advice))
    rows = (risk.system.rows @ risk.system.basis).numpy()
    constraints = np.zeros((0, rows.shape[1])) if cone is None else cone.numpy()
    parts = [_linear_program(lines, weight, rows, constraints) for weight in risk.coefficients.numpy()]
    theta, value, gap = (torch.tensor(np.array(column), dtype=torch.float64) for column in zip(*parts, strict=True))
    return Solution(theta, value, gap)


def _linear_program(
    lines: tuple[tuple[float, float], ...], weight: Array, rows: Array, cone: Array
) -> tuple[Array, float, float]:
    require("scipy", extra="lab")
    from scipy.optimize import linprog

    margins, size = rows.shape
    objective = np.concatenate([np.zeros(size), weight])
    # A line that is 0 throughout is a bound, which costs the program less than rows.
    least, lines = (0.0 if (0.0, 0.0) in lines else None), tuple(line for line in lines if line != (0.0, 0.0))
    above = [np.hstack([slope * rows, -np.eye(margins)]) for slope, _ in lines]
    inside = np.hstack([-cone, np.zeros((len(cone), margins))])
    limits = np.concatenate([*(np.full(margins, -height) for _, height in lines), np.zeros(len(cone))])
    bounds = [(-_BOX, _BOX)] * size + [(least, None)] * margins
    found = linprog(objective, A_ub=np.vstack([*above, inside]), b_ub=limits, bounds=bounds, method="highs")
    if found.status != 0:
        return np.zeros(size), float("nan"), float("inf")
    at_the_box = np.abs(found.lower.marginals[:size]).sum() + np.abs(found.upper.marginals[:size]).sum()
    if at_the_box > 1e-9:  # The box holds the scores, so that this is not the minimum without it.
        return np.zeros(size), float("nan"), float("inf")
    dual = found.ineqlin.marginals @ limits
    return found.x[:size], float(found.fun), abs(float(found.fun - dual))
