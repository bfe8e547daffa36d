"""Minima for the hinge, which is no Newton's business: a linear program."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore._extras import require
from linearcore.analysis._risk import Risk
from linearcore.analysis._solve import Solution
from linearcore.forms import LinearMargins
from linearcore.surrogates import Hinge

Array = npt.NDArray[np.float64]

#: Scores are kept in a box, since a risk that is flat far out has no vertex there.
_BOX = 1e3


def minimise_kinked(risk: Risk, cone: Tensor | None) -> Solution:
    """Minimises Σ_k a_k (1 − m_k)₊ over the cone; the residual is the duality gap.

    min Σ_k a_k x_k      x ≥ 0,   x_k ≥ 1 − m_k(θ),   Cθ ≥ 0
    """
    if not isinstance(risk.surrogate, Hinge) or not isinstance(risk.system, LinearMargins):
        advice = "use a differentiable surrogate, or a form with linear margins"
        got = f"{risk.surrogate} with {type(risk.system).__name__}"
        raise ValueError(complaint("surrogate", "be differentiable, or the hinge with linear margins", got, advice))
    rows = (risk.system.rows @ risk.system.basis).numpy()
    constraints = np.zeros((0, rows.shape[1])) if cone is None else cone.numpy()
    parts = [_linear_program(weight, rows, constraints) for weight in risk.coefficients.numpy()]
    theta, value, gap = (torch.tensor(np.array(column), dtype=torch.float64) for column in zip(*parts, strict=True))
    return Solution(theta, value, gap)


def _linear_program(weight: Array, rows: Array, cone: Array) -> tuple[Array, float, float]:
    require("scipy", extra="lab")
    from scipy.optimize import linprog

    margins, size = rows.shape
    objective = np.concatenate([np.zeros(size), weight])
    above = np.hstack([-rows, -np.eye(margins)])
    inside = np.hstack([-cone, np.zeros((len(cone), margins))])
    limits = np.concatenate([-np.ones(margins), np.zeros(len(cone))])
    bounds = [(-_BOX, _BOX)] * size + [(0, None)] * margins
    found = linprog(objective, A_ub=np.vstack([above, inside]), b_ub=limits, bounds=bounds, method="highs")
    if found.status != 0:
        return np.zeros(size), float("nan"), float("inf")
    at_the_box = np.abs(found.lower.marginals[:size]).sum() + np.abs(found.upper.marginals[:size]).sum()
    if at_the_box > 1e-9:  # The box holds the scores, so that this is not the minimum without it.
        return np.zeros(size), float("nan"), float("inf")
    dual = found.ineqlin.marginals @ limits
    return found.x[:size], float(found.fun), abs(float(found.fun - dual))
