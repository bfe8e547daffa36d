"""The regret ratio of the convolutional Fenchel–Young loss, exactly."""

import numpy as np
import numpy.typing as npt
import torch

from linearcore._checks import complaint
from linearcore.analysis._fenchel_young import fenchel_young_point
from linearcore.analysis._minimum import problem_of
from linearcore.analysis._problem import as_probabilities
from linearcore.analysis._regret import RegretRatio


def fenchel_young_regret_ratio(probabilities: npt.ArrayLike, prediction: int) -> RegretRatio:
    """The least surrogate regret over scores that predict `prediction`, divided by its 0-1 regret.

    With π and q as in `fenchel_young_loss` and regret_v = max p − p_v, the surrogate regret of scores θ is

        Σ_v p_v log(p_v / q_v) + Σ_v π_v regret_v.

    To predict k at the least cost, q pools k with the most probable classes, in falling order, for as long as the next one
    is more probable than the pool's mean; q is p elsewhere, and π is uniform on the pool. So the ratio is at least one over
    the size of the pool, and it gets there as all classes become equally probable: 1/C is the best constant.

    Args:
        probabilities: p, (C,).
        prediction: k, the index of a suboptimal class.

    Returns:
        The ratio with its parts. `residual` is the largest violation of the optimality conditions of the scores: q_v = p_v
        where v does not tie with k, q_v ≤ p_v where it does. Scores are −inf where p is 0.

    Raises:
        ValueError: if p is no distribution or k is optimal.

    Example:
        >>> round(fenchel_young_regret_ratio([0.401, 0.399, 0.2], prediction=1).ratio, 4)
        0.5013

    Cost: a sort.
    """
    size = problem_of("pairwise", probabilities, None, "zero-one", "free").space.size
    p = as_probabilities(probabilities, size)[0].numpy()
    if not 0 <= prediction < size:
        raise ValueError(complaint("prediction", f"be in [0, {size})", prediction, "give the index of a class"))
    regret = p.max() - p
    if not regret[prediction] > 0:
        got = f"{prediction}, whose regret is 0"
        raise ValueError(complaint("prediction", "be suboptimal", got, "choose another class"))
    pool = _pool(p, prediction)
    level = p[pool].mean()
    q = p.copy()
    q[pool] = level
    inside = p[pool]
    divergence = float((inside[inside > 0] * np.log1p((inside - level)[inside > 0] / level)).sum())
    surrogate_regret = divergence + float(regret[pool].mean())
    with np.errstate(divide="ignore"):
        scores = np.log(q)
    scores[pool] += 1 / len(pool)
    found = fenchel_young_point(torch.from_numpy(scores).unsqueeze(0)).probability[0].numpy()
    slope = found - p
    tied = scores == scores[prediction]
    violation = np.where(tied, slope.clip(min=0), np.abs(slope))
    violation[prediction] = 0.0
    ratio = surrogate_regret / float(regret[prediction])
    return RegretRatio(ratio, surrogate_regret, float(regret[prediction]), scores, float(violation.max()))


def _pool(p: npt.NDArray[np.float64], prediction: int) -> npt.NDArray[np.intp]:
    """The classes that share q's largest value when `prediction` must have it."""
    others = np.argsort(-p, kind="stable")
    others = others[others != prediction]
    means = (p[prediction] + np.concatenate([[0.0], np.cumsum(p[others])])) / np.arange(1, len(p) + 1)
    # The mean of the pool falls short of the next class until it does not; the last class has none after it.
    stops = np.append(p[others] <= means[:-1], True)
    return np.append(prediction, others[: int(stops.argmax())])
