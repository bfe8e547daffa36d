"""Bounded scores: the theorem for `centered`, minima by brute force and SciPy, and limits that hold for the distribution."""

import json

import numpy as np
import pytest
import scipy.optimize
import torch

from linearcore import Centered, Hinge, LinearCore, Logistic, Pairwise, Surrogate
from linearcore.analysis import Problem, certify, sample_bound, transform
from linearcore.analysis._bounded import BoundedScores
from linearcore.analysis._risk import Risk
from linearcore.structures import Sequences

CASES = {
    "binary core": (LinearCore(), "pairwise", 2),
    "binary logistic": (Logistic(), "logodds", 2),
    "binary hinge": (Hinge(), "centered", 2),
    "centered": (LinearCore(tau=0.5), "centered", 3),
    "centered hinge": (Hinge(), Centered(normalize=False), 3),
}
every_case = pytest.mark.parametrize(("surrogate", "form", "size"), CASES.values(), ids=CASES.keys())


def risks(scores: BoundedScores, values: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
    return Risk(scores.surrogate, scores.problem.system, p).value(values @ scores.problem.basis)


def dirichlet(size: int, count: int, seed: int) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).dirichlet(np.full(size, 0.7), count))


@pytest.mark.parametrize("bound", (0.3, 2.0))
@pytest.mark.parametrize(
    ("size", "surrogate"), ((3, LinearCore()), (4, LinearCore("gamma", tau=0.5)), (6, LinearCore(tau=2)))
)
def test_centered_has_its_bound_on_ten_thousand_problems(size: int, surrogate: Surrogate, bound: float) -> None:
    """Random scores, and the minimiser with a wrong class on top, for 1,667 distributions of each of six cases."""
    scores = BoundedScores(surrogate, Problem(Centered(normalize=False), size), bound)
    p = dirichlet(size, 1667, seed=size)
    least, best = scores.pointwise(p)
    assert certify(surrogate, Centered(normalize=False), size, bound=bound).linear_bound.constant == pytest.approx(
        1 / min(surrogate.core[1], bound)
    )
    wrong = best.clone()
    second = p.topk(2).indices
    rows = torch.arange(len(p))
    middle = (wrong[rows, second[:, 0]] + wrong[rows, second[:, 1]]) / 2
    wrong[rows, second[:, 0]], wrong[rows, second[:, 1]] = middle - 1e-9, middle + 1e-9
    for values in (dirichlet(size, len(p), seed=9) @ scores.corners, wrong):
        k = values.argmax(1)
        regret = p.max(1).values - p[rows, k]
        assert (min(surrogate.core[1], bound) * regret <= risks(scores, values, p) - least + 1e-7).all()
        assert (regret > 0).sum() > 500


def test_in_a_box_of_four_classes_there_is_no_bound() -> None:
    """|s_v − s̄| ≤ Λ ≤ τ: with p = (.4 + δ, .4 − δ, .1, .1) two classes tie at the top of the minimiser."""
    surrogate, bound = LinearCore(), 0.5
    tied = torch.tensor([0.5, 0.5, -0.5, -0.5], dtype=torch.float64)
    p = torch.tensor([0.45, 0.35, 0.1, 0.1], dtype=torch.float64)
    scores = BoundedScores(surrogate, Problem(Centered(normalize=False), 4), bound)
    rng = np.random.default_rng(0)
    others = torch.tensor(rng.uniform(-bound, bound, (100_000, 4)))
    others = others - others.mean(1, keepdim=True)
    others = others[(others.abs() <= bound).all(1)]
    expected = risks(scores, tied.unsqueeze(0), p.unsqueeze(0))
    assert (risks(scores, others, p.expand(len(others), 4)) >= expected).all()


def test_pairwise_has_a_bound_where_scores_are_a_multiple_of_probabilities_inside_the_core() -> None:
    radius, surrogate = 0.8, LinearCore()
    form = Problem(Pairwise(normalize=False), 4)
    p, shares = dirichlet(4, 10_000, seed=0), dirichlet(4, 10_000, seed=1)
    risk = Risk(surrogate, form.system, p)
    best = radius * torch.eye(4, dtype=torch.float64)[p.argmax(1)]
    regret = risk.value(radius * shares @ form.basis) - risk.value(best @ form.basis)
    wrong = p.max(1).values - p[torch.arange(10_000), shares.argmax(1)]
    assert (radius * wrong <= regret + 1e-12).all()


