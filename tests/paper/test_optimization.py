"""`optimization`: who stalls and who converges."""

import pytest
import torch

from linearcore.surrogates import Hinge, LinearCore
from linearcore_paper.experiments.optimization import FEW, LAMBDA, LOSSES, MANY, Data, optimal_margin
from tests.paper.outcomes import drawn, outcome, verdicts


def run(loss: str, samples: int, one_sample: bool) -> dict:
    wanted = {"loss": loss, "samples": samples, "one_sample": one_sample}
    return next(run for run in outcome("optimization").data["runs"] if wanted.items() <= run.items())


def test_settings_are_the_papers():
    data = outcome("optimization").data
    assert (data["step_size"], data["lambda"]) == (0.1, 0.05)
    assert FEW < 1 / data["lambda"] < MANY


def test_full_gradients_with_few_samples_hinge_stalls_and_linear_core_converges():
    hinge, core = run("hinge", FEW, False), run("lc", FEW, False)
    assert hinge["least_later"] > 1e-3
    assert core["distance"][-1] < 1e-6
    assert hinge["excess_at_end"] > 1e-3 and core["excess_at_end"] < 1e-12


def test_full_gradients_with_many_samples_both_converge():
    assert run("hinge", MANY, False)["distance"][-1] < 1e-6
    assert run("lc", MANY, False)["distance"][-1] < 1e-6


def test_one_sample_steps_stop_at_a_floor_for_both():
    for loss in LOSSES:
        found = run(loss, FEW, True)
        assert found["least_later"] > 1e-2
        assert found["gradient_later"] > 0.1


def test_verdicts_on_optimization_and_its_figure():
    assert drawn("optimization").axes
    assert verdicts("optimization") == [
        ("holds with a correction", "m"),
        ("holds with a correction", "m"),
        ("does not hold", "m"),
    ]


def test_features_are_orthonormal_and_the_seed_decides():
    data = Data.draw(FEW, seed=3)
    torch.testing.assert_close(data.signed @ data.signed.T, torch.eye(FEW, dtype=torch.float64))
    assert torch.equal(data.signed, Data.draw(FEW, seed=3).signed)
    assert not torch.equal(data.signed, Data.draw(FEW, seed=4).signed)


@pytest.mark.parametrize("samples", [FEW, MANY])
@pytest.mark.parametrize("phi", [Hinge(), LinearCore(), LinearCore("gamma")], ids=["hinge", "logistic", "gamma"])
def test_optimum_is_one(phi, samples):
    # No point around it is better.
    data = Data.draw(samples, seed=0)
    best = data.optimum(phi)
    away = best + 0.01 * torch.randn(50, samples, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert (data.objective(phi, away) > data.objective(phi, best)).all()


def test_hinge_has_its_optimum_at_the_kink_only_with_few_samples():
    assert optimal_margin(Hinge(), FEW) == pytest.approx(1.0, abs=1e-12)
    assert optimal_margin(Hinge(), MANY) == pytest.approx(1 / (MANY * LAMBDA), abs=1e-12)
