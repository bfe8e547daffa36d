"""Regret ratios, certified, and by a second method: `docs/reading-the-paper-with-care.md` (a), and unary scores."""

import numpy as np
import pytest

from linearcore import Exponential, Hinge, LinearCore, Surrogate
from linearcore.analysis import conditional_risk, minimal_risk, regret_ratio
from linearcore.losses import Centered, Form, LogOdds, Pairwise
from linearcore.structures import Sequences
from tests import oracles

DELTAS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002)

#: form, surrogate, p(δ), ratio at DELTAS (the last five where it has five): three decimals of
#: `docs/reading-the-paper-with-care.md` (a).
TABLES = {
    "pairwise": (Pairwise(normalize=False), LinearCore(), (0.4, 0.4, 0.2), (1.320, 0.925, 0.419, 0.209, 0.104, 0.042)),
    "logodds": ("logodds", LinearCore(), (0.4, 0.4, 0.2), (0.901, 0.461, 0.176, 0.088, 0.044, 0.018)),
    "centered, two sides": (
        Centered(normalize=False),
        LinearCore(sides=2),
        (0.3, 0.3, 0.2, 0.2),
        (0.084, 0.033, 0.016, 0.008, 0.003),
    ),
}


def near_tie(middle: tuple[float, ...], delta: float) -> list[float]:
    return [middle[0] + delta, middle[1] - delta, *middle[2:]]


@pytest.mark.parametrize(("form", "surrogate", "middle", "table"), TABLES.values(), ids=TABLES.keys())
def test_tables(form: str | Form, surrogate: Surrogate, middle: tuple[float, ...], table: tuple[float, ...]) -> None:
    for delta, expected in zip(DELTAS[-len(table) :], table, strict=True):
        found = regret_ratio(surrogate, form, near_tie(middle, delta), prediction=1)
        assert found.ratio == pytest.approx(expected, abs=5.1e-4)
        assert found.residual <= 1e-9
        assert found.target_regret == pytest.approx(2 * delta)
        assert found.ratio == pytest.approx(found.surrogate_regret / found.target_regret)


@pytest.mark.parametrize(
    "surrogate",
    (LinearCore(), LinearCore(sides=2), LinearCore("exponential"), LinearCore("exponential", sides=2)),
    ids=("logistic", "logistic, two sides", "exponential", "exponential, two sides"),
)
@pytest.mark.parametrize("form", ("pairwise", "logodds"))
def test_the_ratio_vanishes_in_proportion_to_the_gap(form: str, surrogate: Surrogate) -> None:
    ratios = [regret_ratio(surrogate, form, near_tie((0.4, 0.4, 0.2), d), 1).ratio for d in (1e-3, 5e-4, 2.5e-4)]
    assert ratios[0] < 0.05
    assert ratios[0] / ratios[1] == pytest.approx(2, rel=0.02) and ratios[1] / ratios[2] == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize("tau", (0.25, 3.0))
@pytest.mark.parametrize("base", ("logistic", "exponential", "truncated_quadratic", "gamma"))
def test_centered_with_one_side_keeps_its_bound(base: str, tau: float) -> None:
    rng = np.random.default_rng(0)
    for size in (2, 4):
        p = rng.dirichlet(np.ones(size))
        for prediction in set(range(size)) - {int(p.argmax())}:
            assert regret_ratio(LinearCore(base, tau), Centered(normalize=False), p, prediction).ratio >= tau - 1e-9


def test_the_bound_of_the_mean_is_weaker_by_the_number_of_competitors() -> None:
    p = [0.4, 0.35, 0.25]
    summed = regret_ratio(LinearCore(), Centered(normalize=False), p, 1).ratio
    assert regret_ratio(LinearCore(), Centered(), p, 1).ratio == pytest.approx(summed / 2, rel=1e-9)


