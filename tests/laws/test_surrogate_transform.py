"""What a surrogate says about probabilities and regret, for a binary label.

With P(label = +1) = η the expected loss of margin u is η φ(u) + (1 − η) φ(−u). `posterior` inverts its minimiser. With
t = 2η − 1 the transform is T(t) = φ(0) − min_u of it, and for linear-core surrogates **T(t) ≥ τ t**, tight as t → 0,
not t/τ: `docs/reading-the-paper-with-care.md` (f). How fast the line is left behind is in (l) and (k); that the smoothed
hinge keeps a linear bound is (j).
"""

import pytest
import torch
from torch import Tensor

from linearcore.surrogates import BASES, ConvolutionalFenchelYoung, Hinge, LinearCore, Logistic, SmoothedHinge, Surrogate
from tests.cases import ALGEBRAIC, SHORT, SURROGATES, each, every_linear_core, every_surrogate

both_sides = pytest.mark.parametrize("sides", (1, 2))

BENT = {name: base for name, base in (BASES | {"algebraic": ALGEBRAIC}).items() if not base.left.is_flat_at_zero}
SMOOTH = {name: phi for name, phi in SURROGATES.items() if phi.is_c1}
every_smooth = each("phi", SMOOTH, (name for name in SHORT if name in SMOOTH))


def minimiser(phi: Surrogate, t: Tensor) -> Tensor:
    """The least u ≥ 0 that minimises the expected loss at η = (1 + t)/2, by bisection on its slope, to one ulp."""
    low, high = torch.zeros_like(t), torch.full_like(t, 2000.0)
    for _ in range(120):
        middle = (low + high) / 2
        falling = (1 + t) * phi.derivative(middle) < (1 - t) * phi.derivative(-middle)
        new_low, new_high = torch.where(falling, middle, low), torch.where(falling, high, middle)
        if torch.equal(new_low, low) and torch.equal(new_high, high):
            break
        low, high = new_low, new_high
    return high


def transform(phi: Surrogate, t: Tensor) -> Tensor:
    u = minimiser(phi, t)
    return float(phi.value(0.0)) - ((1 + t) * phi.value(u) + (1 - t) * phi.value(-u)) / 2


def tensor(*numbers: float) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


@every_surrogate
def test_posterior_is_a_probability_and_symmetric(phi: Surrogate) -> None:
    u = torch.cat(
        [torch.linspace(-40, 40, 641, dtype=torch.float64), tensor(*phi.knots, 1e30, -1e30, torch.inf, -torch.inf)]
    )
    posterior = phi.posterior(u)
    assert ((posterior >= 0) & (posterior <= 1)).all()
    torch.testing.assert_close(posterior + phi.posterior(-u), torch.ones_like(u), rtol=0, atol=1e-15)
    assert (posterior[u.argsort()].diff() >= -1e-15).all()


@every_surrogate
def test_posterior_is_certain_at_infinity_and_fair_at_zero(phi: Surrogate) -> None:
    assert phi.posterior(tensor(-torch.inf, 0.0, torch.inf)).tolist() == [0.0, 0.5, 1.0]


@every_surrogate
def test_posterior_is_one_half_in_the_core(phi: Surrogate) -> None:
    if phi.core is not None:
        u = torch.linspace(-phi.core[1], phi.core[1], 101, dtype=torch.float64)[1:-1]
        assert (phi.posterior(u) == 0.5).all()


@every_smooth
def test_posterior_inverts_the_minimiser(phi: Surrogate) -> None:
    t = tensor(1e-3, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)
    u = minimiser(phi, t)
    torch.testing.assert_close(phi.posterior(u), (1 + t) / 2, rtol=0, atol=1e-12)
    torch.testing.assert_close(phi.posterior(-u), (1 - t) / 2, rtol=0, atol=1e-12)


@every_smooth
def test_minimiser_is_one(phi: Surrogate) -> None:
    """The bisection that the other tests lean on: no margin on a grid does better."""
    t = tensor(0.05, 0.5, 0.95)
    least = float(phi.value(0.0)) - transform(phi, t)
    u = torch.linspace(-30, 30, 6001, dtype=torch.float64)[:, None]
    risk = ((1 + t) * phi.value(u) + (1 - t) * phi.value(-u)) / 2
    assert (risk >= least - 1e-13).all()
    assert (risk.amin(0) <= least + 1e-2).all()


def test_logistic_posterior_is_the_sigmoid() -> None:
    u = torch.linspace(-30, 30, 121, dtype=torch.float64)
    torch.testing.assert_close(Logistic().posterior(u), u.sigmoid(), rtol=1e-13, atol=0)


@every_linear_core
def test_transform_lies_above_the_line(phi: LinearCore) -> None:
    t = torch.cat([torch.logspace(-8, -1, 29, dtype=torch.float64), torch.linspace(0.1, 0.999, 50, dtype=torch.float64)])
    assert (transform(phi, t) >= phi.tau * t - 1e-14).all()


