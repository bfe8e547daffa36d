"""What docs/proofs.md proves of `robust_loss`, on finite problems: p over n classes, scores without restriction.

Two classes are tested as three of which one is not there, since the loss refuses two.
"""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from linearcore import Hinge, LinearCore, Logistic, RobustLinearCoreLoss, SmoothedHinge, Surrogate
from linearcore.losses import robust_loss
from linearcore.losses._robust import is_symmetric
from tests.cases import cross

every_n = pytest.mark.parametrize("n", (2, 3, 4, 5, 6))
SETTINGS = ((LinearCore(tau=2.0), 1.0, 1.0), (LinearCore("gamma", 4.0, sides=2), 2.5, 0.3))
every_setting = pytest.mark.parametrize(("phi", "radius", "scale"), SETTINGS, ids=("preset", "two_sided"))


def losses(scores: Tensor, phi: Surrogate, radius: float, scale: float) -> Tensor:
    """(N, n): ℓ(s, y) for every label y of scores (N, n)."""
    rows, n = scores.shape
    if n == 2:
        scores = torch.cat([scores, torch.full_like(scores[:, :1], -math.inf)], 1)
    columns = [
        robust_loss(scores, torch.full((rows,), y), surrogate=phi, radius=radius, scale=scale, reduction="none")
        for y in range(n)
    ]
    return torch.stack(columns, 1)


def distributions(n: int, count: int = 8) -> Tensor:
    """(count, n): random ones, flat to nearly sure, the likeliest class unique; the second best never far behind in some."""
    generator = torch.Generator().manual_seed(n)
    sharpness = torch.linspace(0.2, 4.0, count, dtype=torch.float64)[:, None]
    return (sharpness * torch.randn(count, n, dtype=torch.float64, generator=generator)).softmax(1)


def many_scores(n: int) -> Tensor:
    """(5000, n): every direction, from norms inside ε to large ones."""
    generator = torch.Generator().manual_seed(10 + n)
    sizes = torch.logspace(-5, 3, 5000, dtype=torch.float64)[torch.randperm(5000, generator=generator)]
    return sizes[:, None] * torch.randn(5000, n, dtype=torch.float64, generator=generator)


def least_risk(p: Tensor, q_norm: Tensor, phi: Surrogate, radius: float, scale: float) -> Tensor:
    n = p.shape[-1]
    return scale * (float(phi.value(0.0)) - radius * n / (n - 1) * q_norm)


@every_n
@every_setting
def test_symmetric_bounded_and_linear_in_the_normalised_scores(n: int, phi: Surrogate, radius: float, scale: float) -> None:
    scores = many_scores(n)
    every = losses(scores, phi, radius, scale)
    zero = float(phi.value(0.0))
    torch.testing.assert_close(every.sum(1), torch.full((5000,), n * scale * zero, dtype=torch.float64))
    reach = scale * radius * math.sqrt(n / (n - 1))
    assert (every >= scale * zero - reach - 1e-12).all() and (every <= scale * zero + reach + 1e-12).all()
    centred = scores - scores.mean(1, keepdim=True)
    put = radius * centred / centred.norm(dim=1, keepdim=True).clamp(min=1e-3)
    torch.testing.assert_close(every, scale * (zero - n / (n - 1) * put), rtol=1e-11, atol=1e-11)


@cross(n=(2, 3, 4, 5, 6), setting={"preset": SETTINGS[0], "two_sided": SETTINGS[1]})
def test_the_least_risk_and_where_it_is(n: int, setting: tuple[Surrogate, float, float]) -> None:
    """Closed form against a minimiser that knows nothing of it, from several starts, on the raw scores."""
    phi, radius, scale = setting
    for p in distributions(n, 4):
        q = p - 1 / n
        least = least_risk(p, q.norm(), phi, radius, scale)
        at_q = (p * losses(q[None], phi, radius, scale)).sum()
        torch.testing.assert_close(at_q, least, rtol=1e-12, atol=1e-12)
        assert (p @ losses(many_scores(n), phi, radius, scale).T >= least - 1e-12).all()
        found = [_minimised(p, start, phi, radius, scale) for start in many_scores(n)[:4]]
        best_value, best = min(found, key=lambda pair: pair[0])
        assert best_value == pytest.approx(float(least), abs=1e-9)
        direction = best - best.mean()
        torch.testing.assert_close(direction / direction.norm(), q / q.norm(), rtol=0, atol=1e-4)
        assert best.argmax() == p.argmax()