@pytest.mark.parametrize(
    "form", (Pairwise(normalize=False), Centered(normalize=False), LogOdds()), ids=("pairwise", "centered", "logodds")
)
def test_ratios_are_those_of_a_box_constrained_search(form) -> None:
    rng = np.random.default_rng(1)
    for _ in range(3):
        p = np.round(0.8 * rng.dirichlet(np.ones(4)) + 0.05, 3)
        p[0] += 1 - p.sum()
        prediction = int(p.argsort()[-2])
        expected = oracles.regret_ratio(oracles.Bound(form, LinearCore()), p.tolist(), prediction)
        assert regret_ratio(LinearCore(), form, p, prediction).ratio == pytest.approx(expected, rel=1e-5)


def test_the_sum_loss_has_no_bound_with_hamming_cost_either() -> None:
    # The same sites as below, and any scores: (a) is not a matter of 0-1 cost.
    table = {0.1: 0.542, 0.05: 0.263, 0.02: 0.104, 0.01: 0.052}
    for delta, expected in table.items():
        p = np.outer([0.5 + delta, 0.5 - delta], [0.7, 0.3]).reshape(-1)
        found = regret_ratio(LinearCore(), "structured-sum", p, 2, outputs=Sequences(2, 2), cost="hamming")
        assert found.ratio == pytest.approx(expected, abs=5e-4)
        assert found.target_regret == pytest.approx(delta)


def test_unary_scores_lose_the_structured_bound() -> None:
    # Hamming cost, independent sites (.5 ± δ) and (.7, .3). The answer has the first site wrong.
    table = {0.1: 0.26, 0.05: 0.13, 0.02: 0.052, 0.01: 0.026}
    for delta, expected in table.items():
        p = np.outer([0.5 + delta, 0.5 - delta], [0.7, 0.3]).reshape(-1)
        space = Sequences(2, 2)
        found = regret_ratio(LinearCore(), "structured-centered", p, 2, outputs=space, cost="hamming", family="unary")
        assert found.ratio == pytest.approx(expected, rel=0.02)
        assert found.target_regret == pytest.approx(delta)
        # With any scores allowed the bound holds at the same place.
        assert regret_ratio(LinearCore(), "structured-centered", p, 2, outputs=space, cost="hamming").ratio >= 1


def test_local_centered_without_transitions_bounds_the_hamming_regret() -> None:
    rng, space, tau = np.random.default_rng(2), Sequences(2, 3), 0.5
    for _ in range(2):
        p = rng.dirichlet(np.ones(space.size))
        for prediction in range(space.size):
            try:
                found = regret_ratio(
                    LinearCore(tau=tau), "local-centered", p, prediction, outputs=space, cost="hamming", family="unary"
                )
            except ValueError:  # the best answer has no ratio
                continue
            assert found.ratio >= tau * space.length - 1e-9


def test_the_scores_are_a_witness() -> None:
    p = [0.45, 0.35, 0.2]
    found = regret_ratio(Exponential(), "pairwise", p, prediction=1)
    assert found.scores[1] >= found.scores.max() - 1e-12
    regret = conditional_risk(Exponential(), "pairwise", found.scores, p) - minimal_risk(Exponential(), "pairwise", p).value
    assert regret == pytest.approx(found.surrogate_regret, rel=1e-9)


def test_hinge_pairwise_is_not_even_consistent() -> None:
    # Weston–Watkins: with no class above one half, scores (1/3, 1/3, −2/3) are optimal and tie.
    assert regret_ratio(Hinge(), "pairwise", [0.45, 0.35, 0.2], prediction=1).ratio == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("prediction", "message"),
    (
        (0, "`prediction` must be suboptimal, got 0, whose regret is 0; choose another output"),
        (3, "`prediction` must be in [0, 3), got 3; pass the index of an output"),
        (-1, "`prediction` must be in [0, 3), got -1"),
    ),
)
def test_messages(prediction: int, message: str) -> None:
    with pytest.raises(ValueError) as error:
        regret_ratio(LinearCore(), "pairwise", [0.5, 0.3, 0.2], prediction)
    assert message in str(error.value)
