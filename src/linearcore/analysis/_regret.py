"""How much surrogate regret a wrong answer costs at the least."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.analysis._minimum import problem_of, require_solved, solve
from linearcore.analysis._problem import AnyForm, Problem, as_probabilities
from linearcore.structures import Cost, Sequences
from linearcore.surrogates import Surrogate


@dataclass(frozen=True)
class RegretRatio:
    """Surrogate regret of the best scores that predict a given output, over the target regret of that output.

    Attributes:
        ratio: surrogate_regret / target_regret. A linear bound with constant c says that it is never below 1/c.
        surrogate_regret, target_regret: the two.
        scores: (M,) the best scores that predict it.
        residual: the worse certificate of the two minimisations.
    """

    ratio: float
    surrogate_regret: float
    target_regret: float
    scores: npt.NDArray[np.float64]
    residual: float


def regret_ratio(
    surrogate: Surrogate,
    form: AnyForm,
    probabilities: npt.ArrayLike,
    prediction: int,
    *,
    outputs: Sequences | int | None = None,
    cost: str | Cost = "zero-one",
    family: str = "free",
) -> RegretRatio:
    """The least surrogate regret over scores that predict `prediction`, divided by its target regret.

    Ties count as predicting: scores with s_prediction ≥ s_v for all v.

    Args:
        surrogate, form, probabilities, outputs, cost, family: as in `minimal_risk`.
        prediction: the index of a suboptimal output.

    Raises:
        ValueError: if the prediction is optimal, where the ratio is 0/0.
        NotSolvedError: if a certificate does not hold.

    Example:
        >>> from linearcore import LinearCore, Pairwise
        >>> from linearcore.analysis import regret_ratio
        >>> round(regret_ratio(LinearCore(), Pairwise(normalize=False), [0.41, 0.39, 0.2], prediction=1).ratio, 3)
        0.209
    """
    problem = problem_of(form, probabilities, outputs, cost, family)
    rows = as_probabilities(probabilities, problem.space.size)
    regret = float(problem.target_regret(rows)[0, check_prediction(problem, prediction)])
    if not regret > 1e-12:  # Below that it is rounding.
        raise ValueError(
            complaint("prediction", "be suboptimal", f"{prediction}, whose regret is 0", "choose another output")
        )
    surrogate_regret, scores, residual = surrogate_regrets(surrogate, problem, rows, prediction, strict=True)
    return RegretRatio(
        float(surrogate_regret[0]) / regret, float(surrogate_regret[0]), regret, scores[0].numpy(), float(residual[0])
    )


def check_prediction(problem: Problem, prediction: int) -> int:
    """Returns `prediction`, or raises unless it is the index of an output."""
    if not 0 <= prediction < problem.space.size:
        must = f"be in [0, {problem.space.size})"
        raise ValueError(complaint("prediction", must, prediction, "give the index of an output"))
    return prediction


def surrogate_regrets(
    surrogate: Surrogate, problem: Problem, probabilities: Tensor, prediction: int, *, strict: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Least surrogate regrets (B,) at `prediction`, the scores (B, M), and the residuals (B,).

    With `strict` an unsolved row raises; without it its residual tells.
    """
    best = solve(surrogate, problem, probabilities, None)
    bound = solve(surrogate, problem, probabilities, prediction)
    if strict:
        require_solved(best)
        require_solved(bound)
    # Where the best scores predict it too, rounding must not make the regret negative.
    return (
        (bound.value - best.value).clamp(min=0),
        bound.theta @ problem.basis.T,
        torch.maximum(best.residual, bound.residual),
    )
