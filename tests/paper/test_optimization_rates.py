"""`optimization-rates`: exponents on problems with a known minimum, failures of steep surrogates, end-to-end curves."""

import math

import numpy as np
import pytest
import torch

from linearcore.surrogates import Hinge, LinearCore, Logistic
from linearcore_paper.experiments.optimization_rates import SMOOTH, STEEP, descent, end_to_end
from linearcore_paper.experiments.optimization_rates.claims import slowest
from tests.paper.outcomes import COMMITTED, conclusion, outcome, verdicts


def test_minimisers_are_those_of_closed_forms():
    problem = descent.ties()
    t = problem.t
    # One-sided logistic core: σ(τ − u) = s = (1 − t)/(2(1 + t)). Logistic loss: u = log((1 + t)/(1 − t)).
    s = (1 - t) / (2 * (1 + t))
    torch.testing.assert_close(problem.optimum(LinearCore()), 1 - torch.log(s / (1 - s)), rtol=0, atol=1e-12)
    torch.testing.assert_close(problem.optimum(Logistic()), torch.log1p(t) - torch.log1p(-t), rtol=0, atol=1e-12)
    torch.testing.assert_close(problem.optimum(Hinge()), torch.ones_like(t), rtol=0, atol=1e-12)
    # In the core a regulariser has its minimum at t/λ.
    small = descent.Problem(torch.tensor([0.01], dtype=torch.float64), ridge=0.1)
    assert float(small.optimum(LinearCore())) == pytest.approx(0.1, abs=1e-14)


def test_gradient_descent_crosses_the_core_in_steps_of_the_bias():
    t, steps = 1e-3, 100
    problem = descent.Problem(torch.tensor([t], dtype=torch.float64))
    phi = LinearCore()
    path = descent.descend(phi, problem, "gradient", steps)
    start = float(problem.risk(phi, torch.zeros(1, dtype=torch.float64)) - problem.risk(phi, problem.optimum(phi)))
    expected = start - t * t / phi.smoothness * np.arange(1, steps + 1)
    np.testing.assert_allclose(path.excess, expected, rtol=1e-9)


def test_one_step_from_zero_predicts_the_likelier_label_with_every_loss():
    problem = descent.ties()
    for _, phi in (*SMOOTH.values(), *STEEP.values(), *end_to_end.LOSSES.values()):
        assert (problem.slope(phi, torch.zeros_like(problem.t)) < 0).all()


def test_exponents_of_powers():
    steps = np.arange(1, 301)
    assert descent.exponent(3.0 / steps**1.5) == pytest.approx(1.5)
    assert descent.exponent(0.5**steps) is None
    assert descent.factor(0.7**steps) == pytest.approx(0.7)


def test_measured_exponents_are_within_a_tenth_of_theory():
    for data in (outcome("optimization-rates").data, conclusion(COMMITTED, "optimization-rates")["results"]["data"]):
        for row in data["rates"]:
            for method, theory in (("gradient", 1.0), ("nesterov", 2.0)):
                assert slowest(row[method]) == pytest.approx(theory, abs=0.1), (row["key"], method)
                assert row[method]["share_of_guarantee"] <= 1
        assert data["hinge"]["ties"] == pytest.approx(0.5, abs=0.1)


def test_only_surrogates_with_bounded_curvature_survive_a_fixed_step():
    assert set(STEEP) == {"lc-exponential-2", "lc-quartic-1", "lc-quartic-2"}
    for _, phi in SMOOTH.values():
        assert descent.fails_from(phi, 1 / phi.smoothness) is None
    for row in outcome("optimization-rates").data["steep"]:
        assert row["fails_from"] == sorted(row["fails_from"]) and row["fails_from"][-1] < 50


def test_excess_of_random_flips_is_proportional_to_the_angle():
    angles = torch.tensor([0.01, 0.3, 1.2], dtype=torch.float64)
    v = torch.stack([angles.cos(), -angles.sin()], -1)
    np.testing.assert_allclose(end_to_end.zero_one_excess("flips", v), 0.6 * angles.numpy() / math.pi, rtol=1e-3)


def test_bound_is_above_the_excess_and_population_risk_is_least_in_its_direction():
    stream = torch.Generator().manual_seed(0)
    v = 2 * torch.randn(50, 2, dtype=torch.float64, generator=stream)
    for law in end_to_end.LAWS:
        for _, phi in end_to_end.LOSSES.values():
            population = end_to_end.Population.on_grid(phi, law, 16)
            assert (population.bound(v) >= end_to_end.zero_one_excess(law, v) - 1e-3).all()
            assert float(population.gradient(torch.tensor([[1.5, 0.0]], dtype=torch.float64))[0, 1].abs()) < 1e-12


def test_hinge_fit_is_a_minimum():
    signed = torch.randn(40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) + 0.3
    w = end_to_end._fit_hinge(signed)
    around = w + 0.01 * torch.randn(200, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    losses = Hinge().value(around @ signed.T).mean(-1)
    assert (losses >= Hinge().value(signed @ w).mean() - 1e-12).all()


def test_verdicts_on_optimization_rates():
    assert verdicts("optimization-rates") == [
        ("holds with a correction", "r"),
        ("holds with a correction", "r"),
        ("does not hold", "r"),
        ("holds", None),
        ("holds", None),
        ("does not hold", None),
        ("does not hold", None),
        ("holds with a correction", "v"),
    ]
