"""The forms against numbers derived by hand, 50-digit arithmetic, and the table of what holds and what does not.

`docs/reading-the-paper-with-care.md` (a): the paper's linear bound fails for the sum loss with three classes and more. The
regret ratios below vanish with δ for `pairwise` and `logodds`, and stay at or above τ for one-sided `centered`.
"""

import math
from collections.abc import Callable

import mpmath as mp
import pytest
import torch

from linearcore.losses import Centered, Form, LogOdds, Pairwise, multiclass_loss
from linearcore.surrogates import LinearCore, Logistic, Surrogate
from tests.cases import each
from tests.oracles import Bound, minimal_risk, regret_ratio

Real = mp.mpf

FORMS = {"pairwise": Pairwise(normalize=False), "centered": Centered(normalize=False), "logodds": LogOdds()}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
both_backends = pytest.mark.parametrize("backend", ("reference", "eager", "auto"))


def every_label(phi: Surrogate, form: Form, scores: list[float], dtype: torch.dtype, backend: str = "auto"):
    """Losses (C,) and gradients (C, C) of one row of scores for each label in turn."""
    rows = torch.tensor([scores] * len(scores), dtype=dtype, requires_grad=True)
    target = torch.arange(len(scores))
    losses = multiclass_loss(rows, target, surrogate=phi, form=form, reduction="none", backend=backend)
    return losses.detach(), torch.autograd.grad(losses.sum(), rows)[0]


def approximately(*numbers: float, rel: float = 1e-13):
    return pytest.approx(list(numbers), rel=rel, abs=1e-15)


# By hand, with the truncated quadratic at τ = 1:
#     φ(u) = 3/2 − u for u ≤ 1,   ½ (2 − u)² for 1 ≤ u ≤ 2,   0 beyond;   φ'(u) = −1, −(2 − u), 0.


@both_backends
def test_pairwise_by_hand(backend: str) -> None:
    """Scores (2, 0, −1). Margins of label 0: 2 and 3; of label 1: −2 and 1; of label 2: −3 and −1."""
    phi = LinearCore("truncated_quadratic")
    losses, gradient = every_label(phi, FORMS["pairwise"], [2.0, 0.0, -1.0], torch.float64, backend)
    assert losses.tolist() == approximately(0.0, 3.5 + 0.5, 4.5 + 2.5)
    assert gradient.tolist() == [[0, 0, 0], [1, -2, 1], [1, 1, -2]]
    averaged, _ = every_label(phi, Pairwise(), [2.0, 0.0, -1.0], torch.float64, backend)
    assert averaged.tolist() == approximately(0.0, 2.0, 3.5)


@both_backends
def test_centered_by_hand(backend: str) -> None:
    """Scores (2, 0, −1), mean 1/3, so that the margins −(s_v − s̄) are −5/3, 1/3, 4/3.

    φ there: 19/6, 7/6, ½ (2/3)² = 2/9, and −φ': 1, 1, 2/3. A label pays for the other two. The gradient is a − mean(a),
    a the slopes −φ' without the label's own.
    """
    phi = LinearCore("truncated_quadratic")
    losses, gradient = every_label(phi, FORMS["centered"], [2.0, 0.0, -1.0], torch.float64, backend)
    assert losses.tolist() == approximately(7 / 6 + 2 / 9, 19 / 6 + 2 / 9, 19 / 6 + 7 / 6)
    assert gradient[0].tolist() == approximately(-5 / 9, 4 / 9, 1 / 9)
    assert gradient[1].tolist() == approximately(4 / 9, -5 / 9, 1 / 9)
    assert gradient[2].tolist() == approximately(1 / 3, 1 / 3, -2 / 3)


@both_backends
def test_logodds_by_hand(backend: str) -> None:
    """Scores (log 6, 0, log 2): odds 6 : 3, 1 : 8, 2 : 7, all margins in the core, where the slope is −1.

    The gradient pulls on the label with −1 and shares +1 among the others in proportion to e^s.
    """
    scores = [math.log(6), 0.0, math.log(2)]
    losses, gradient = every_label(LinearCore("truncated_quadratic"), LogOdds(), scores, torch.float64, backend)
    assert losses.tolist() == approximately(1.5 - math.log(2), 1.5 + math.log(8), 1.5 + math.log(3.5))
    assert gradient[0].tolist() == approximately(-1, 1 / 3, 2 / 3)
    assert gradient[1].tolist() == approximately(6 / 8, -1, 2 / 8)
    assert gradient[2].tolist() == approximately(6 / 7, 1 / 7, -1)


def logistic_core(u: Real) -> Real:
    """τ = 1, one side: 1 − u + 2 log 2 up to 1, then 2 log(1 + e^{1−u})."""
    return 1 - u + 2 * mp.log(2) if u <= 1 else 2 * mp.log1p(mp.exp(1 - u))


