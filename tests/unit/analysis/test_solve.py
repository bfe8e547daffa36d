"""Minima against SciPy, and certificates that can be trusted: an answer that is wrong does not get one."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import scipy.optimize
import torch
from scipy.optimize import minimize, nnls
from torch import Tensor

from linearcore import Exponential, Hinge, LinearCore, Logistic, SquaredHinge, Surrogate
from linearcore.analysis import STRUCTURED_FORMS, NotSolvedError, _solve, conditional_risk, minimal_risk, regret_ratio
from linearcore.analysis._minimum import require_solved, solve
from linearcore.analysis._problem import Problem
from linearcore.analysis._risk import Risk
from linearcore.structures import Sequences

SURROGATES = {
    "core": LinearCore(),
    "narrow gamma": LinearCore("gamma", 0.3, 1, 3.0),
    "two sides": LinearCore("exponential", sides=2),
    "sparse": LinearCore("truncated_quadratic"),
    "squared hinge": SquaredHinge(),
    "logistic": Logistic(),
    "exponential": Exponential(),
}
PROBLEMS = {
    "pairwise": Problem("pairwise", 3),
    "centered": Problem("centered", 4),
    "logodds": Problem("logodds", 4),
    **{f"{form}, unary": Problem(form, Sequences(2, 2), "hamming", "unary") for form in STRUCTURED_FORMS},
    "structured-sum, chain": Problem("structured-sum", Sequences(2, 3), "hamming", "chain"),
    "local-logodds, free": Problem("local-logodds", Sequences(2, 3), "hamming", "free"),
}
every_surrogate = pytest.mark.parametrize("surrogate", SURROGATES.values(), ids=SURROGATES.keys())
every_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())


def distributions(problem: Problem, number: int, seed: int = 0) -> torch.Tensor:
    draws = np.random.default_rng(seed).dirichlet(np.ones(problem.space.size), number)
    return torch.tensor(0.9 * draws + 0.1 / problem.space.size)


def cone_of(problem: Problem, prediction: int) -> np.ndarray:
    basis = problem.basis.numpy()
    return np.delete(basis[prediction] - basis, prediction, 0)


def by_scipy(risk: Risk, cone: np.ndarray | None) -> float:
    """The least value that SLSQP (with a cone) or BFGS find from several starts; never below the true minimum."""

    def both(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient, _ = risk.expand(torch.tensor(theta).unsqueeze(0))
        return float(value), gradient[0].numpy()

    size = risk.system.basis.shape[1]
    constraints = () if cone is None else ({"type": "ineq", "fun": lambda x: cone @ x, "jac": lambda x: cone},)
    method, options = ("BFGS", {"gtol": 1e-9}) if cone is None else ("SLSQP", {"ftol": 1e-14, "maxiter": 500})
    starts = (np.zeros(size), np.full(size, 0.1))
    runs = [minimize(both, x, jac=True, method=method, constraints=constraints, options=options) for x in starts]
    return min(run.fun for run in runs if cone is None or (cone @ run.x).min() > -1e-9)


def violation(risk: Risk, theta: torch.Tensor, cone: np.ndarray | None) -> float:
    """How far θ is from satisfying the optimality conditions, worked out independently: the gradient must be a
    non-negative combination of the constraints that hold with equality."""
    gradient = risk.expand(theta.unsqueeze(0)).gradient[0].numpy()
    slack = np.full(1, np.inf) if cone is None else cone @ theta.numpy()
    if not (slack <= 1e-9).any():
        return float(np.linalg.norm(gradient))
    return max(float(nnls(cone[slack <= 1e-9].T, gradient)[1]), float(-slack.min()))


@every_problem
@every_surrogate
def test_minima_are_scipys_and_certified(surrogate: Surrogate, problem: Problem) -> None:
    p = distributions(problem, 2)
    found = solve(surrogate, problem, p, None)
    assert found.converged.all()
    for row in range(len(p)):
        risk = Risk(surrogate, problem.system, p[row : row + 1])
        assert float(found.value[row]) == pytest.approx(by_scipy(risk, None), abs=1e-8)
        assert violation(risk, found.theta[row], None) <= 1e-9


@every_problem
@every_surrogate
def test_constrained_minima_are_scipys_and_certified(surrogate: Surrogate, problem: Problem) -> None:
    p = distributions(problem, 2, seed=1)
    prediction = int(problem.target_regret(p)[0].argmax())
    found = solve(surrogate, problem, p, prediction)
    assert found.converged.all()
    cone = cone_of(problem, prediction)
    for row in range(len(p)):
        risk = Risk(surrogate, problem.system, p[row : row + 1])
        assert (cone @ found.theta[row].numpy()).min() >= -1e-12
        assert violation(risk, found.theta[row], cone) <= 1e-8
        scipys = by_scipy(risk, cone)
        assert float(found.value[row]) <= scipys + 1e-9
        assert float(found.value[row]) == pytest.approx(scipys, abs=1e-6)


@pytest.mark.parametrize("constrained", (False, True), ids=("free", "constrained"))
def test_a_batch_is_its_rows(constrained: bool) -> None:
    problem = PROBLEMS["logodds"]
    p = distributions(problem, 5)
    prediction = 2 if constrained else None
    together = solve(LinearCore(), problem, p, prediction)
    alone = [float(solve(LinearCore(), problem, row.unsqueeze(0), prediction).value) for row in p]
    np.testing.assert_allclose(together.value.numpy(), alone, rtol=0, atol=1e-11)


@pytest.mark.parametrize("prediction", (None, 2), ids=("free", "constrained"))
@pytest.mark.parametrize("form", ("pairwise", "centered", "structured-sum"))
def test_hinge_minima_have_no_duality_gap(form: str, prediction: int | None) -> None:
    problem = Problem(form, 4)
    p = distributions(problem, 2)
    found = solve(Hinge(), problem, p, prediction)
    require_solved(found)
    for row in range(2):
        risk = Risk(Hinge(), problem.system, p[row : row + 1])
        assert float(risk.value(found.theta[row : row + 1])) == pytest.approx(float(found.value[row]), abs=1e-9)
        # A smooth loss just above it squeezes the minimum from the other side: 0 ≤ hinge − smoothed ≤ width/2 a margin.
        smooth = solve(LinearCore("truncated_quadratic", 1 - 1e-4, 1, 1e4), problem, p[row : row + 1], prediction)
        assert float(smooth.value) == pytest.approx(float(found.value[row]), abs=12 * 1e-4)


@dataclass(frozen=True)
class ThreeLines(Hinge):
    """max(2 − 3u, 1 − u/2, 1/4)."""

    lines: ClassVar[tuple[tuple[float, float], ...]] = ((-3.0, 2.0), (-0.5, 1.0), (0.0, 0.25))

    def _value(self, u: Tensor) -> Tensor:
        return torch.stack([slope * u + height for slope, height in self.lines]).amax(0)


@pytest.mark.parametrize("prediction", (None, 2), ids=("free", "constrained"))
def test_minima_of_straight_lines(prediction: int | None) -> None:
    problem = Problem("pairwise", 4)
    p = distributions(problem, 1)
    found, risk = solve(ThreeLines(), problem, p, prediction), Risk(ThreeLines(), problem.system, p)
    require_solved(found)
    assert float(risk.value(found.theta)) == pytest.approx(float(found.value), abs=1e-9)
    step = torch.randn(500, found.theta.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    near = found.theta + 0.1 * step
    if prediction is not None:
        near = near[(near @ problem.basis.T).argmax(-1) == prediction]
    values = Risk(ThreeLines(), problem.system, p.expand(len(near), -1)).value(near)
    assert len(near) > 20 and float(values.min()) >= float(found.value)


def test_minimum_holds_scores_that_attain_its_value() -> None:
    p = [0.5, 0.3, 0.2]
    best = minimal_risk(LinearCore(), "centered", p)
    assert conditional_risk(LinearCore(), "centered", best.scores, p) == pytest.approx(best.value, rel=1e-14)
    assert abs(best.scores.sum()) < 1e-12 and best.residual <= 1e-9


@pytest.mark.parametrize("prediction", (None, 1), ids=("free", "constrained"))
def test_a_wrong_answer_gets_a_residual(prediction: int | None) -> None:
    problem, p = PROBLEMS["pairwise"], torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64)
    risk = Risk(Logistic(), problem.system, p)
    theta = solve(Logistic(), problem, p, prediction).theta
    cone = None if prediction is None else torch.tensor(cone_of(problem, prediction))
    assert violation(risk, theta[0], None if cone is None else cone.numpy()) <= 1e-9
    moved = theta + 1e-3
    assert violation(risk, moved[0], None if cone is None else cone.numpy()) > 1e-5
    # The library's own residual at a point that it was not allowed to leave.
    stuck, residual = _solve._newton(risk, moved, torch.zeros(0, 2).double(), 0.0, steps=0, tolerance=0.0)
    assert torch.equal(stuck, moved) and float(residual) > 1e-5


def test_the_minimum_of_a_wrong_face_is_refused() -> None:
    problem, p = PROBLEMS["pairwise"], torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64)
    risk, cone = Risk(Logistic(), problem.system, p), torch.tensor(cone_of(problem, 1))
    start = problem.basis[1].unsqueeze(0)
    # No constraint: the minimum predicts class 0 and lies outside. Both: a multiplier has the wrong sign.
    for face in ([False, False], [True, True]):
        found, better = _solve._minimise_in_face(risk, start, cone, torch.tensor(face))
        assert not found.converged.any() and torch.isinf(found.residual).all()
        assert better.tolist() == [[True, False]]
    found, _ = _solve._minimise_in_face(risk, start, cone, torch.tensor([True, False]))
    assert found.converged.all()


@pytest.mark.parametrize("steps", (0, 2))
def test_too_few_steps_are_no_answer(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    original = _solve._newton
    monkeypatch.setattr(_solve, "_newton", lambda *given, **how: original(*given, **how | {"steps": steps}))
    with pytest.raises(NotSolvedError, match="the minimum was not certified: residual"):
        minimal_risk(LinearCore(), "centered", [0.5, 0.3, 0.2])
    with pytest.raises(NotSolvedError):
        regret_ratio(LinearCore(), "pairwise", [0.5, 0.3, 0.2], prediction=1)


def test_a_linear_program_that_fails_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    original = scipy.optimize.linprog
    monkeypatch.setattr("scipy.optimize.linprog", lambda *given, **how: original(*given, **how, options={"time_limit": 0.0}))
    with pytest.raises(NotSolvedError):
        minimal_risk(Hinge(), "pairwise", [0.5, 0.3, 0.2])


def test_kinked_surrogates_beyond_the_hinge_are_refused() -> None:
    with pytest.raises(ValueError, match="`surrogate` must be differentiable, or piecewise linear"):
        minimal_risk(Hinge(), "logodds", [0.5, 0.3, 0.2])
