"""Minimal surrogate regret of a wrong prediction."""

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
    """Minimal surrogate regret of scores with a given prediction, divided by the target regret of the prediction.

    Attributes:
        ratio: surrogate_regret / target_regret. A linear bound with constant c implies ratio ≥ 1/c.
        surrogate_regret, target_regret: the two regrets.
        scores: (M,) the best scores with this prediction.
        residual: largest optimality residual of the two minimisations.
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
    """Computes the minimal surrogate regret of scores that predict `prediction`, divided by its target regret.

    Scores predict an output if s_prediction ≥ s_v for all v, so ties are included.

    Args:
        surrogate, form, probabilities, outputs, cost, family: as in `minimal_risk`.
        prediction: the index of a suboptimal output.

    Raises:
        ValueError: if the prediction is optimal, so the ratio is 0/0.
        NotSolvedError: if the solver does not converge.

    Example:
        >>> from linearcore import LinearCore, Pairwise
        >>> from linearcore.analysis import regret_ratio
        >>> round(regret_ratio(LinearCore(), Pairwise(normalize=False), [0.41, 0.39, 0.2], prediction=1).ratio, 3)
        0.209
    """
    problem = problem_of(form, probabilities, outputs, cost, family)
    rows = as_probabilities(probabilities, problem.space.size)
    regret = float(problem.target_regret(rows)[0, check_prediction(problem, prediction)])
    if not regret > 1e-12:  # Smaller values are rounding errors.
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
        raise ValueError(complaint("prediction", must, prediction, "pass the index of an output"))
    return prediction


def surrogate_regrets(
    surrogate: Surrogate, problem: Problem, probabilities: Tensor, prediction: int, *, strict: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the minimal surrogate regrets (B,) at `prediction`, the scores (B, M) and the residuals (B,).

    With `strict=True` an unsolved row raises; otherwise its residual is large.
    """
    best = solve(surrogate, problem, probabilities, None)
    constrained = solve(surrogate, problem, probabilities, prediction)
    if strict:
        require_solved(best)
        require_solved(constrained)
    # Clamped, because rounding may make the regret negative if the best scores have this prediction.
    return (
        (constrained.value - best.value).clamp(min=0),
        constrained.theta @ problem.basis.T,
        torch.maximum(best.residual, constrained.residual),
    )
