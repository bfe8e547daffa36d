"""Convergence rate of target regret as a function of surrogate regret."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.analysis._noise_condition import NoiseCondition
from linearcore.analysis._problem import AnyForm, Problem
from linearcore.analysis._regret import check_prediction, surrogate_regrets
from linearcore.analysis._transform import transform_parts
from linearcore.losses import check_surrogate
from linearcore.structures import Cost, Sequences
from linearcore.surrogates import Surrogate

#: 31 points over the range of the paper's figures.
DELTAS = tuple(10.0 ** (-4 + 0.1 * step) for step in range(31))
_STEP = 1e-3


@dataclass(frozen=True)
class Rate:
    """Target regret against surrogate regret along a path of distributions.

    Attributes:
        deltas: values of δ.
        target, surrogate: target regret, and minimal surrogate regret of scores with the prediction, at each δ.
        slopes: local slopes d log target / d log surrogate: 1 for a linear bound, ½ for a square-root bound.
        limit: slope for δ → 0, extrapolated from the smallest δ.
        interval: uncertainty interval of the extrapolation.
        fit: slope of the regression line through all points of the log-log plot.
    """

    deltas: npt.NDArray[np.float64]
    target: npt.NDArray[np.float64]
    surrogate: npt.NDArray[np.float64]
    slopes: npt.NDArray[np.float64]
    limit: float
    interval: tuple[float, float]
    fit: float


def rate(
    surrogate: Surrogate,
    form: AnyForm = "pairwise",
    path: Callable[[float], npt.ArrayLike] | None = None,
    *,
    prediction: int = 1,
    deltas: npt.ArrayLike = DELTAS,
    outputs: Sequences | int | None = None,
    cost: str | Cost = "zero-one",
    family: str = "free",
    bound: float | None = None,
    noise: NoiseCondition | None = None,
) -> Rate:
    """Computes local slopes of target regret against surrogate regret, and their limit.

    Args:
        surrogate, form, outputs, cost, family: as in `minimal_risk`.
        path: function from δ to probabilities. None means (½ + δ, ½ − δ), where all forms agree and T(2δ) is exact.
        prediction: the output predicted along the path, suboptimal for δ > 0.
        deltas: positive values of δ, in ascending order.
        bound, noise: as in `transform`; only without a path.

    Raises:
        ValueError: if an argument is invalid.
        NotSolvedError: if the solver does not converge.

    Example:
        >>> from linearcore import LinearCore, Logistic
        >>> from linearcore.analysis import rate
        >>> [round(float(rate(phi).slopes[0]), 3) for phi in (LinearCore(), Logistic())]
        [1.0, 0.5]
        >>> tie = rate(LinearCore(), "pairwise", lambda d: [0.4 + d, 0.4 - d, 0.2], deltas=[1e-4, 1e-3, 1e-2])
        >>> round(tie.limit, 2)
        0.5
    """
    check_surrogate(surrogate)
    points = np.asarray(deltas, dtype=np.float64)
    if not (points.ndim == 1 and len(points) and bool((points > 0).all()) and bool((np.diff(points) > 0).all())):
        raise ValueError(complaint("deltas", "be positive and ascending", deltas, "for example [1e-4, 1e-3, 1e-2]"))
    if path is not None and not (bound is None and noise is None):
        raise ValueError(complaint("path", "be None with `bound` or `noise`", "a path", "omit it; the problem is binary"))
    if path is None:
        target, regret, slopes = _binary_slopes(surrogate, torch.from_numpy(points), bound, noise)
    else:
        target, regret, slopes = _path_slopes(surrogate, form, path, prediction, points, outputs, cost, family)
    fit = float(np.polyfit(np.log(regret), np.log(target), 1)[0]) if len(points) > 1 else float(slopes[0])
    limit, interval = _extrapolate(points, slopes)
    return Rate(points, target, regret, slopes, limit, interval, fit)


def _binary_slopes(
    surrogate: Surrogate, deltas: Tensor, bound: float | None, noise: NoiseCondition | None
) -> tuple[npt.NDArray[np.float64], ...]:
    parts = transform_parts(surrogate, 2 * deltas, bound=bound, noise=noise)
    # d log t / d log T = T / (t T'), with T' exact by the envelope theorem.
    slopes = parts.value / (2 * deltas * parts.slope)
    return (2 * deltas).numpy(), parts.value.numpy(), slopes.numpy()


def _path_slopes(
    surrogate: Surrogate,
    form: AnyForm,
    path: Callable[[float], npt.ArrayLike],
    prediction: int,
    deltas: npt.NDArray[np.float64],
    outputs: Sequences | int | None,
    cost: str | Cost,
    family: str,
) -> tuple[npt.NDArray[np.float64], ...]:
    steps = np.concatenate([deltas, deltas * (1 - _STEP), deltas * (1 + _STEP)])
    rows = torch.tensor(np.array([np.asarray(path(float(delta)), dtype=np.float64) for delta in steps]))
    problem = Problem(form, rows.shape[1] if outputs is None else outputs, cost, family)
    target = problem.target_regret(rows)[:, check_prediction(problem, prediction)].reshape(3, -1)
    if not bool((target > 0).all()):
        raise ValueError(complaint("prediction", "be suboptimal along the path", prediction, "choose another output"))
    regret = surrogate_regrets(surrogate, problem, rows, prediction, strict=True)[0].reshape(3, -1)
    slopes = (target[2] / target[1]).log() / (regret[2] / regret[1]).log()
    return target[0].numpy(), regret[0].numpy(), slopes.numpy()


def _extrapolate(deltas: npt.NDArray[np.float64], slopes: npt.NDArray[np.float64]) -> tuple[float, tuple[float, float]]:
    """Returns the slope extrapolated to δ = 0, and an interval around it whose half-width is the size of the correction.

    The slope converges like a power of δ: 1 for most bases, ⅓ for C2 bases. If the three smallest δ are a geometric
    sequence, Aitken's formula is exact for any power. Otherwise the extrapolation is linear.
    """
    if len(slopes) < 2:
        return float(slopes[0]), (float("-inf"), float("inf"))
    line = float(slopes[0] - deltas[0] * (slopes[1] - slopes[0]) / (deltas[1] - deltas[0]))
    limit = line
    if len(slopes) > 2 and np.isclose(deltas[1] / deltas[0], deltas[2] / deltas[1]):
        first, second = slopes[1] - slopes[0], slopes[2] - slopes[1]
        if abs(second - first) > 1e-12 and second / first > 1:
            limit = float(slopes[0] - first / (second / first - 1))
    half_width = max(abs(limit - line), abs(limit - float(slopes[0])))
    return limit, (limit - half_width, limit + half_width)
