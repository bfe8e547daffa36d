"""`robust_loss(norm="batch")`: one length for all samples of a batch."""

import math

import mpmath
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy.optimize import minimize
from torch import Tensor
from torch.func import grad, vmap

from linearcore import Hinge, LinearCore, Logistic, RobustLinearCoreLoss, Surrogate
from linearcore.losses import robust_loss
from linearcore.losses.baselines import unhinged

FLOOR = 1e-3  # ε of the docstring.
SURROGATES = {
    "preset": (LinearCore(tau=2.0), 1.0),
    "tail": (LinearCore("truncated_quadratic", 0.4), 1.0),
    "two_sided": (LinearCore("gamma", 1.0, sides=2), 3.0),
    "logistic": (Logistic(), 2.0),
    "hinge": (Hinge(), 0.5),
}
every_surrogate = pytest.mark.parametrize(("phi", "radius"), SURROGATES.values(), ids=SURROGATES.keys())
#: So wide that the loss is a straight line for whatever is put into it here.
STRAIGHT = LinearCore(tau=1e3)


def drawn(shape: tuple[int, ...], seed: int = 0) -> Tensor:
    return 2 * torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


#: Rows of quite different lengths.
SCORES = drawn((12, 5)) * torch.linspace(0.1, 3.0, 12, dtype=torch.float64)[:, None] + 7.0
TARGET = torch.randint(5, (12,), generator=torch.Generator().manual_seed(1))
PROBABILITY = drawn((12, 5), 2).softmax(1)


def shared(scores: Tensor, target: Tensor, **options: object) -> Tensor:
    return robust_loss(scores, target, norm="batch", **options)


def with_gradient(scores: Tensor, target: Tensor, **options: object) -> tuple[Tensor, Tensor]:
    leaf = scores.clone().requires_grad_()
    value = shared(leaf, target, **options)
    return value.detach(), torch.autograd.grad(value.sum(), leaf)[0]


def by_definition(phi: Surrogate, scores: Tensor, radius: float, counted: list[bool]) -> Tensor:
    """(N, C): the formula in 40 digits for every label that is there, 0 for the others; φ itself in float64."""
    with mpmath.workdps(40):
        centred = []
        for row in scores.tolist():
            here = {v: mpmath.mpf(score) for v, score in enumerate(row) if score != -math.inf}
            mean = mpmath.fsum(here.values()) / max(1, len(here))
            centred.append({v: score - mean for v, score in here.items()})
        squares = [mpmath.fsum(x**2 for x in row.values()) for row, counts in zip(centred, counted, strict=True) if counts]
        length = max(mpmath.sqrt(mpmath.fsum(squares) / len(squares)), mpmath.mpf(FLOOR))
        found = torch.zeros_like(scores)
        for place, row in enumerate(centred):
            for y in row:
                margins = [float(radius * (row[y] - row[v]) / length) for v in row if v != y]
                found[place, y] = phi.value(torch.tensor(margins, dtype=torch.float64)).mean() if margins else 0.0
    return found


@every_surrogate
@pytest.mark.parametrize("backend", ("reference", "eager", "auto"))
def test_value_is_the_definition(phi: Surrogate, radius: float, backend: str) -> None:
    scores = SCORES.clone()
    scores[3:5, 2] = -math.inf
    target = torch.where(TARGET == 2, 4, TARGET)
    every = by_definition(phi, scores, radius, [True] * 12)
    options = {"surrogate": phi, "radius": radius, "scale": 0.3, "reduction": "none", "backend": backend}
    expected = 0.3 * every.gather(1, target[:, None]).squeeze(1)
    torch.testing.assert_close(shared(scores, target, **options), expected, rtol=1e-11, atol=1e-11)
    here = PROBABILITY * (scores != -math.inf)
    torch.testing.assert_close(shared(scores, here, **options), 0.3 * (here * every).sum(1), rtol=1e-11, atol=1e-11)


