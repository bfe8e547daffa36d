"""Conditional risks and their minima."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.analysis._kinked import minimise_kinked
from linearcore.analysis._problem import AnyForm, Problem, as_probabilities
from linearcore.analysis._risk import Risk
from linearcore.analysis._solve import TOLERANCE, Solution, minimise
from linearcore.structures import Cost, Sequences
from linearcore.surrogates import Surrogate


class NotSolvedError(RuntimeError):
    """A minimisation did not converge; the message contains the residual."""


@dataclass(frozen=True)
class Minimum:
    """A minimum of a conditional risk.

    Attributes:
        value: the minimal risk.
        scores: (M,) minimising scores, with sum zero.
        residual: optimality residual: norm of the gradient of the Lagrangian (duality gap for non-smooth surrogates).
    """

    value: float
    scores: npt.NDArray[np.float64]
    residual: float


def conditional_risk(
    surrogate: Surrogate,
    form: AnyForm,
    scores: npt.ArrayLike,
    probabilities: npt.ArrayLike,
    *,
    outputs: Sequences | int | None = None,
    cost: str | Cost = "zero-one",
) -> float:
    """Returns Σ_y p_y ℓ(scores, y), the expected surrogate loss at one input.

    Args:
        surrogate: φ. Combinations with a form that the losses reject are allowed.
        form: a multi-class or structured form; see `Problem`.
        scores: (M,), one for each output.
        probabilities: (M,).
        outputs: the output space; default: M classes.
        cost: "zero-one", "hamming" or a `Cost`, for structured forms.

    Example:
        >>> from linearcore import Hinge
        >>> from linearcore.analysis import conditional_risk
        >>> conditional_risk(Hinge(), "pairwise", [1.0, 0.0], [0.75, 0.25])
        0.5
    """
    problem = problem_of(form, probabilities, outputs, cost, "free")
    numbers = torch.as_tensor(scores, dtype=torch.float64)
    if numbers.shape != (problem.space.size,):
        must = f"have shape ({problem.space.size},)"
        raise ValueError(complaint("scores", must, tuple(numbers.shape), "pass one score for each output"))
    risk = Risk(surrogate, problem.system, as_probabilities(probabilities, problem.space.size))
    # The basis spans scores with sum zero. No form depends on the constant that the projection removes.
    return float(risk.value(numbers.unsqueeze(0) @ problem.basis))


def minimal_risk(
    surrogate: Surrogate,
    form: AnyForm,
    probabilities: npt.ArrayLike,
    *,
    outputs: Sequences | int | None = None,
    cost: str | Cost = "zero-one",
    family: str = "free",
) -> Minimum:
    """Minimises the conditional risk over the scores of a family.

    Args:
        surrogate, form, probabilities, outputs, cost: as in `conditional_risk`.
        family: "free" (any scores), "unary" or "chain" (sums of local scores).

    Raises:
        NotSolvedError: if the solver does not converge.

    Example:
        >>> from linearcore import LinearCore
        >>> from linearcore.analysis import minimal_risk
        >>> best = minimal_risk(LinearCore(), "centered", [0.5, 0.3, 0.2])
        >>> int(best.scores.argmax()), best.residual < 1e-9
        (0, True)
    """
    problem = problem_of(form, probabilities, outputs, cost, family)
    solution = solve(surrogate, problem, as_probabilities(probabilities, problem.space.size), None)
    require_solved(solution)
    return Minimum(float(solution.value[0]), (solution.theta[0] @ problem.basis.T).numpy(), float(solution.residual[0]))


def problem_of(
    form: AnyForm, probabilities: npt.ArrayLike, outputs: Sequences | int | None, cost: str | Cost, family: str
) -> Problem:
    """Returns the problem for the arguments of the public functions."""
    shape = np.shape(probabilities)
    if len(shape) != 1:
        raise ValueError(complaint("probabilities", "have shape (M,)", shape, "pass one distribution at a time"))
    return Problem(form, shape[0] if outputs is None else outputs, cost, family)


def solve(surrogate: Surrogate, problem: Problem, probabilities: Tensor, prediction: int | None) -> Solution:
    """Minimises the risk for a batch of distributions (B, M), over all scores or over those with a given prediction."""
    problem.require_convex(surrogate)
    basis = problem.basis
    risk = Risk(surrogate, problem.system, probabilities)
    if prediction is None:
        start, cone = probabilities.new_zeros(len(probabilities), basis.shape[1]), None
    else:
        cone = basis[prediction] - torch.cat([basis[:prediction], basis[prediction + 1 :]])
        # The projection of the prediction's indicator onto the family lies inside the cone.
        start = basis[prediction].expand(len(probabilities), -1)
    return minimise(risk, start, cone) if surrogate.is_c1 else minimise_kinked(risk, cone)


def can_solve(surrogate: Surrogate, problem: Problem) -> bool:
    """Whether minima can be certified: smooth φ by Newton's method, piecewise linear φ of linear margins by a program."""
    return surrogate.is_c1 or (bool(surrogate.lines) and problem.system.is_linear)


def require_solved(solution: Solution) -> None:
    """Raises unless every minimisation converged."""
    if not bool(solution.converged.all()):
        worst = float(solution.residual.max())
        raise NotSolvedError(f"the minimum was not certified: residual {worst:.2g}, allowed {TOLERANCE:.2g}")