def _minimised(p: Tensor, start: Tensor, phi: Surrogate, radius: float, scale: float) -> tuple[float, Tensor]:
    def risk(x: np.ndarray) -> tuple[float, np.ndarray]:
        leaf = torch.from_numpy(x).clone().requires_grad_()
        value = (p * losses(leaf[None], phi, radius, scale)).sum()
        return float(value.detach()), torch.autograd.grad(value, leaf)[0].numpy()

    # From inside the ball of ε, where even the loss of two classes has a slope.
    begin = 1e-4 * (start / start.norm()).numpy()
    found = minimize(risk, begin, jac=True, method="L-BFGS-B", options={"ftol": 0.0, "gtol": 1e-12, "maxiter": 500})
    return float(found.fun), torch.from_numpy(found.x)


def bound(p: Tensor, k: int, radius: float, scale: float) -> Tensor:
    """The least surrogate regret of the answer k."""
    n, q = len(p), p - 1 / len(p)
    delta = p.max() - p[k]
    left = (q.square().sum() - delta**2 / 2).clamp(min=0).sqrt()
    return scale * radius * n / (n - 1) * (q.norm() - left)


@every_n
@every_setting
def test_regret_is_never_below_the_bound(n: int, phi: Surrogate, radius: float, scale: float) -> None:
    scores = many_scores(n)
    every, answer = losses(scores, phi, radius, scale), scores.argmax(1)
    for p in distributions(n):
        q_norm = (p - 1 / n).norm()
        regret = every @ p - least_risk(p, q_norm, phi, radius, scale)
        for k in range(n):
            mine, delta = regret[answer == k], p.max() - p[k]
            assert len(mine) and (mine >= bound(p, k, radius, scale) - 1e-11).all()
            assert bound(p, k, radius, scale) >= scale * radius * n / (n - 1) * delta**2 / (4 * q_norm) - 1e-15
            rate = (4 * q_norm * (n - 1) / (n * scale * radius) * mine.clamp(min=0)).sqrt()
            assert (delta <= rate + 1e-7).all()
            for_all_p = (4 * (1 - 1 / n) ** 1.5 / (scale * radius) * mine.clamp(min=0)).sqrt()
            assert (delta <= for_all_p + 1e-7).all()


@pytest.mark.parametrize("n", (3, 4, 5, 6))
@every_setting
def test_the_bound_is_reached_by_the_second_best_class(n: int, phi: Surrogate, radius: float, scale: float) -> None:
    """At q with its entries for the best class and for k averaged, nudged towards k so that k is the answer."""
    for p in distributions(n):
        best, k = p.topk(2).indices.tolist()
        q = p - 1 / n
        u = q.clone()
        u[[best, k]] = (q[best] + q[k]) / 2
        u[k] += 1e-9
        assert u.argmax() == k
        risk = (p * losses(u[None], phi, radius, scale)).sum()
        regret = risk - least_risk(p, q.norm(), phi, radius, scale)
        torch.testing.assert_close(regret, bound(p, k, radius, scale), rtol=1e-5, atol=1e-7)