def test_rows_that_do_not_count_have_no_say_in_the_length() -> None:
    counted = [place % 3 != 0 for place in range(12)]
    target = torch.where(torch.tensor(counted), TARGET, -100)
    every = by_definition(LinearCore(tau=2.0), SCORES, 1.0, counted)
    expected = torch.where(torch.tensor(counted), every.gather(1, TARGET[:, None]).squeeze(1), 0.0)
    torch.testing.assert_close(shared(SCORES, target, reduction="none"), expected)
    for filling in (math.nan, math.inf, -math.inf, 1e300):
        odd = torch.where(torch.tensor(counted)[:, None], SCORES, filling)
        loss, gradient = with_gradient(odd, target, reduction="none")
        torch.testing.assert_close(loss, expected)
        assert gradient.isfinite().all() and (gradient[~torch.tensor(counted)] == 0).all()
    # Nor has a row in which nothing is there.
    loss, gradient = with_gradient(torch.cat([SCORES, torch.full((1, 5), -math.inf)]), torch.cat([TARGET, TARGET[:1]]))
    expected, without = with_gradient(SCORES, TARGET, reduction="sum")
    torch.testing.assert_close(13 * loss, expected)
    torch.testing.assert_close(13 * gradient[:12], without)


@pytest.mark.parametrize("soft", (False, True), ids=("hard", "soft"))
def test_a_sample_of_weight_2_is_there_twice_and_one_of_0_is_not(soft: bool) -> None:
    target = PROBABILITY if soft else TARGET
    weights = torch.tensor([2.0, 1, 0, 1, 1, 3, 1, 0, 1, 1, 1, 2], dtype=torch.float64)
    rows = torch.arange(12).repeat_interleave(weights.long())
    expected = shared(SCORES[rows], target[rows], reduction="sum")
    torch.testing.assert_close(shared(SCORES, target, sample_weight=weights, reduction="sum"), expected)
    odd = SCORES.clone()
    odd[2], odd[7] = math.nan, 1e300
    loss, gradient = with_gradient(odd, target, sample_weight=weights, reduction="sum")
    torch.testing.assert_close(loss, expected)
    assert gradient.isfinite().all() and (gradient[[2, 7]] == 0).all() and (gradient[0] != 0).any()
    assert shared(SCORES, target, sample_weight=0 * weights, reduction="sum") == 0


def test_only_the_common_length_is_taken_out() -> None:
    loss, gradient = with_gradient(SCORES, TARGET, reduction="none")
    shift = torch.arange(12, dtype=torch.float64)[:, None]
    torch.testing.assert_close(shared(100 * SCORES + shift, TARGET, reduction="none"), loss)
    assert not torch.allclose(shared(SCORES * (1 + shift), TARGET, reduction="none"), loss)
    # The gradient is across all scores together, and not across those of each row.
    centred = SCORES - SCORES.mean(1, keepdim=True)
    assert abs(float((gradient * centred).sum())) < 1e-12
    assert float((gradient * centred).sum(1).abs().max()) > 1e-2


def test_a_batch_of_one_is_the_sphere() -> None:
    for row, label in zip(SCORES, TARGET, strict=True):
        torch.testing.assert_close(shared(row, label), robust_loss(row, label))


def test_inside_the_core_it_is_unhinged() -> None:
    leaf = SCORES.clone().requires_grad_()
    centred = leaf - leaf.mean(1, keepdim=True)
    put = centred / centred.square().sum(1).mean().sqrt()
    for target in (TARGET, PROBABILITY):
        theirs = unhinged(put, target, reduction="none") + STRAIGHT.value(0.0) - 1
        ours = shared(leaf, target, surrogate=STRAIGHT, reduction="none")
        torch.testing.assert_close(ours, theirs)
        torch.testing.assert_close(
            *(torch.autograd.grad(loss.square().sum(), leaf, retain_graph=True)[0] for loss in (ours, theirs))
        )


@pytest.mark.parametrize("factor", (1e-30, 1e-10, 1e6, 1e18, 1e30, 1e37))
@pytest.mark.parametrize("soft", (False, True), ids=("hard", "soft"))
def test_sizes_that_float32_cannot_square(factor: float, soft: bool) -> None:
    scores = ((SCORES - 7) / (SCORES - 7).abs().amax()).float() * factor
    target = PROBABILITY.float() if soft else TARGET
    exact = with_gradient(scores.double(), target, reduction="none")
    for single, double in zip(with_gradient(scores, target, reduction="none"), exact, strict=True):
        assert single.isfinite().all()
        torch.testing.assert_close(single.double(), double, rtol=5e-5, atol=2e-6 * float(double.abs().amax()))


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16), ids=str)
def test_half_precision_rounds_only_at_the_end(dtype: torch.dtype) -> None:
    scores = drawn((64, 10)).to(dtype)
    exact = with_gradient(scores.double(), torch.arange(64) % 10, reduction="none")
    half = torch.finfo(dtype).eps / 2
    for rounded, expected in zip(with_gradient(scores, torch.arange(64) % 10, reduction="none"), exact, strict=True):
        assert rounded.dtype == dtype
        torch.testing.assert_close(rounded.double(), expected, rtol=1.01 * half, atol=1e-6)


