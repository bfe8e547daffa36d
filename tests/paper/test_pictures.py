"""`surrogates`, `surfaces`, `gradients` and `counterexample`: the numbers behind their figures."""

import math
from itertools import pairwise

import pytest

from linearcore.surrogates import BASES, Hinge, LinearCore, Logistic
from linearcore_paper.drawing import _spread
from linearcore_paper.experiments import surrogates
from linearcore_paper.experiments.surrogates.checked_facts import agrees, facts
from tests.paper.outcomes import drawn, outcome, verdicts


def test_every_row_of_table_1_is_confirmed_by_numbers():
    rows = {row["key"]: row for row in outcome("surrogates").data["table"]}
    assert len(rows) == 4 + 2 * len(BASES) + 3
    assert all(row["agrees"] for row in rows.values())
    assert [rows[key]["declared"]["class"] for key in surrogates.PAPER_ROWS] == ["kink", "C1", "C∞", "C∞"]
    assert {key for key in surrogates.CORES if rows[key]["found"]["class"] == "C2"} == {
        f"lc-{base}-{sides}" for base in ("quartic", "gamma") for sides in (1, 2)
    }
    assert all(rows[key]["kind"] == "linear" for key in surrogates.CORES)
    assert rows["smoothed-hinge"]["kind"] == "linear" and rows["smoothed-hinge-1"]["kind"] == "square root"


def test_verdicts_on_surrogates_and_its_figure():
    assert drawn("surrogates").axes
    assert verdicts("surrogates") == [("holds", None)] * 4 + [("holds with a correction", "e"), ("does not hold", "j")]


@pytest.mark.parametrize("fact, wrong", [("class", "C2"), ("convex", False), ("bound", 0.9), ("bound", None)])
def test_a_wrong_declaration_would_be_seen(fact, wrong):
    row = facts(Hinge(), 1e-3)
    assert agrees(row)
    row["declared"][fact] = wrong
    assert not agrees(row)


def test_a_bound_that_is_not_there_would_be_seen():
    row = facts(Logistic(), 1e-3)
    row["declared"]["bound"] = 0.5
    assert not agrees(row)


def test_lines_of_the_quartic_turn_up():
    quartic = facts(LinearCore("quartic"), 1e-3)
    assert quartic["lowest_at"] == pytest.approx(1 + 3 ** (1 / 3), abs=1e-3)


def test_surfaces_are_affine_in_the_core_and_convex():
    surfaces = {surface["key"]: surface for surface in outcome("surfaces").data["surfaces"]}
    assert len(surfaces) == 4
    for surface in surfaces.values():
        assert surface["least_eigenvalue"] >= -1e-9
    assert all(surfaces[f"{key}"]["curvature_in_core"] == 0 for key in ("pairwise-logistic", "pairwise-exponential"))
    assert surfaces["logodds-logistic"]["curvature_in_core"] > 0.1
    # Both margins 0: two competitors at φ(0) = 1 + 2 log 2, and 1 + 1.
    middle = len(surfaces["pairwise-logistic"]["axis"]) // 2
    assert surfaces["pairwise-logistic"]["value"][middle][middle] == pytest.approx(2 * (1 + 2 * math.log(2)), rel=1e-4)
    assert surfaces["pairwise-exponential"]["value"][middle][middle] == pytest.approx(4.0)
    assert verdicts("surfaces") == [("holds", None)] * 2


def test_gradients_are_constant_in_the_core_and_not_bounded_by_one_on_two_sides():
    data = outcome("gradients").data
    curves = {curve["key"]: curve for curve in data["curves"]}
    for key in ("lc-logistic-1", "lc-truncated-1", "lc-gamma-1"):
        assert curves[key]["spread_up_to_one"] == 0
    assert curves["logistic"]["spread_up_to_one"] > 0.5
    assert data["steepest"]["logistic-1"] == 1 and data["steepest"]["logistic-2"] == pytest.approx(2, abs=1e-5)
    assert verdicts("gradients") == [("holds", None), ("holds", None), ("does not hold", "d")]


#: The table of docs/reading-the-paper-with-care.md (a), smallest δ first.
RATIOS = {
    "pairwise-logistic-1-tau-1-classes-3": (0.042, 0.104, 0.209, 0.419, 0.925, 1.320),
    "pairwise-exponential-2-tau-1-classes-3": (0.013, 0.032, 0.065, 0.130, 0.325, 0.795),
    "logodds-logistic-1-tau-1-classes-3": (0.018, 0.044, 0.088, 0.176, 0.461, 0.901),
    "centered-logistic-1-tau-1-classes-3": (1.763, 1.775, 1.795, 1.833, 1.944, 2.114),
    "centered-logistic-1-tau-0.5-classes-3": (1.013, 1.025, 1.045, 1.083, 1.194, 1.364),
    "centered-logistic-2-tau-1-classes-4": (0.003, 0.008, 0.016, 0.033, 0.084, 0.273),
}


def test_ratios_are_the_documented_ones():
    data = outcome("counterexample").data
    rows = {row["key"]: row for row in data["rows"]}
    assert data["deltas"] == [0.002, 0.005, 0.01, 0.02, 0.05, 0.1]
    for key, ratios in RATIOS.items():
        assert rows[key]["ratios"] == pytest.approx(ratios, abs=6e-4), key
    # With classes for outputs the structured sum is the pairwise sum.
    assert rows["structured-sum-logistic-1-tau-1-classes-3"]["ratios"] == pytest.approx(
        rows["pairwise-logistic-1-tau-1-classes-3"]["ratios"]
    )
    assert rows["pairwise-logistic-1-tau-1-classes-3"]["ratios"][0] / 0.002 == pytest.approx(125 / 6, abs=0.01)


def test_unary_scores_lose_the_centered_bound():
    ratios = outcome("counterexample").data["unary_scores"]["ratios"]
    assert (ratios[5], ratios[4], ratios[3], ratios[2]) == pytest.approx((0.26, 0.13, 0.052, 0.026), abs=5e-3)


def test_search_refutes_pairwise_and_not_centered():
    found = {row["form"]: row for row in outcome("counterexample").data["searches"]}
    assert found["pairwise"]["refutes"] and found["pairwise"]["ratio"] < 0.2
    assert not found["centered"]["refutes"] and found["centered"]["ratio"] >= 1 - 1e-6
    assert verdicts("counterexample") == [
        ("does not hold", "a"),
        ("does not hold", "a"),
        ("holds", "a"),
        ("holds", None),
    ]


def test_labels_are_moved_apart_and_stay_inside():
    assert _spread([0.5], 0.1) == [0.5]
    assert _spread([0.2, 0.8], 0.1) == [0.2, 0.8]
    for heights in ([1.0, 1.0, 1.0], [0.0, 0.01, 0.02], [0.5, 0.5, 0.9, 0.95, 0.5]):
        places = _spread(heights, 0.1)
        ordered = sorted(places)
        assert min(b - a for a, b in pairwise(ordered)) >= 0.1 - 1e-6
        assert min(places) >= -1e-9 and max(places) <= 1 + 1e-9
