"""The convolutional Fenchel–Young loss: its definition, its binary case, its gradient, its linear bound."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.optimize import minimize

from linearcore import ConvolutionalFenchelYoung, LinearCore
from linearcore.analysis import NotSolvedError, _fenchel_young
from linearcore.analysis._fenchel_young import fenchel_young_loss, fenchel_young_point
from linearcore.analysis._fenchel_young_regret import fenchel_young_regret_ratio

SIZES = (2, 3, 7, 33, 200)
every_size = pytest.mark.parametrize("size", SIZES)


def drawn(*shape: int, scale: float = 1.0, seed: int = 0) -> torch.Tensor:
    return scale * torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_two_classes_are_the_closed_form() -> None:
    u = torch.cat([torch.linspace(-60, 60, 481, dtype=torch.float64), torch.tensor([-1.0, 1.0]).double()])
    scores = torch.stack([u, torch.zeros_like(u)], -1) + 5
    losses = fenchel_young_loss(scores, torch.zeros(len(u), dtype=torch.long), reduction="none")
    torch.testing.assert_close(losses, ConvolutionalFenchelYoung().value(u), rtol=0, atol=1e-13)
    torch.testing.assert_close(losses, LinearCore(sides=2).value(u) / 2, rtol=0, atol=1e-13)


@pytest.mark.parametrize("scale", (0.1, 1.0, 5.0))
def test_the_conjugate_is_the_maximum_over_the_simplex(scale: float) -> None:
    # Ω_R*(θ) = max_q ⟨θ, q⟩ + entropy(q) + 1 − max q, by SciPy on the definition, with max q as a variable m ≥ q_v.
    for row in drawn(3, 5, scale=scale).numpy():

        def negated(x: np.ndarray, row: np.ndarray = row) -> tuple[float, np.ndarray]:
            q = np.maximum(x[:-1], 1e-300)
            return -float(row @ q - q @ np.log(q) + 1 - x[-1]), np.append(-(row - np.log(q) - 1), 1.0)

        constraints = (
            {"type": "eq", "fun": lambda x: x[:-1].sum() - 1},
            {"type": "ineq", "fun": lambda x: x[-1] - x[:-1]},
        )
        run = minimize(
            negated, np.append(np.full(5, 0.2), 0.2), jac=True, method="SLSQP", constraints=constraints,
            bounds=[(1e-12, 1)] * 6, options={"ftol": 1e-15, "maxiter": 1000},
        )  # fmt: skip
        assert float(fenchel_young_point(torch.tensor(row).unsqueeze(0)).conjugate) == pytest.approx(-run.fun, abs=1e-8)


@every_size
@pytest.mark.parametrize("scale", (0.01, 1.0, 30.0))
def test_the_point_is_feasible_and_has_no_duality_gap(size: int, scale: float) -> None:
    scores = drawn(6, size, scale=scale)
    conjugate, mixture, probability, gap = fenchel_young_point(scores)
    assert (mixture >= 0).all() and ((mixture.sum(-1) - 1).abs() <= 1e-9).all()
    torch.testing.assert_close(probability.sum(-1), torch.ones(6).double())
    primal = 1 + (scores - mixture / mixture.sum(-1, keepdim=True)).logsumexp(-1)
    dual = (scores * probability).sum(-1) + torch.special.entr(probability).sum(-1) + 1 - probability.amax(-1)
    torch.testing.assert_close(primal, dual, rtol=0, atol=1e-9)
    torch.testing.assert_close(conjugate, dual, rtol=0, atol=1e-9)
    assert (gap <= 1e-9).all()
    assert torch.equal(mixture.argmax(-1), scores.argmax(-1))


@every_size
def test_it_is_cross_entropy_of_capped_scores(size: int) -> None:
    scores, target = drawn(4, size, scale=2.0), torch.arange(4) % size
    mixture = fenchel_young_point(scores).mixture
    expected = F.cross_entropy(scores - mixture, target, reduction="none") + 1 - mixture[range(4), target]
    torch.testing.assert_close(fenchel_young_loss(scores, target, reduction="none"), expected, rtol=0, atol=1e-12)
    assert (expected > 0).all()


@every_size
def test_its_regret_is_a_divergence_plus_the_regret_of_the_mixture(size: int) -> None:
    # `docs/reading-the-paper-with-care.md` (t). The least risk is entropy(p) + 1 − max p.
    scores, p = drawn(20, size, scale=2.0), drawn(20, size, seed=3).softmax(-1)
    _, mixture, probability, _ = fenchel_young_point(scores)
    divergence = (p * (p.log() - probability.log())).sum(-1)
    expected = divergence + (mixture * (p.amax(-1, keepdim=True) - p)).sum(-1)
    least = torch.special.entr(p).sum(-1) + 1 - p.amax(-1)
    torch.testing.assert_close(fenchel_young_loss(scores, p, reduction="none") - least, expected, rtol=0, atol=1e-12)
    prediction = scores.argmax(-1, keepdim=True)
    assert (size * expected >= p.amax(-1) - p.gather(-1, prediction).squeeze(-1)).all()


@every_size
def test_gradient(size: int) -> None:
    scores, target = drawn(3, size).requires_grad_(), torch.arange(3) % size
    assert torch.autograd.gradcheck(lambda s: fenchel_young_loss(s, target), scores, atol=1e-6)
    (gradient,) = torch.autograd.grad(fenchel_young_loss(scores, target, reduction="sum"), scores)
    expected = fenchel_young_point(scores.detach()).probability - F.one_hot(target, size)
    torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", (2, 3, 7, 40))
def test_second_derivatives_see_the_mixture_move(size: int) -> None:
    scores, target = drawn(3, size, scale=0.7).requires_grad_(), torch.arange(3) % size
    assert torch.autograd.gradgradcheck(lambda s: fenchel_young_loss(s, target), scores, atol=1e-6)


def test_it_is_convex_along_lines() -> None:
    one, other, target = drawn(50, 6, scale=3.0), drawn(50, 6, scale=3.0, seed=1), torch.arange(50) % 6
    ends = [fenchel_young_loss(scores, target, reduction="none") for scores in (one, other)]
    middle = fenchel_young_loss((one + other) / 2, target, reduction="none")
    assert (middle <= (ends[0] + ends[1]) / 2 + 1e-12).all()


def test_probability_targets_are_expectations() -> None:
    scores, p = drawn(3, 4), drawn(3, 4, seed=2).softmax(-1)
    each = torch.stack([fenchel_young_loss(scores, torch.full((3,), y), reduction="none") for y in range(4)], -1)
    torch.testing.assert_close(fenchel_young_loss(scores, p, reduction="none"), (p * each).sum(-1))


@pytest.mark.parametrize(
    ("dtype", "tolerance"), ((torch.float32, 2e-6), (torch.bfloat16, 0.02)), ids=("float32", "bfloat16")
)
def test_lower_precisions(dtype: torch.dtype, tolerance: float) -> None:
    scores, target = drawn(16, 50, scale=3.0).to(dtype), torch.arange(16)
    losses = fenchel_young_loss(scores, target, reduction="none")
    assert losses.dtype == dtype
    exact = fenchel_young_loss(scores.double(), target, reduction="none")
    torch.testing.assert_close(losses.double(), exact, rtol=tolerance, atol=tolerance)


def test_shapes_reductions_and_ignored_targets() -> None:
    scores, target = drawn(4, 3, 5), torch.arange(20).reshape(4, 5) % 3
    none = fenchel_young_loss(scores, target, reduction="none")
    assert none.shape == (4, 5)
    torch.testing.assert_close(fenchel_young_loss(scores, target), none.mean())
    torch.testing.assert_close(fenchel_young_loss(scores, target, reduction="sum"), none.sum())
    torch.testing.assert_close(fenchel_young_loss(scores[0, :, 0], target[0, 0]), none[0, 0])
    ignored = target.clone()
    ignored[0] = -100
    torch.testing.assert_close(fenchel_young_loss(scores, ignored), none[1:].mean())


def test_far_scores_and_absent_classes() -> None:
    scores = torch.tensor([[1e4, 0.0, -1e4], [0.0, -math.inf, 0.5]], dtype=torch.float64)
    losses = fenchel_young_loss(scores, torch.tensor([0, 2]), reduction="none")
    assert losses[0] == 0
    torch.testing.assert_close(losses[1], torch.as_tensor(ConvolutionalFenchelYoung().value(0.5)))
    assert fenchel_young_loss(torch.full((1, 3), math.nan), torch.tensor([0])).isnan()


def test_nothing_is_returned_that_was_not_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_fenchel_young, "STEPS", 2)
    with pytest.raises(NotSolvedError, match="the projection was not solved: duality gap"):
        fenchel_young_loss(drawn(4, 100, scale=0.1), torch.zeros(4, dtype=torch.long))


def least_regret(p: np.ndarray, prediction: int) -> float:
    """min over scores that predict it, by L-BFGS-B: its score is 0 and the others are at most that."""
    others = np.delete(np.arange(len(p)), prediction)

    def risk(x: np.ndarray) -> tuple[float, np.ndarray]:
        scores = np.zeros(len(p))
        scores[others] = x
        point = fenchel_young_point(torch.tensor(scores).unsqueeze(0))
        return float(point.conjugate) - scores @ p, (point.probability[0].numpy() - p)[others]

    options = {"ftol": 0.0, "gtol": 1e-11, "maxiter": 2000}
    start = np.full(len(others), -0.5)
    run = minimize(risk, start, jac=True, method="L-BFGS-B", bounds=[(None, 0.0)] * len(others), options=options)
    return run.fun - (1 - p.max() - p @ np.log(p))


def test_regret_ratios_are_scipys_and_no_less_than_one_over_the_number_of_classes() -> None:
    rng = np.random.default_rng(0)
    for size in (2, 3, 4, 6):
        for concentration in (1.0, 30.0):
            p = rng.dirichlet(np.full(size, concentration))
            prediction = int(rng.choice(np.delete(np.arange(size), p.argmax())))
            found = fenchel_young_regret_ratio(p, prediction)
            assert found.surrogate_regret == pytest.approx(least_regret(p, prediction), rel=1e-5, abs=1e-9)
            assert found.target_regret == pytest.approx(p.max() - p[prediction])
            assert found.ratio >= 1 / size and found.residual <= 1e-12
            assert found.scores[prediction] == pytest.approx(found.scores.max(), abs=1e-12)


def test_the_ratio_stays_where_that_of_the_sum_loss_vanishes() -> None:
    # The distribution of `docs/reading-the-paper-with-care.md` (a). The pool is the two leading classes, so that the ratio
    # tends to ½.
    ratios = [fenchel_young_regret_ratio([0.4 + d, 0.4 - d, 0.2], 1).ratio for d in (0.1, 0.01, 0.001)]
    assert ratios == pytest.approx([0.6263358, 0.5125013, 0.50125], abs=1e-6)


@pytest.mark.parametrize("size", (2, 3, 10))
def test_the_constant_is_the_number_of_classes(size: int) -> None:
    p = np.full(size, 1 / size) + 1e-6
    p[0] -= size * 1e-6
    assert fenchel_young_regret_ratio(p, 0).ratio == pytest.approx(1 / size, rel=1e-3)


def test_impossible_classes() -> None:
    found = fenchel_young_regret_ratio([0.6, 0.4, 0.0], 1)
    assert found.scores[2] == -math.inf and found.residual <= 1e-15
    # Pooling a class with p = 0 costs p_1 log(p_1 / ½) = log 2 at p_1 = 1, and π = ½ on each.
    assert fenchel_young_regret_ratio([1.0, 0.0], 1).surrogate_regret == pytest.approx(math.log(2) + 0.5)


MESSAGES = {
    "scores": (lambda: fenchel_young_loss([[0.0, 1.0]], torch.tensor([0])), "`scores` must be a torch tensor"),
    "reduction": (lambda: fenchel_young_loss(drawn(1, 2), torch.tensor([0]), reduction="max"), "`reduction` must be one of"),
    "tolerance": (lambda: fenchel_young_loss(drawn(1, 2), torch.tensor([0]), tolerance=0.0), "`tolerance` must be between"),
    "rows": (lambda: fenchel_young_point(drawn(3)), "`scores` must have shape (N, C), got (3,)"),
    "optimal": (lambda: fenchel_young_regret_ratio([0.6, 0.4], 0), "`prediction` must be suboptimal, got 0, whose"),
    "outside": (lambda: fenchel_young_regret_ratio([0.6, 0.4], 2), "`prediction` must be in [0, 2), got 2"),
    "sum": (lambda: fenchel_young_regret_ratio([0.6, 0.6], 0), "`probabilities` must be non-negative and add up to 1"),
    "shape": (lambda: fenchel_young_regret_ratio([[0.6, 0.4]], 0), "`probabilities` must have shape (M,)"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "message"), MESSAGES.values(), ids=MESSAGES.keys())
def test_messages(call, message: str) -> None:
    with pytest.raises((ValueError, TypeError)) as error:
        call()
    assert message in str(error.value)