@every_case
def test_pointwise_minima_are_not_beaten(surrogate: Surrogate, form, size: int) -> None:
    scores = BoundedScores(surrogate, Problem(form, size), 0.8)
    p = dirichlet(size, 50, seed=0)
    least, best = scores.pointwise(p)
    torch.testing.assert_close(risks(scores, best, p), least, atol=1e-7, rtol=0)
    assert float((best @ scores.problem.basis @ scores.margins.T).max()) <= 0.8 + 1e-9
    for values in dirichlet(size, 400, seed=1) @ scores.corners:
        assert (risks(scores, values.expand(50, size), p) >= least - 1e-7).all()
    low, high = scores.loss_range()
    every = risks(
        scores,
        (dirichlet(size, 500, seed=2) @ scores.corners).repeat(size, 1),
        torch.eye(size).double().repeat_interleave(500, 0),
    )
    assert low - 1e-7 <= float(every.min()) and float(every.max()) <= high + 1e-9


@every_case
def test_linear_minima_are_scipys(surrogate: Surrogate, form, size: int) -> None:
    """SLSQP over all coefficients, with the bound at every corner of the square, which is where a margin is largest."""
    rng = np.random.default_rng(0)
    scores = BoundedScores(surrogate, Problem(form, size), 0.8)
    design = torch.tensor(np.hstack([np.ones((60, 1)), rng.uniform(-1, 1, (60, 2))]))
    noise = torch.tensor(rng.normal(0, 0.7, 60))
    labels = (design[:, 1] + noise > 0).long() + (size > 2) * (design[:, 2] > 0.5).long()
    masses = torch.nn.functional.one_hot(labels, size).double() / 60
    corners = torch.tensor([[1.0, a, b] for a in (-1, 1) for b in (-1, 1)], dtype=torch.float64)
    value, error, coefficients = scores.linear(design, masses)

    def margins(flat: np.ndarray) -> np.ndarray:
        points = corners @ torch.tensor(flat.reshape(3, size)) @ scores.problem.basis @ scores.margins.T
        return 0.8 - points.reshape(-1).numpy()

    def risk(flat: np.ndarray) -> float:
        return float(scores.losses(design @ torch.tensor(flat.reshape(3, size)), labels).mean())

    assert margins(coefficients.numpy().reshape(-1)).min() >= -1e-9 and error <= 1e-6
    assert risk(coefficients.numpy().reshape(-1)) == pytest.approx(value, abs=1e-9)
    run = scipy.optimize.minimize(
        risk, np.zeros(3 * size), method="SLSQP", constraints={"type": "ineq", "fun": margins}, options={"ftol": 1e-10}
    )
    assert value <= run.fun + 1e-6
    if surrogate.is_c1:  # SLSQP stops early at kinks.
        assert value == pytest.approx(run.fun, abs=1e-5)


INPUTS = np.array([[-1.0], [-0.4], [0.1], [0.5], [1.0]])
ETA = np.array([0.1, 0.6, 0.3, 0.9, 0.8])