def test_equal_scores_are_inside_the_floor() -> None:
    phi = LinearCore(tau=2.0)
    loss, gradient = with_gradient(torch.full((2, 4), 3.0, dtype=torch.float64), torch.tensor([1, 3]), reduction="none")
    torch.testing.assert_close(loss, phi.value(torch.zeros(2, dtype=torch.float64)))
    pull = F.one_hot(torch.tensor([1, 3]), 4).double() - 1 / 4
    torch.testing.assert_close(gradient, -4 / 3 / FLOOR * pull)


@pytest.mark.parametrize("reduction", ("none", "mean", "sum"))
def test_empty_batches_and_all_ignored_are_torchs(reduction: str) -> None:
    for shape in ((0, 5), (0, 5, 3), (2, 5, 0)):
        scores, target = torch.zeros(shape), torch.zeros(shape[:1] + shape[2:], dtype=torch.long)
        ours, gradient = with_gradient(scores, target, reduction=reduction)
        torch.testing.assert_close(ours, F.cross_entropy(scores, target, reduction=reduction), equal_nan=True)
        assert gradient.shape == shape
    scores, target = drawn((3, 4)), torch.full((3,), -100)
    theirs = F.cross_entropy(scores, target, reduction=reduction)
    torch.testing.assert_close(shared(scores, target, reduction=reduction), theirs, equal_nan=True)


def test_everything_beside_the_classes_is_the_batch() -> None:
    rows = SCORES.reshape(4, 3, 5)
    torch.testing.assert_close(
        shared(rows.movedim(2, 1), TARGET.reshape(4, 3), reduction="none"),
        shared(SCORES, TARGET, reduction="none").reshape(4, 3),
    )


@every_surrogate
def test_first_and_second_derivatives(phi: Surrogate, radius: float) -> None:
    scores = drawn((4, 3)).requires_grad_()
    for target in (torch.tensor([0, 2, -100, 1]), drawn((4, 3), 4).softmax(1)):

        def loss(s: Tensor, target: Tensor = target) -> Tensor:
            return shared(s, target, surrogate=phi, radius=radius, label_smoothing=0.1)

        assert torch.autograd.gradcheck(loss, scores)
        assert torch.autograd.gradgradcheck(loss, scores)


def test_compile_and_vmap() -> None:
    torch.compiler.reset()
    compiled = torch.compile(shared, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(SCORES, TARGET), shared(SCORES, TARGET))
    batches, targets = SCORES.reshape(3, 4, 5), TARGET.reshape(3, 4)
    found = vmap(grad(shared))(batches, targets)
    for place in range(3):
        torch.testing.assert_close(found[place], with_gradient(batches[place], targets[place])[1])


def test_module_passes_it_on_and_says_that_it_is_not_symmetric() -> None:
    module = RobustLinearCoreLoss(norm="batch", scale=0.1)
    assert module(SCORES, TARGET) == shared(SCORES, TARGET, scale=0.1)
    assert not module.is_symmetric and RobustLinearCoreLoss().is_symmetric
    assert "norm='batch'" in repr(module)
    for act in (lambda: robust_loss(SCORES, TARGET, norm="row"), lambda: RobustLinearCoreLoss(norm="row")):
        with pytest.raises(ValueError, match="`norm` must be one of 'sample', 'batch', 'class', got 'row'"):
            act()


# The guarantee, on finite problems: inputs x of equal weight, labels with probabilities p(x), scores without restriction.


def problem(n: int, inputs: int = 5, seed: int = 0) -> Tensor:
    """(inputs, n) probabilities, from nearly sure to nearly flat."""
    sharpness = torch.linspace(2.0, 0.2, inputs, dtype=torch.float64)[:, None]
    return (sharpness * drawn((inputs, n), seed=seed + n)).softmax(1)