def gamma_core(u: Real) -> Real:
    """τ = ½, β = 2, one side: with z = 1 − 2u, (z + 3)/2 while z ≥ 0, then (z² − 4z + 6) e^z / (2 · 2)."""
    z = 1 - 2 * u
    return (z + 3) / 2 if z >= 0 else (z**2 - 4 * z + 6) * mp.exp(z) / 4


def by_definition(form: Form, phi: Callable[[Real], Real], scores: list[float], label: int) -> Real:
    """The table of forms in `docs/notation.md`, in mpmath."""
    s = [mp.mpf(score) for score in scores]
    others = [s[v] for v in range(len(s)) if v != label]
    if isinstance(form, LogOdds):
        return phi(s[label] - mp.log(mp.fsum(mp.exp(v) for v in others)))
    reference = s[label] if isinstance(form, Pairwise) else mp.fsum(s) / len(s)
    return mp.fsum(phi(reference - v) for v in others)


FIFTY_DIGITS = {
    "logistic_core": (LinearCore(), logistic_core),
    "gamma_core": (LinearCore("gamma", 0.5, 1, 2.0), gamma_core),
    "logistic": (Logistic(), lambda u: mp.log1p(mp.exp(-u))),
}
SCORES = {
    "near": [1.5, -0.25, 0.75, -2.0],
    "tied": [0.5, 0.5, 0.5, 0.5],
    "tail": [31.0, 1.25, -2.5, 0.0],
    "far": [5000.0, -5000.0, 4999.0, 0.25],
}


@every_form
@pytest.mark.parametrize(("phi", "definition"), FIFTY_DIGITS.values(), ids=FIFTY_DIGITS.keys())
@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES.keys())
@pytest.mark.parametrize(("dtype", "rel"), ((torch.float64, 1e-13), (torch.float32, 1e-5)), ids=("float64", "float32"))
@both_backends
def test_fifty_digits(form, phi, definition, scores, dtype, rel, backend) -> None:
    """Relative agreement, in the tail too; below 1e-35 the smaller floats lose digits and then all."""
    losses, _ = every_label(phi, form, scores, dtype, backend)
    with mp.workdps(50):
        expected = [float(by_definition(form, definition, scores, y)) for y in range(4)]
    assert losses.tolist() == pytest.approx(expected, rel=rel, abs=1e-35)


@both_backends
def test_logodds_keeps_its_tail_in_float32(backend: str) -> None:
    """Scores (m, 0, 0): φ = 2 log(1 + e^{1−m+log 2}) ≈ 4 e^{1−m}, while log p − log(1 − p) is infinite at m = 29."""
    for m in (17.0, 29.0, 40.0, 80.0):
        losses, gradient = every_label(LinearCore(), LogOdds(), [m, 0.0, 0.0], torch.float32, backend)
        assert float(losses[0]) == pytest.approx(4 * math.exp(1 - m), rel=2e-5)
        assert gradient[0].tolist() == pytest.approx([-4 * math.exp(1 - m), *[2 * math.exp(1 - m)] * 2], rel=2e-5)
    log_p = torch.tensor([29.0, 0.0, 0.0]).log_softmax(0)[0]
    assert float(log_p - torch.log1p(-log_p.exp())) == math.inf


@both_backends
@pytest.mark.parametrize("big", (1e4, 1e8, 1e30), ids=("1e4", "1e8", "1e30"))
@pytest.mark.parametrize("dtype", (torch.float64, torch.float32), ids=("float64", "float32"))
def test_ties_at_extreme_scores(big: float, dtype: torch.dtype, backend: str) -> None:
    """Three at the top, one at the bottom: of the top three each has margins 0, 0 and +∞, log-odds −log 2."""
    phi, at_zero = LinearCore(), 1 + 2 * math.log(2)
    scores = [big, big, -big, big]
    losses, gradient = every_label(phi, FORMS["pairwise"], scores, dtype, backend)
    assert losses.tolist() == pytest.approx([2 * at_zero, 2 * at_zero, 6 * big + 3 * at_zero, 2 * at_zero], rel=1e-6)
    assert gradient[0].tolist() == [-2, 1, 0, 1]
    losses, gradient = every_label(phi, LogOdds(), scores, dtype, backend)
    bottom = 2 * big + math.log(3) + at_zero
    assert losses.tolist() == pytest.approx([at_zero + math.log(2)] * 2 + [bottom, at_zero + math.log(2)], rel=1e-6)
    assert gradient[0].tolist() == pytest.approx([-1, 0.5, 0, 0.5], rel=1e-6)
    assert gradient[2].tolist() == pytest.approx([1 / 3, 1 / 3, -1, 1 / 3], rel=1e-6)
    # centered: the mean is big/2 (half of it rounds away nothing), margins −big/2 three times and 3·big/2 at the bottom.
    losses, gradient = every_label(phi, FORMS["centered"], scores, dtype, backend)
    top = 2 * (big / 2 + at_zero)
    assert losses.tolist() == pytest.approx([top, top, 1.5 * top, top], rel=1e-6)
    assert gradient[0].tolist() == pytest.approx([-0.5, 0.5, -0.5, 0.5], rel=1e-6)


