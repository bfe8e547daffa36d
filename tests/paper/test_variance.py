"""`variance`: measured spreads of gradients against closed forms, enumeration and the bounds."""

import math

import pytest
import torch

from linearcore.structures import Sequences
from linearcore_paper.experiments import variance
from linearcore_paper.experiments.variance.sampled_gradients import around_truth, measure_variance
from linearcore_paper.experiments.variance.single_sites import local_draws
from linearcore_paper.experiments.variance.uniform_tags import GRID, LENGTH, UniformTags
from linearcore_paper.experiments.variance.variances import CONTROL_MARGINS, SAMPLES, SURROGATES, log_slope
from linearcore_paper.runner import Settings
from tests.paper.outcomes import drawn, outcome, verdicts


def data() -> dict:
    return outcome("variance").data


@pytest.mark.parametrize("lift", [0.0, 1.0])
@pytest.mark.parametrize("key", SURROGATES)
def test_closed_form_is_that_of_enumeration(key, lift):
    phi = SURROGATES[key][1]
    problem = UniformTags.draw(3, margin=1.0, spread=1.5, seed=2)
    space = Sequences(3, LENGTH)
    features = space.features("unary") / math.sqrt(LENGTH)
    assert features.norm(dim=-1).numpy() == pytest.approx(1)
    # The truth is the first sequence: tag 0 everywhere.
    differences = features[0] - features
    margins = differences @ (GRID * problem.levels.double().reshape(-1))
    assert float(margins.min()) < -1 and float(margins.max()) > 1
    terms = (phi.derivative(margins) + lift).unsqueeze(-1) * differences
    mean, single = problem.exact(phi, lift)
    torch.testing.assert_close(mean, terms.mean(0))
    assert single == pytest.approx(float((terms - terms.mean(0)).square().sum(-1).mean()))


def test_spread_around_the_mean_of_the_runs_is_that_around_the_exact_one():
    problem, phi = UniformTags.draw(10, margin=1.0, spread=1.5, seed=0), SURROGATES["lc-logistic-1"][1]
    mean, single = problem.exact(phi)
    known, found = (
        measure_variance(problem, around_truth(phi, 4, torch.Generator().manual_seed(0)), 2000, around)
        for around in (mean, None)
    )
    assert found.variance == pytest.approx(known.variance, rel=0.01)
    assert found.mean_square == pytest.approx(known.mean_square, rel=0.05)
    assert abs(4 * known.variance - single) < 5 * 4 * known.error


def test_variance_falls_as_one_over_k_with_the_constant_of_the_closed_form():
    for row in data()["samples"]:
        assert row["samples"] == list(SAMPLES)
        assert row["slope"] == pytest.approx(-1, abs=0.05)
        for k, found, error in zip(SAMPLES, row["variance"], row["error"], strict=True):
            assert abs(found - row["exact_of_one"] / k) < 5 * error
            assert found <= row["lipschitz"] ** 2 / k and found <= 4 / k


def test_antipodal_outputs_attain_the_bound_and_a_steep_surrogate_breaks_the_papers():
    one, two, steep = data()["worst"]
    for row in (one, two, steep):
        assert row["measured"] == pytest.approx(row["exact"], rel=0.05)
    assert one["exact"] == [1.0] * len(one["margin"])
    assert (two["lipschitz"], steep["lipschitz"]) == (2, None)
    assert two["exact"][0] == pytest.approx(4, abs=2e-3) and max(two["exact"]) <= 4
    # φ' = −e^{−1−u} left of the core.
    assert steep["exact"][steep["margin"].index(-4.0)] == pytest.approx(math.exp(6), rel=1e-5)


def test_around_the_truth_it_is_flat_in_the_number_of_tags():
    rows = data()["tags"]
    assert [row["tags"] for row in rows] == [10, 100, 1_000, 10_000]
    for key in ("lc-logistic-1", "lc-logistic-2"):
        found = [row["truth"][key] for row in rows]
        assert [each["variance"] for each in found] == pytest.approx([each["exact"] for each in found], rel=0.08)
        for name in ("variance", "exact"):
            assert max(each[name] for each in found) / min(each[name] for each in found) < 1.25


def test_pairs_grow_unless_normalised_and_drawn_by_similarity():
    rows = data()["tags"]
    tags = [row["tags"] for row in rows]
    total, mean, uniform = ([row["pairs"][name] for row in rows] for name in ("sum", "mean", "mean-uniform"))
    assert all(1.2 < row["variance"] < 1.8 for row in mean)
    # The weights of the sum are a constant, |Y|^(2L − 1) up to 1/M.
    assert log_slope(tags, [row["variance"] for row in total]) == pytest.approx(2 * (2 * LENGTH - 1), abs=0.05)
    for size, summed, averaged in zip(tags, total, mean, strict=True):
        assert summed["variance"] == pytest.approx(averaged["variance"] * float(size) ** (4 * LENGTH - 2), rel=0.2)
        assert summed["relative"] == pytest.approx(averaged["relative"], rel=0.3)
    # Weights of |Y| for one draw in |Y|.
    assert log_slope(tags, [row["variance"] for row in uniform]) == pytest.approx(1, abs=0.12)
    assert uniform[2]["variance"] > 100


def test_local_draws_fall_as_one_over_k_around_the_full_gradient():
    rows = data()["local"]
    assert [row["shared"] for row in rows] == [True, False]
    for row in rows:
        assert row["slope"] == pytest.approx(-1, abs=0.05)
        # A mean over sites of means over candidates, not a sum over 99 of them.
        assert 0.1 < row["variance"][0] < 2


def test_local_draws_leave_the_global_stream_alone():
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    first = local_draws((1, 2), 2, seed=5)
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(4)
    assert local_draws((1, 2), 2, seed=5) == first
    assert local_draws((1, 2), 2, seed=6) != first


def test_control_variate_helps_in_the_core_and_harms_beyond_it_unless_its_slope_follows():
    rows = data()["control"]
    assert [row["margin"] for row in rows] == list(CONTROL_MARGINS)
    assert [row["one"] for row in rows] == pytest.approx([row["exact_one"] for row in rows], rel=0.15)
    assert rows[0]["one"] < 0.01 and rows[-1]["one"] > 30
    assert all(row["running"] < 1.05 for row in rows)
    assert rows[0]["alpha"] > 0.95 and rows[-1]["alpha"] < 0.15


def test_verdicts_on_variance_and_its_figure():
    assert drawn("variance").axes
    assert verdicts("variance") == [
        ("holds", None),
        ("holds with a correction", "d"),
        ("holds", None),
        ("does not hold", "g"),
        ("holds", "g"),
        ("holds", None),
        ("holds", None),
    ]


def test_seed_decides_and_the_paper_scale_has_more_sizes():
    few, many = (variance.parts(Settings(scale=scale)) for scale in ("smoke", "paper"))
    assert len(few) == 11 and len(many) == 14 and set(few) < set(many)
    again, other = (variance.parts(Settings(seed=seed))["worst"]() for seed in (0, 1))
    assert again == data()["worst"] != other
