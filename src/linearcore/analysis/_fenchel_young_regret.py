"""Exact regret ratio of the convolutional Fenchel–Young loss."""

import numpy as np
import numpy.typing as npt
import torch

from linearcore._checks import complaint
from linearcore.analysis._fenchel_young import fenchel_young_point
from linearcore.analysis._minimum import problem_of
from linearcore.analysis._problem import as_probabilities
from linearcore.analysis._regret import RegretRatio


def fenchel_young_regret_ratio(probabilities: npt.ArrayLike, prediction: int) -> RegretRatio:
    """Returns the minimal surrogate regret of scores that predict `prediction`, divided by its 0-1 regret.

    With π and q as in `fenchel_young_loss` and regret_v = max p − p_v, the surrogate regret of scores θ is

        Σ_v p_v log(p_v / q_v) + Σ_v π_v regret_v.

    The minimum over scores that predict k is attained by pooling. The pool contains k and the most probable classes, added
    in descending order while the next class is more probable than the mean of the pool. q equals this mean in the pool and p
    elsewhere; π is uniform on the pool. So the ratio is at least 1/(size of the pool). It converges to 1/C as all classes
    become equally probable, so C is the best constant of a linear bound.

    Args:
        probabilities: p, (C,).
        prediction: k, the index of a suboptimal class.

    Returns:
        The ratio and both regrets. `residual` is the largest violation of the optimality conditions of the scores: q_v ≤ p_v
        for classes that tie with k, and q_v = p_v for the others. Classes with p_v = 0 have score −inf.

    Raises:
        ValueError: if p is not a distribution or k is optimal.

    Example:
        >>> round(fenchel_young_regret_ratio([0.401, 0.399, 0.2], prediction=1).ratio, 4)
        0.5013

    Cost: one sort.
    """
    size = problem_of("pairwise", probabilities, None, "zero-one", "free").space.size
    p = as_probabilities(probabilities, size)[0].numpy()
    if not 0 <= prediction < size:
        raise ValueError(complaint("prediction", f"be in [0, {size})", prediction, "pass the index of a class"))
    regret = p.max() - p
    if not regret[prediction] > 0:
        got = f"{prediction}, whose regret is 0"
        raise ValueError(complaint("prediction", "be suboptimal", got, "choose another class"))
    pool = _pool(p, prediction)
    pool_mean = p[pool].mean()
    q = p.copy()
    q[pool] = pool_mean
    pooled = p[pool]
    divergence = float((pooled[pooled > 0] * np.log1p((pooled - pool_mean)[pooled > 0] / pool_mean)).sum())
    surrogate_regret = divergence + float(regret[pool].mean())
    with np.errstate(divide="ignore"):
        scores = np.log(q)
    scores[pool] += 1 / len(pool)
    gradient = fenchel_young_point(torch.from_numpy(scores).unsqueeze(0)).probability[0].numpy() - p
    is_tied = scores == scores[prediction]
    violation = np.where(is_tied, gradient.clip(min=0), np.abs(gradient))
    violation[prediction] = 0.0
    ratio = surrogate_regret / float(regret[prediction])
    return RegretRatio(ratio, surrogate_regret, float(regret[prediction]), scores, float(violation.max()))


def _pool(p: npt.NDArray[np.float64], prediction: int) -> npt.NDArray[np.intp]:
    """Returns the classes with the largest value of q, for the best scores that predict `prediction`."""
    others = np.argsort(-p, kind="stable")
    others = others[others != prediction]
    means = (p[prediction] + np.concatenate([[0.0], np.cumsum(p[others])])) / np.arange(1, len(p) + 1)
    # The pool ends at the first class that is not more probable than the mean of the pool, or after the last class.
    is_end = np.append(p[others] <= means[:-1], True)
    return np.append(prediction, others[: int(is_end.argmax())])