@both_backends
def test_soft_ties_at_extreme_scores(backend: str) -> None:
    """A probability target far out: (1e8, 1e8, 0) has log-odds 0 for both of the top, and a fair coin between them."""
    for dtype, big in ((torch.float32, 1e8), (torch.float64, 1e30)):
        scores = torch.tensor([[big, big, 0.0]], dtype=dtype, requires_grad=True)
        target = torch.tensor([[0.25, 0.75, 0.0]], dtype=dtype)
        loss = multiclass_loss(scores, target, surrogate=Logistic(), backend=backend)
        assert float(loss.detach()) == pytest.approx(math.log(2), rel=1e-6)
        assert torch.autograd.grad(loss, scores)[0].tolist() == [pytest.approx([0.25, -0.25, 0.0], abs=1e-6)]


# `docs/reading-the-paper-with-care.md` (a). Predicting class 2 at p = (.4 + δ, .4 − δ, .2) has 0-1 regret 2δ.
DELTAS = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
VANISHING = {"pairwise": (1.320, 0.925, 0.419, 0.209, 0.104, 0.042), "logodds": (0.901, 0.461, 0.176, 0.088, 0.044, 0.018)}


@pytest.mark.parametrize(("name", "expected"), VANISHING.items(), ids=VANISHING.keys())
def test_the_linear_bound_fails(name: str, expected: tuple[float, ...]) -> None:
    bound = Bound(FORMS[name], LinearCore())
    ratios = [regret_ratio(bound, [0.4 + delta, 0.4 - delta, 0.2], 1) for delta in DELTAS]
    assert ratios == pytest.approx(expected, abs=1.5e-3)
    assert ratios[-1] / ratios[-2] == pytest.approx(0.4, abs=0.01)  # falls like δ, which is a square-root rate


@pytest.mark.parametrize("phi", (LinearCore("exponential"), LinearCore(sides=2)), ids=("exponential", "two_sided"))
def test_the_linear_bound_fails_for_other_tails_too(phi: LinearCore) -> None:
    bound = Bound(FORMS["pairwise"], phi)
    ratios = [regret_ratio(bound, [0.4 + delta, 0.4 - delta, 0.2], 1) for delta in DELTAS[-3:]]
    assert [ratio / delta for ratio, delta in zip(ratios, DELTAS[-3:], strict=True)] == pytest.approx(
        [ratios[-1] / DELTAS[-1]] * 3, rel=0.1
    )


def test_centered_loses_the_rate_with_two_sides() -> None:
    """Through the internal form, since the loss refuses the pair; p = (.3 + δ, .3 − δ, .2, .2)."""
    bound = Bound(Centered(normalize=False), LinearCore(sides=2))
    ratios = [regret_ratio(bound, [0.3 + delta, 0.3 - delta, 0.2, 0.2], 1) for delta in DELTAS[1:]]
    assert ratios == pytest.approx((0.084, 0.033, 0.016, 0.008, 0.003), abs=1.5e-3)


@each(
    ("base", "tau"),
    {
        f"{base}-{tau}": (base, tau)
        for base in ("logistic", "exponential", "truncated_quadratic", "gamma")
        for tau in (0.5, 1.0, 2.0)
    },
    ("logistic-1.0", "exponential-0.5", "truncated_quadratic-2.0", "gamma-0.5"),
)
def test_centered_keeps_the_linear_bound(base: str, tau: float) -> None:
    """Surrogate regret ≥ τ · 0-1 regret for every prediction; close ties are where the other forms lose it."""
    bound = Bound(Centered(normalize=False), LinearCore(base, tau))
    generator = torch.Generator().manual_seed(int(10 * tau))
    for n in (2, 3, 4, 5):
        p = torch.rand(n, dtype=torch.float64, generator=generator) + 0.05
        p[1] = p[0] * (1 - 10 ** -float(2 * torch.rand((), generator=generator) + 1))
        p = (p / p.sum()).tolist()
        least = minimal_risk(bound, p)
        for k in range(n):
            assert minimal_risk(bound, p, k) - least >= (tau - 1e-6) * (max(p) - p[k]) - 1e-10


@pytest.mark.parametrize("tau", (0.5, 1.0, 2.0))
def test_the_centered_bound_is_tight_at_two_classes(tau: float) -> None:
    """centered is φ(u/2) there, whose transform is the binary one, τt + 2t² + … for the logistic base."""
    bound = Bound(Centered(normalize=False), LinearCore(tau=tau))
    assert regret_ratio(bound, [0.5005, 0.4995], 1) == pytest.approx(tau + 2e-3, abs=1e-4)


def test_the_mean_weakens_the_bound_by_the_number_of_competitors() -> None:
    p = [0.35, 0.3, 0.2, 0.15]
    whole, averaged = (Bound(Centered(normalize=flag), LinearCore()) for flag in (False, True))
    assert regret_ratio(averaged, p, 1) == pytest.approx(regret_ratio(whole, p, 1) / 3, rel=1e-6)