def draw(count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows from a known distribution: five equally likely inputs; the ends of the box occur in every sample."""
    rng = np.random.default_rng(seed)
    place = np.concatenate([[0, 4], rng.integers(0, 5, count - 2)])
    return INPUTS[place], (rng.random(count) < ETA[place]).astype(int), ETA[place]


@pytest.mark.parametrize(
    ("surrogate", "seeds"),
    (
        (LinearCore(), 1),
        pytest.param(LinearCore(), 10, marks=pytest.mark.slow),
        pytest.param(Logistic(), 10, marks=pytest.mark.slow),
    ),
    ids=("core", "core, more samples", "logistic"),
)
def test_limits_contain_the_truth(surrogate: Surrogate, seeds: int) -> None:
    bound, p = 1.5, torch.tensor(np.stack([1 - ETA, ETA], 1))
    scores = BoundedScores(surrogate, Problem("pairwise", 2), bound)
    best = scores.linear(torch.tensor(np.hstack([np.ones((5, 1)), INPUTS])), p / 5)[0]
    gap = best - float(scores.pointwise(p)[0].mean())
    signs = [s * np.sign(INPUTS[:, 0] - cut + 1e-12) for cut in (-2, -0.7, -0.1, 0.3, 0.7) for s in (-1, 1)]
    best_error = min(np.where(sign > 0, 1 - ETA, ETA).mean() for sign in signs)
    error_gap = best_error - np.minimum(ETA, 1 - ETA).mean()
    for seed in range(seeds):
        features, labels, eta = draw(300, seed)
        plain = sample_bound(surrogate, "pairwise", features, labels, bound=bound, seed=seed)
        model = sample_bound(surrogate, "pairwise", features, labels, bound=bound, probabilities=eta, seed=seed)
        for found in (plain, model):
            for interval, truth in (
                (found.best_surrogate, best),
                (found.surrogate_gap, gap),
                (found.best_zero_one, best_error),
                (found.zero_one_gap, error_gap),
            ):
                assert interval.low <= truth <= interval.high
            assert found.observed[0] <= found.observed[1] + 1e-6
        assert model.surrogate_gap.low >= plain.surrogate_gap.low
        assert abs(model.surrogate_gap.estimate - gap) < 0.1
    large = sample_bound(surrogate, "pairwise", *draw(20_000, 0)[:2], bound=bound)
    assert large.surrogate_gap.estimate == pytest.approx(gap, abs=0.02)
    assert large.surrogate_gap.high - gap < 0.25 * float(surrogate.value(-bound))


def test_three_classes_have_the_line_of_the_theorem() -> None:
    rng = np.random.default_rng(0)
    features, labels = rng.integers(-2, 3, (200, 2)).astype(float), rng.integers(0, 3, 200)
    found = sample_bound(LinearCore(), "centered", features, labels, bound=0.5)
    assert dict(found.transformation)[0.1] == pytest.approx(0.1 * 0.5 / 2)
    assert found.observed[0] <= found.observed[1]
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert plain["surrogate_gap"]["high"] == found.surrogate_gap.high and plain["rows"] == 200
    assert found.guarantee <= 1


def test_certificates_for_bounded_scores() -> None:
    free = {"outputs": Sequences(2, 2), "cost": "hamming", "bound": 0.25}
    assert certify(LinearCore(), "structured-centered", **free).linear_bound.constant == 4
    assert certify(LinearCore(), "local-centered", family="unary", **free).linear_bound.constant == 2
    # Two sides are allowed while no margin comes to the left tail.
    two = LinearCore(sides=2, tau=1.0)
    assert certify(two, "centered", 3, bound=0.5).linear_bound.verdict == "proven"
    assert certify(two, "centered", 3, bound=0.6).linear_bound.verdict == "unknown"
    curved = certify(Logistic(), "pairwise", 2, bound=0.5)
    assert (curved.linear_bound.verdict, curved.consistent.verdict) == ("refuted", "proven")
    t = np.linspace(1e-3, 1, 500)
    assert (curved.worst_case.constant * transform(Logistic(), t, bound=0.5) ** 0.5 >= t - 1e-9).all()
    assert certify(LinearCore(), "pairwise", 3, bound=2.0).linear_bound.verdict == "unknown"


BAD = {
    "form": (
        lambda: sample_bound(LinearCore(), "logodds", np.eye(6), [0, 1, 2] * 2, bound=1.0),
        "`form` must be a multi-class",
    ),
    "theorem": (
        lambda: sample_bound(Logistic(), "centered", np.eye(6), [0, 1, 2] * 2, bound=1.0),
        "`form` must have a proven",
    ),
    "bound": (
        lambda: sample_bound(LinearCore(), "pairwise", np.eye(4), [0, 1] * 2, bound=-1.0),
        "`bound` must be a positive",
    ),
    "rows": (
        lambda: sample_bound(LinearCore(), "pairwise", np.eye(2), [0, 1], bound=1.0),
        "`features` must have at least 4",
    ),
    "probabilities": (
        lambda: sample_bound(LinearCore(), "pairwise", np.eye(4), [0, 1] * 2, bound=1.0, probabilities=[0.5]),
        "`probabilities` must have shape (4, 2), got (1, 2)",
    ),
    "sums": (
        lambda: sample_bound(LinearCore(), "pairwise", np.eye(4), [0, 1] * 2, bound=1.0, probabilities=np.ones((4, 2))),
        "`probabilities` must be non-negative and add up to 1",
    ),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD.keys())
def test_messages(call, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)