def minimised(p: Tensor, **options: object) -> Tensor:
    """The best scores of several starts."""

    def risk(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = with_gradient(torch.from_numpy(x).reshape(p.shape), p, **options)
        return float(value), gradient.flatten().numpy()

    starts = [drawn(tuple(p.shape), seed=20 + turn).flatten().numpy() for turn in range(4)]
    how = {"ftol": 0.0, "gtol": 1e-11, "maxiter": 2000}
    found = min((minimize(risk, x, jac=True, method="L-BFGS-B", options=how) for x in starts), key=lambda one: one.fun)
    return torch.from_numpy(found.x).reshape(p.shape)


@pytest.mark.parametrize("n", (2, 3, 5))
@pytest.mark.parametrize("tau", (0.3, 1.0, 2.0))
def test_the_least_risk_has_the_order_of_the_probabilities_at_every_input(n: int, tau: float) -> None:
    p = problem(n)
    for law in (p, 0.5 * p + 0.5 / n):  # The second is p with uniformly wrong labels.
        best = minimised(law, surrogate=LinearCore(tau=tau))
        assert torch.equal(best.argsort(1), p.argsort(1))


def test_a_kink_makes_ties_which_is_why_the_hinge_is_left_out() -> None:
    """p = (.45, .40, .15), r = √⅔: on the whole circle nothing is better than a tie at the top."""
    p = torch.tensor([0.45, 0.40, 0.15], dtype=torch.float64)
    angles = torch.linspace(0, 2 * math.pi, 20001, dtype=torch.float64)
    first = torch.tensor([1, 1, -2], dtype=torch.float64) / math.sqrt(6)
    second = torch.tensor([1, -1, 0], dtype=torch.float64) / math.sqrt(2)
    circle = angles.cos()[:, None] * first + angles.sin()[:, None] * second
    law = p.expand(20001, 3)
    risks = shared(circle, law, surrogate=Hinge(), radius=math.sqrt(2 / 3), reduction="none")
    best = circle[risks.argmin()]
    assert float((best[0] - best[1]).abs()) < 1e-3
    smooth = shared(circle, law, surrogate=LinearCore(tau=0.9), radius=math.sqrt(2 / 3), reduction="none")
    best = circle[smooth.argmin()]
    assert float(best[0] - best[1]) > 1e-3


@pytest.mark.parametrize("n", (2, 3, 5))
def test_in_the_core_the_best_scores_are_the_probabilities_up_to_one_factor(n: int) -> None:
    p = problem(n)
    best = minimised(p, surrogate=STRAIGHT)
    centred, wanted = best - best.mean(1, keepdim=True), p - 1 / n
    torch.testing.assert_close(centred / centred.norm(), wanted / wanted.norm(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("n", (2, 3, 5))
def test_regret_is_never_below_the_bound(n: int) -> None:
    """Mean 0-1 regret ≤ 2 √(Q (n − 1)/(n · scale · r) · regret), Q the root mean square of ‖p − 1/n‖."""
    p, scale, radius = problem(n), 0.3, 0.7
    size = (p - 1 / n).square().sum(1).mean().sqrt()
    options = {"surrogate": STRAIGHT, "scale": scale, "radius": radius}
    least = scale * (STRAIGHT.value(0.0) - radius * n / (n - 1) * size)
    torch.testing.assert_close(shared(p, p, **options), least)
    tightest = math.inf
    for seed in range(400):
        # Near the best scores as well as far away.
        scores = p + 10 ** (-2 + 3 * (seed % 20) / 20) * drawn(tuple(p.shape), seed=100 + seed)
        regret = shared(scores, p, **options) - least
        wrong = (p.amax(1) - p.gather(1, scores.argmax(1, keepdim=True)).squeeze(1)).mean()
        bound = 2 * (size * (n - 1) / (n * scale * radius) * regret.clamp(min=0)).sqrt()
        assert regret > -1e-12 and wrong <= bound
        tightest = min(tightest, float(bound / wrong) if wrong > 0 else math.inf)
    assert tightest < 10, "no bound of nothing"


def test_uniform_noise_changes_no_comparison_batch_by_batch() -> None:
    n, rate = 5, 0.4
    p = problem(n)
    flips = torch.full((n, n), rate / (n - 1), dtype=torch.float64).fill_diagonal_(1 - rate)
    factor, constant = 1 - rate * n / (n - 1), rate * n / (n - 1) * float(STRAIGHT.value(0.0))
    for seed in range(20):
        scores = drawn(tuple(p.shape), seed=seed)
        clean, noisy = (shared(scores, law, surrogate=STRAIGHT) for law in (p, p @ flips))
        torch.testing.assert_close(noisy, factor * clean + constant)