def test_the_degenerate_case() -> None:
    """q along 1_1 − 1_k averages to nothing: the bound is all of ‖q‖, reached on any u with u_1 = u_k, never beaten."""
    p = torch.tensor([0.5, 1 / 6, 1 / 3], dtype=torch.float64)
    q = p - 1 / 3
    assert (q.square().sum() - (p[0] - p[1]) ** 2 / 2).abs() < 1e-15
    least = least_risk(p, q.norm(), LinearCore(tau=2.0), 1.0, 1.0)
    u = torch.tensor([[1.0, 1.0 + 1e-9, -2.0]], dtype=torch.float64)
    regret = (losses(u, LinearCore(tau=2.0), 1.0, 1.0) @ p - least).squeeze()
    torch.testing.assert_close(regret, bound(p, 1, 1.0, 1.0), rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(regret, 1.5 * q.norm(), rtol=1e-6, atol=1e-8)


def test_the_rate_is_a_square_root_and_no_better() -> None:
    """With three classes, the second best a little behind: regret / δ² tends to scale · r · n/(n − 1) / (4 ‖q‖)."""
    for gap in (1e-1, 1e-2, 1e-3):
        p = torch.tensor([0.4 + gap / 2, 0.4 - gap / 2, 0.2], dtype=torch.float64)
        ratio = float(bound(p, 1, 1.0, 1.0)) / gap**2
        assert ratio == pytest.approx(1.5 / (4 * float((p - 1 / 3).norm())), rel=gap)


def test_no_information_means_no_regret() -> None:
    p = torch.full((4,), 0.25, dtype=torch.float64)
    risks = losses(many_scores(4), LinearCore(tau=2.0), 1.0, 1.0) @ p
    torch.testing.assert_close(risks, risks[:1].expand(5000))


@every_n
@every_setting
def test_uniform_noise_shrinks_every_regret_alike(n: int, phi: Surrogate, radius: float, scale: float) -> None:
    """R̃(s) = (1 − ηn/(n−1)) R(s) + const for all scores; beyond η = 1 − 1/n the order turns round."""
    every = losses(many_scores(n), phi, radius, scale)
    constant = n * scale * float(phi.value(0.0))
    for p in distributions(n, 3):
        clean = every @ p
        for rate in (0.1, 0.4, 0.95 * (1 - 1 / n), min(1.0, 1.2 * (1 - 1 / n))):
            flip = torch.full((n, n), rate / (n - 1), dtype=torch.float64).fill_diagonal_(1 - rate)
            factor = 1 - rate * n / (n - 1)
            torch.testing.assert_close(p @ flip - 1 / n, factor * (p - 1 / n))
            torch.testing.assert_close(every @ (p @ flip), factor * clean + rate / (n - 1) * constant)
            assert (factor > 0) == (rate < 1 - 1 / n)


def test_with_a_shorter_core_it_is_not_symmetric_and_the_module_says_so() -> None:
    edge = math.sqrt(2)
    cases = {
        (LinearCore(tau=2.0), 1.0): True,
        (LinearCore(tau=edge), 1.0): True,
        (LinearCore(tau=edge - 1e-6), 1.0): False,
        (LinearCore(tau=2.0), 1.5): False,
        (LinearCore(tau=2.0, sides=2), 1.4): True,
        (LinearCore(tau=2.0, sides=2), 1.5): False,
        (Hinge(), 0.7): True,
        (Hinge(), 1.0): False,
        (SmoothedHinge(1.5), 0.1): False,
        (Logistic(), 0.1): False,
    }
    for (phi, radius), expected in cases.items():
        assert RobustLinearCoreLoss(surrogate=phi, radius=radius).is_symmetric == expected, (phi, radius)
        # The widest margin there is, of two classes at opposite ends, shows a tail that begins before it.
        scores = torch.cat([many_scores(3), torch.tensor([[1.0, -1.0, 0.0]], dtype=torch.float64)])
        sums = losses(scores, phi, radius, 1.0).sum(1)
        if phi != LinearCore(tau=edge - 1e-6):  # Too near for rounding to tell.
            assert bool((sums - sums[0]).abs().max() <= 1e-9) == expected, (phi, radius)


def test_a_core_that_is_short_on_one_side_is_too_short() -> None:
    assert is_symmetric(SimpleNamespace(core=(-1.5, 1.5)), 1.0)
    assert not is_symmetric(SimpleNamespace(core=(-0.1, 5.0)), 1.0)
    assert not is_symmetric(SimpleNamespace(core=(-5.0, 0.1)), 1.0)


def test_with_a_tail_a_well_answered_sample_pushes_less() -> None:
    scores = torch.tensor([[3.0, 0.2, -0.1]], dtype=torch.float64)
    sizes = []
    for tau in (2.0, 0.5):
        leaf = scores.clone().requires_grad_()
        loss = robust_loss(leaf, torch.tensor([0]), surrogate=LinearCore(tau=tau))
        sizes.append(float(torch.autograd.grad(loss, leaf)[0].norm()))
    assert 0 < sizes[1] < 0.9 * sizes[0]