@every_linear_core
def test_the_line_is_tight_at_zero(phi: LinearCore) -> None:
    """T'(t) = (φ(−u) − φ(u))/2 at the minimiser u: it falls to τ, linearly in t when Φ''(0) > 0, else like t^{1/3}."""
    t = tensor(1e-2, 1e-4, 1e-6, 1e-8)
    u = minimiser(phi, t)
    excess = (phi.value(-u) - phi.value(u)) / 2 - phi.tau
    assert (excess >= -1e-14).all()
    assert (excess.diff() <= 0).all()
    rate = float((excess[0] / excess[2]).log10()) / 4
    assert rate == pytest.approx(1 / 3 if phi.is_c2 else 1, abs=0.03)
    assert (transform(phi, t)[2] / t[2]) <= phi.tau + excess[2] + 1e-9


@both_sides
def test_dividing_by_the_threshold_is_false(sides: int) -> None:
    """(f): at τ = ½ the printed bound T(t) ≥ t/τ would be 2t, and T is below it."""
    t = tensor(1e-3, 1e-2, 0.1)
    assert (transform(LinearCore("logistic", 0.5, sides), t) < t / 0.5 - 1e-4).all()


@pytest.mark.parametrize("tau", (0.1, 1.0, 5.0))
@pytest.mark.parametrize(("sides", "kappa"), ((1, 2.0), (2, 1.0)))
def test_leading_correction_of_the_logistic(tau: float, sides: int, kappa: float) -> None:
    """(l): T(t) = τt + κt² + …, a = Φ''(0)/Φ'(0) = ½, κ = 1/a one-sided and 1/(2a) two-sided."""
    t = tensor(1e-3, 1e-4)
    correction = (transform(LinearCore("logistic", tau, sides), t) - tau * t) / t**2
    assert correction.tolist() == pytest.approx([kappa, kappa], rel=3e-3)
    assert float(correction[1]) == pytest.approx(kappa, rel=3e-4)


@pytest.mark.parametrize("base", BENT.values(), ids=BENT.keys())
@pytest.mark.parametrize("sharpness", (0.5, 3.0))
@both_sides
def test_leading_correction_from_the_base(base, sharpness: float, sides: int) -> None:
    """(l) for every base with Φ''(0) > 0; sharpness β multiplies a."""
    phi = LinearCore(base, 0.7, sides, sharpness)
    z = torch.zeros(1, dtype=torch.float64)
    a = sharpness * float(phi.base.curvature(z) / phi.base.derivative(z))
    t = tensor(1e-4)
    assert float((transform(phi, t) - 0.7 * t) / t**2) == pytest.approx(1 / (sides * a), rel=2e-3)


@pytest.mark.parametrize("base", BASES)
def test_vanishing_core(base: str) -> None:
    """(k): without a core T ~ t², so regret falls with slope ½; the C2 bases have T ~ t^{4/3}, slope ¾."""
    t = tensor(1e-3, 1e-2)
    power = float(transform(LinearCore(base, 1e-9), t).log().diff() / t.log().diff())
    assert 1 / power == pytest.approx(0.75 if LinearCore(base).is_c2 else 0.5, abs=0.02)


@pytest.mark.parametrize("width", (0.1, 0.5, 0.9))
def test_smoothed_hinge_keeps_a_linear_bound(width: float) -> None:
    """(j): T(t) ≥ (1 − γ) t for width γ < 1."""
    t = torch.logspace(-6, -0.001, 40, dtype=torch.float64)
    assert (transform(SmoothedHinge(width), t) >= (1 - width) * t - 1e-14).all()


def test_transforms_known_in_closed_form() -> None:
    """Hinge: T(t) = t. Half the two-sided logistic: half its T, so ≥ t/2. Logistic: log 2 − H(η), about t²/2."""
    t = torch.linspace(0.01, 0.99, 50, dtype=torch.float64)
    torch.testing.assert_close(transform(Hinge(), t), t, rtol=1e-12, atol=1e-14)
    half = transform(LinearCore(sides=2), t) / 2
    torch.testing.assert_close(transform(ConvolutionalFenchelYoung(), t), half, rtol=1e-12, atol=1e-14)
    eta = (1 + t) / 2
    entropy = torch.log(torch.tensor(2.0, dtype=torch.float64)) + eta * eta.log() + (1 - eta) * (1 - eta).log()
    torch.testing.assert_close(transform(Logistic(), t), entropy, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("tau", (0.3, 1.0, 2.5))
def test_transforms_of_linear_cores_in_closed_form(tau: float) -> None:
    """One-sided, the slope condition (1 + t) Φ'(z)/Φ'(0) = 1 − t gives z, and with u = τ − z

    truncated quadratic, 1 + z = (1 − t)/(1 + t):  T(t) = τt + t²/(1 + t)
    exponential, e^z = (1 − t)/(1 + t):            T(t) = τt + t + (1 − t)/2 · log((1 − t)/(1 + t))
    """
    t = torch.linspace(0.01, 0.99, 50, dtype=torch.float64)
    quadratic = tau * t + t**2 / (1 + t)
    exponential = tau * t + t + (1 - t) / 2 * ((1 - t) / (1 + t)).log()
    torch.testing.assert_close(transform(LinearCore("truncated_quadratic", tau), t), quadratic, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(transform(LinearCore("exponential", tau), t), exponential, rtol=1e-12, atol=1e-14)
