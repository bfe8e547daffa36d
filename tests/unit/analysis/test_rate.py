"""Rates: 1 in the limit for a linear core, ½ without one; `docs/reading-the-paper-with-care.md` (a), (l)."""

import numpy as np
import pytest

from linearcore import Hinge, LinearCore, Logistic, SquaredHinge
from linearcore.analysis import rate, transform


@pytest.mark.parametrize("sides", (1, 2))
@pytest.mark.parametrize("tau", (0.1, 0.5, 1.0, 2.0, 5.0))
def test_a_linear_core_has_slope_one_in_the_limit(tau: float, sides: int) -> None:
    found = rate(LinearCore(tau=tau, sides=sides))
    assert found.slopes[0] == pytest.approx(1, abs=0.01)
    assert found.interval[0] <= 1 <= found.interval[1]


@pytest.mark.parametrize("base", ("gamma", "quartic"))
def test_twice_differentiable_bases_come_to_it_slowly(base: str) -> None:
    """Like δ^⅓: still 2 % away at δ = 1e-4, and the extrapolation knows."""
    found = rate(LinearCore(base))
    assert found.slopes[0] < 0.99
    assert found.limit == pytest.approx(1, abs=0.01)
    assert found.interval[0] <= 1 <= found.interval[1]


BAD = {
    "deltas": ({"deltas": [1e-2, 1e-3]}, "`deltas` must be positive and ascending"),
    "prediction": ({"path": lambda d: [0.5 + d, 0.5 - d], "prediction": 7}, "`prediction` must be in"),
    "optimal": ({"path": lambda d: [0.5 + d, 0.5 - d], "prediction": 0}, "`prediction` must be suboptimal"),
    "form": ({"path": lambda d: [0.5 + d, 0.5 - d], "form": "sum"}, "`form` must be one of"),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD.keys())
def test_messages(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rate(LinearCore(), **options)


@pytest.mark.parametrize("surrogate", (Logistic(), SquaredHinge()), ids=repr)
def test_a_curved_surrogate_has_slope_one_half(surrogate: Logistic) -> None:
    found = rate(surrogate)
    assert found.slopes[0] == pytest.approx(0.5, abs=0.01)
    assert found.limit == pytest.approx(0.5, abs=1e-3)


def test_the_hinge_is_linear_everywhere() -> None:
    found = rate(Hinge())
    np.testing.assert_allclose(found.slopes, 1, atol=1e-9)
    np.testing.assert_allclose(found.surrogate, found.target)
    assert found.fit == pytest.approx(1)


def test_local_slopes_are_those_of_differences() -> None:
    surrogate, deltas = LinearCore("gamma", tau=0.3), np.array([1e-3, 1e-2, 1e-1])
    step = 1e-4
    rise = np.log(transform(surrogate, 2 * deltas * (1 + step)) / transform(surrogate, 2 * deltas * (1 - step)))
    np.testing.assert_allclose(rate(surrogate, deltas=deltas).slopes, np.log((1 + step) / (1 - step)) / rise, rtol=1e-6)


def test_a_path_through_three_classes() -> None:
    """The sum loss falls at the square-root rate along the path of (a), the centered one linearly."""

    def path(delta: float) -> list[float]:
        return [0.4 + delta, 0.4 - delta, 0.2]

    deltas = [1e-4, 3e-4, 1e-3, 1e-2]
    assert rate(LinearCore(), "pairwise", path, deltas=deltas).limit == pytest.approx(0.5, abs=1e-3)
    assert rate(LinearCore(), "centered", path, deltas=deltas).limit == pytest.approx(1.0, abs=1e-3)


def test_a_coin_as_a_path_gives_the_transform() -> None:
    deltas = [1e-3, 1e-2, 0.1]
    coin, path = (
        rate(LinearCore(), deltas=deltas),
        rate(LinearCore(), "logodds", lambda d: [0.5 + d, 0.5 - d], deltas=deltas),
    )
    np.testing.assert_allclose(path.surrogate, coin.surrogate, rtol=1e-8)
    np.testing.assert_allclose(path.slopes, coin.slopes, atol=1e-4)
