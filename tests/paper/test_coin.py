"""`rates`, `thresholds` and `vanishing-core`: slopes on the biased coin, against T in closed form and many digits.

One-sided logistic φ: right of the core φ(u) = 2 log(1 + e^{τ−u}), left of it φ(−u) = τ + u + 2 log 2. The risk is least
where σ(τ − u) = s = (1 − t)/(2(1 + t)), that is at u = τ − log(s/(1 − s)), where φ(u) = −2 log(1 − s).
"""

import mpmath as mp
import pytest

from tests.paper.outcomes import drawn, outcome, verdicts

TAUS = ("0.1", "0.5", "1", "2", "5")
FITS = {1: (0.839, 0.946, 0.970, 0.984, 0.993), 2: (0.885, 0.967, 0.982, 0.991, 0.996)}
DELTAS = [mp.mpf(10) ** (mp.mpf(step) / 10 - 4) for step in range(31)]


def exact(tau: str, t: mp.mpf) -> mp.mpf:
    s = (1 - t) / (2 * (1 + t))
    start = mp.mpf(tau) + 2 * mp.log(2)
    u = mp.mpf(tau) - mp.log(s / (1 - s))
    return start - (1 - t) / 2 * (start + u) + (1 + t) * mp.log(1 - s)


@mp.workdps(40)
def exact_fit(tau: str) -> float:
    x, y = [mp.log(exact(tau, 2 * delta)) for delta in DELTAS], [mp.log(2 * delta) for delta in DELTAS]
    mean_x, mean_y = mp.fsum(x) / len(x), mp.fsum(y) / len(y)
    above = mp.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return float(above / mp.fsum((a - mean_x) ** 2 for a in x))


@mp.workdps(40)
def exact_slope(tau: str, delta: str) -> float:
    t = 2 * mp.mpf(delta)
    return float(exact(tau, t) / (t * mp.diff(lambda x: exact(tau, x), t)))


@mp.workdps(40)
def exact_regret(tau: str, delta: mp.mpf) -> float:
    return float(exact(tau, 2 * delta))


def thresholds(sides: int) -> list[dict]:
    return [curve for curve in outcome("thresholds").data["curves"] if curve["sides"] == sides]


@pytest.mark.parametrize("sides", (1, 2))
def test_local_slope_of_every_threshold_is_one_at_the_small_end(sides):
    curves = thresholds(sides)
    assert [curve["tau"] for curve in curves] == [float(tau) for tau in TAUS]
    for curve in curves:
        assert curve["delta"][0] == pytest.approx(1e-4) and curve["delta"][-1] == pytest.approx(1e-1)
        assert curve["local_slope"][0] == pytest.approx(1.0, abs=0.01)


def test_local_slope_of_logistic_is_one_half():
    assert outcome("thresholds").data["logistic"]["local_slope"][0] == pytest.approx(0.5, abs=0.01)
    assert outcome("rates").data["curves"][-1]["key"] == "logistic"
    assert outcome("rates").data["curves"][-1]["local_slope"][0] == pytest.approx(0.5, abs=0.01)


def test_local_slope_of_every_linear_core_in_rates_is_one():
    *cores, _ = outcome("rates").data["curves"]
    assert len(cores) == 3
    assert all(curve["local_slope"][0] == pytest.approx(1.0, abs=0.01) for curve in cores)


def test_straight_fit_and_local_slope_are_those_of_exact_t():
    for curve, tau in zip(thresholds(1), TAUS, strict=True):
        assert curve["fit"] == pytest.approx(exact_fit(tau), abs=1e-3)
        assert curve["local_slope"][0] == pytest.approx(exact_slope(tau, "1e-4"), abs=1e-6)
        assert curve["surrogate_regret"][15] == pytest.approx(exact_regret(tau, DELTAS[15]), rel=1e-8)


@pytest.mark.parametrize("sides", (1, 2))
def test_straight_fits_are_the_documented_ones(sides):
    assert [curve["fit"] for curve in thresholds(sides)] == pytest.approx(FITS[sides], abs=1e-3)


def test_bound_is_tau_t_and_not_t_over_tau():
    for row in outcome("thresholds").data["bound"]:
        assert row["tau"] * (1 - 1e-9) <= row["least_ratio"] <= row["tau"] * 1.03
    assert verdicts("thresholds") == [("holds with a correction", "l"), ("does not hold", "f"), ("holds", None)]


def test_verdicts_on_rates():
    assert verdicts("rates") == [("holds with a correction", "l"), ("holds", None)]


def test_crossover_is_where_it_is_predicted():
    rows = outcome("vanishing-core").data["crossovers"]
    assert len(rows) == 3 * 2 * 5
    bend = {"logistic": 0.5, "exponential": 1.0, "truncated_quadratic": 1.0}
    for row in rows:
        assert row["predicted"] == pytest.approx(bend[row["base"]] * row["tau"] * row["sides"] / 2)
        # Leading order only: at τ = 0.1 the other bases may be further off.
        if row["base"] == "logistic" or row["tau"] <= 1e-2:
            assert row["measured"] == pytest.approx(row["predicted"], rel=0.2)
        if row["tau"] <= 1e-3:
            assert row["measured"] == pytest.approx(row["predicted"], rel=0.01)


def test_without_a_core_slopes_go_to_one_half_or_three_quarters():
    rows = outcome("vanishing-core").data["limits"]
    assert {row["base"] for row in rows if row["is_c2"]} == {"quartic", "gamma"}
    for row in rows:
        assert row["limit"] == pytest.approx(0.75 if row["is_c2"] else 0.5, abs=0.005)
    logistic = next(row for row in rows if row["base"] == "logistic" and row["sides"] == 1)
    assert logistic["fit"] == pytest.approx(0.505, abs=1e-3)
    assert drawn("vanishing-core").axes
    assert verdicts("vanishing-core") == [("holds with a correction", "k"), ("holds with a correction", "l")]
