"""`robust_loss` is its definition, at ordinary scores and at odd ones, in every shape and dtype that torch's loss takes."""

import math
import re

import mpmath
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from linearcore import Hinge, LinearCore, Logistic, RobustLinearCoreLoss, Surrogate, multiclass_loss
from linearcore.losses import robust_loss
from linearcore.losses.baselines import unhinged
from tests.cases import cross

FLOOR = 1e-3  # ε of the docstring.
#: Inside the core for every margin; with a tail; with two tails; no core at all.
SURROGATES = {
    "core": (LinearCore(tau=2.0), 1.0),
    "tail": (LinearCore("truncated_quadratic", 0.4), 1.0),
    "two_sided": (LinearCore("gamma", 1.0, sides=2), 3.0),
    "logistic": (Logistic(), 2.0),
    "hinge": (Hinge(), 0.5),
}
every_surrogate = pytest.mark.parametrize(("phi", "radius"), SURROGATES.values(), ids=SURROGATES.keys())
every_backend = pytest.mark.parametrize("backend", ("reference", "eager", "auto"))
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def drawn(shape: tuple[int, ...], dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return (2 * torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))).to(dtype)


SCORES = drawn((12, 5))
TARGET = torch.randint(5, (12,), generator=torch.Generator().manual_seed(1))
PROBABILITY = drawn((12, 5), seed=2).softmax(1)
WEIGHT = torch.tensor([0.5, 2.0, 1.0, 0.0, 3.0], dtype=torch.float64)


def by_definition(phi: Surrogate, scores: Tensor, label: int, radius: float, scale: float = 1.0) -> float:
    """The formula in 40 digits, classes with a score of −inf left out; φ itself in float64."""
    with mpmath.workdps(40):
        here = [v for v, score in enumerate(scores.tolist()) if score != -math.inf]
        s = [mpmath.mpf(scores[v].item()) for v in here]
        mean = mpmath.fsum(s) / len(s)
        length = max(mpmath.sqrt(mpmath.fsum((x - mean) ** 2 for x in s)), mpmath.mpf(FLOOR))
        put = [radius * (x - mean) / length for x in s]
        own = put.pop(here.index(label))
        terms = [phi.value(torch.tensor(float(own - other), dtype=torch.float64)).item() for other in put]
    return scale * sum(terms) / max(1, len(terms))


def each_label(phi: Surrogate, scores: Tensor, radius: float) -> Tensor:
    """(N, C): the definition for every label that is there, 0 for the others."""
    rows = [[by_definition(phi, row, y, radius) if row[y] != -math.inf else 0.0 for y in range(len(row))] for row in scores]
    return torch.tensor(rows, dtype=torch.float64)


def with_gradient(scores: Tensor, target: Tensor, **options: object) -> tuple[Tensor, Tensor]:
    leaf = scores.clone().requires_grad_()
    value = robust_loss(leaf, target, **options)
    return value.detach(), torch.autograd.grad(value.sum(), leaf)[0]


def close(actual: Tensor, expected: Tensor, tolerance: float = 1e-12) -> None:
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


@every_surrogate
@every_backend
def test_value_is_the_definition(phi: Surrogate, radius: float, backend: str) -> None:
    scores = SCORES * torch.logspace(-2, 3, 12, dtype=torch.float64)[:, None] + 7.0
    scores[3:5, 2] = -math.inf
    target = torch.where(TARGET == 2, 4, TARGET)
    each = each_label(phi, scores, radius)
    options = {"surrogate": phi, "radius": radius, "scale": 0.3, "reduction": "none", "backend": backend}
    close(robust_loss(scores, target, **options), 0.3 * each.gather(1, target[:, None]).squeeze(1), 1e-11)
    here = PROBABILITY * (scores != -math.inf)
    close(robust_loss(scores, here, **options), 0.3 * (here * each).sum(1), 1e-11)


@every_surrogate
def test_it_is_the_pairwise_loss_of_normalised_scores(phi: Surrogate, radius: float) -> None:
    centred = SCORES - SCORES.mean(1, keepdim=True)
    put = radius * F.normalize(centred, dim=1)
    for target in (TARGET, PROBABILITY):
        expected = multiclass_loss(put, target, surrogate=phi, form="pairwise", reduction="none")
        close(robust_loss(SCORES, target, surrogate=phi, radius=radius, reduction="none"), expected)


@every_backend
def test_inside_the_core_it_is_unhinged_on_the_sphere(backend: str) -> None:
    """Values up to a constant, and gradients with respect to the raw scores."""
    phi, leaf = LinearCore(tau=1.5), SCORES.clone().requires_grad_()
    put = F.normalize(leaf - leaf.mean(1, keepdim=True), dim=1)
    for target in (TARGET, PROBABILITY):
        theirs = unhinged(put, target, reduction="none") + phi.value(0.0) - 1
        ours = robust_loss(leaf, target, surrogate=phi, reduction="none", backend=backend)
        close(ours.detach(), theirs.detach())
        gradients = [torch.autograd.grad(loss.sum(), leaf, retain_graph=True)[0] for loss in (ours, theirs)]
        close(*gradients)


def test_gradient_is_across_the_scores_and_goes_down_with_their_norm() -> None:
    """−scale·r·n/(n−1)/‖c‖ (I − ûûᵀ)(1_y − 1/n): orthogonal to c = s − s̄, at most scale·r·√(n/(n−1))/‖c‖."""
    _, gradient = with_gradient(SCORES, TARGET, radius=0.7, scale=0.3, reduction="sum")
    centred = SCORES - SCORES.mean(1, keepdim=True)
    length = centred.norm(dim=1, keepdim=True)
    unit = centred / length
    pull = F.one_hot(TARGET, 5).double() - 1 / 5
    expected = -0.3 * 0.7 * 5 / 4 / length * (pull - unit * (unit * pull).sum(1, keepdim=True))
    close(gradient, expected)
    assert (gradient.norm(dim=1) <= 0.3 * 0.7 * (5 / 4) ** 0.5 / length.squeeze(1)).all()
    _, far = with_gradient(100 * SCORES, TARGET, radius=0.7, scale=0.3, reduction="sum")
    close(100 * far, gradient)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_equal_scores_have_a_finite_loss_and_gradient(dtype: torch.dtype) -> None:
    """ŝ = 0: φ(0), and the gradient of the docstring."""
    phi = LinearCore(tau=2.0)
    for height in (0.0, -3.0, 1000.0):
        loss, gradient = with_gradient(torch.full((2, 4), height, dtype=dtype), torch.tensor([1, 3]), reduction="none")
        close(loss, torch.full((2,), float(phi.value(0.0)), dtype=dtype), float(torch.finfo(dtype).eps))
        pull = F.one_hot(torch.tensor([1, 3]), 4).double() - 1 / 4
        close(gradient, (-4 / 3 / FLOOR * pull).to(dtype), 4 * float(torch.finfo(dtype).eps))


def test_below_the_floor_the_loss_is_pairwise_of_stretched_scores() -> None:
    tiny = 1e-4 * SCORES / SCORES.abs().amax()
    expected = multiclass_loss(tiny / FLOOR, TARGET, surrogate=LinearCore(tau=2.0), form="pairwise", reduction="none")
    close(robust_loss(tiny, TARGET, reduction="none"), expected)


@pytest.mark.parametrize("factor", (1e-30, 1e-10, 1e6, 1e18, 1e30, 1e38))
@pytest.mark.parametrize("soft", (False, True), ids=("hard", "soft"))
def test_sizes_that_float32_cannot_square(factor: float, soft: bool) -> None:
    scores = (SCORES / SCORES.abs().amax()).float() * factor
    target = PROBABILITY.float() if soft else TARGET
    exact = with_gradient(scores.double(), target, reduction="none")
    ours = with_gradient(scores, target, reduction="none")
    for single, double in zip(ours, exact, strict=True):
        assert single.isfinite().all()
        torch.testing.assert_close(single.double(), double, rtol=2e-5, atol=1e-6 * float(double.abs().amax()))


def test_a_large_mean_does_not_drown_the_differences() -> None:
    """2²² and integers: float32 holds these scores exactly, their quotients by the largest not at all."""
    whole = (8 * SCORES).round().float()
    ours = with_gradient(whole + 2.0**22, TARGET, reduction="none")
    for far, near in zip(ours, with_gradient(whole, TARGET, reduction="none"), strict=True):
        assert torch.equal(far, near)


def test_classes_that_are_not_there() -> None:
    scores = torch.tensor([[1.0, -math.inf, 2.0, 0.5], [-math.inf, 0.0, -math.inf, 1.0]], dtype=torch.float64)
    target = torch.tensor([2, 1])
    loss, gradient = with_gradient(scores, target, reduction="none")
    close(loss[0], robust_loss(scores[0, [0, 2, 3]], torch.tensor(1)))
    close(loss[1], LinearCore(tau=2.0).value(torch.tensor(-(2**0.5), dtype=torch.float64)))
    assert gradient.isfinite().all() and (gradient[scores == -math.inf] == 0).all()
    assert (gradient[0, [0, 2, 3]] != 0).all()
    assert gradient[1].abs().amax() <= 1e-15, "two classes: the sphere is two points"
    soft_loss, soft_gradient = with_gradient(scores, F.one_hot(target, 4).double(), reduction="none")
    close(soft_loss, loss)
    close(soft_gradient, gradient)
    assert robust_loss(scores[:1], torch.tensor([1])) == math.inf


def test_a_label_without_competitors_is_not_wrong() -> None:
    for scores in (torch.tensor([[2.0]]), torch.tensor([[-math.inf, 2.0, -math.inf]])):
        loss, gradient = with_gradient(scores, torch.tensor([scores.shape[1] // 2]))
        assert loss == 0 and (gradient == 0).all()


@every_backend
def test_a_row_without_classes_has_infinite_loss_and_no_gradient(backend: str) -> None:
    scores = torch.tensor([[-math.inf] * 3, [1.0, 0.0, 2.0]])
    for target in (torch.tensor([0, 1]), torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])):
        loss, gradient = with_gradient(scores, target, reduction="none", backend=backend)
        assert loss[0] == math.inf and (gradient[0] == 0).all() and loss[1] > 0 and (gradient[1] != 0).all()


@pytest.mark.parametrize("filling", (-math.inf, math.inf, math.nan))
def test_an_ignored_row_may_hold_anything(filling: float) -> None:
    scores = torch.tensor([[1.0, 0.0, 2.0], [filling] * 3])
    loss, gradient = with_gradient(scores, torch.tensor([0, -100]))
    assert loss.isfinite() and gradient.isfinite().all() and (gradient[1] == 0).all() and (gradient[0] != 0).all()


def test_nan_is_not_hidden() -> None:
    scores = drawn((3, 4))
    scores[1, 2] = math.nan
    for target in (torch.tensor([0, 1, 3]), drawn((3, 4)).softmax(1)):
        assert robust_loss(scores, target, reduction="none").isnan().tolist() == [False, True, False]
    with pytest.raises(ValueError, match="`scores` must not be NaN"):
        robust_loss(scores, torch.tensor([0, 1, 3]), validate=True)


@pytest.mark.parametrize("reduction", ("none", "mean", "sum"))
def test_empty_batches_and_all_ignored_are_torchs(reduction: str) -> None:
    for shape in ((0, 5), (0, 5, 3), (2, 5, 0)):
        scores = torch.zeros(shape)
        for target in (torch.zeros(shape[:1] + shape[2:], dtype=torch.long), torch.zeros(shape)):
            ours, gradient = with_gradient(scores, target, reduction=reduction)
            close(ours, F.cross_entropy(scores, target, reduction=reduction))
            assert gradient.shape == shape
    scores, target = drawn((3, 4)), torch.full((3,), -100)
    close(robust_loss(scores, target, reduction=reduction), F.cross_entropy(scores, target, reduction=reduction))


@pytest.mark.parametrize("shape", ((5,), (4, 5), (4, 5, 3), (2, 5, 3, 1, 2)), ids=str)
@pytest.mark.parametrize("reduction", ("none", "mean", "sum"))
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_shapes_and_dtypes_are_cross_entropys(shape: tuple[int, ...], reduction: str, dtype: torch.dtype) -> None:
    scores = drawn(shape, dtype)
    classes = min(1, len(shape) - 1)
    index = torch.randint(5, shape[:classes] + shape[classes + 1 :], generator=torch.Generator().manual_seed(1))
    for target in (index, scores.softmax(classes)):
        theirs = F.cross_entropy(scores, target, reduction=reduction)
        ours, gradient = with_gradient(scores, target, reduction=reduction)
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        assert (gradient.shape, gradient.dtype) == (scores.shape, dtype)
        assert ours.isfinite().all() and gradient.isfinite().all()
    if len(shape) == 3:
        alone = [robust_loss(scores[..., place], index[..., place], reduction="none") for place in range(shape[2])]
        close(robust_loss(scores, index, reduction="none"), torch.stack(alone, 1))


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16), ids=str)
@pytest.mark.parametrize("soft", (False, True), ids=("hard", "soft"))
def test_half_precision_rounds_only_at_the_end(dtype: torch.dtype, soft: bool) -> None:
    scores = drawn((64, 10), dtype)
    target = drawn((64, 10)).softmax(1) if soft else torch.arange(64) % 10
    exact = with_gradient(scores.double(), target, reduction="none")
    half = torch.finfo(dtype).eps / 2
    for rounded, expected in zip(with_gradient(scores, target, reduction="none"), exact, strict=True):
        torch.testing.assert_close(rounded.double(), expected, rtol=1.01 * half, atol=1e-6)
    with torch.autocast("cpu", dtype=dtype):
        assert robust_loss(scores, target).dtype == torch.float32


@pytest.mark.parametrize("smoothing", (0.0, 0.2))
def test_weights_and_reductions_are_torchs(smoothing: float) -> None:
    each, per_sample = each_label(LinearCore(tau=2.0), SCORES, 1.0), drawn((12,), seed=5).exp()
    ignored = torch.arange(12) % 5 == 0
    mixture = (1 - smoothing) * F.one_hot(TARGET, 5).double() + smoothing / 5
    expected = ((mixture * WEIGHT * each).sum(-1) * per_sample).masked_fill(ignored, 0.0)
    divisor = (WEIGHT[TARGET] * per_sample).masked_fill(ignored, 0.0).sum()
    options = {"weight": WEIGHT, "sample_weight": per_sample, "ignore_index": 7, "label_smoothing": smoothing}
    target = TARGET.masked_fill(ignored, 7)
    close(robust_loss(SCORES, target, reduction="none", **options), expected)
    close(robust_loss(SCORES, target, reduction="sum", **options), expected.sum())
    close(robust_loss(SCORES, target, **options), expected.sum() / divisor)


@cross(case=SURROGATES, backend=("reference", "eager", "auto"))
def test_first_and_second_derivatives(case: tuple[Surrogate, float], backend: str) -> None:
    (phi, radius), scores = case, drawn((4, 3)).requires_grad_()

    for target in (torch.tensor([0, 2, -100, 1]), drawn((4, 3), seed=4).softmax(1)):

        def loss(s: Tensor, target: Tensor = target) -> Tensor:
            return robust_loss(s, target, surrogate=phi, radius=radius, backend=backend, label_smoothing=0.1)

        assert torch.autograd.gradcheck(loss, scores)
        assert torch.autograd.gradgradcheck(loss, scores)


def test_second_derivative_at_equal_scores_is_finite() -> None:
    leaf = torch.zeros(2, 4, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(robust_loss(leaf, torch.tensor([0, 1])), leaf, create_graph=True)
    (second,) = torch.autograd.grad(gradient.square().sum(), leaf)
    assert (second == 0).all(), "the loss is linear there"


def test_it_is_not_convex_in_the_scores() -> None:
    """As the docstring says: below the chord at one place and above it at another."""
    left, right = torch.tensor([[1.0, 0.0, 0.0]]), torch.tensor([[0.0, 9.0, 0.0]])
    label = torch.tensor([0])
    above = [
        float(robust_loss((a + b) / 2, label) - (robust_loss(a, label) + robust_loss(b, label)) / 2)
        for a, b in ((left, right), (-left, -right))
    ]
    assert max(above) > 0.1


def test_two_classes_are_refused_and_one_is_not() -> None:
    with pytest.raises(ValueError, match="`scores` must have three classes or more, got 2; "):
        robust_loss(SCORES[:, :2], TARGET % 2)
    assert robust_loss(SCORES[:, :1], TARGET * 0) == 0


def test_bad_scores_have_the_messages_of_the_multiclass_loss() -> None:
    for scores in ([[0.0, 1.0, 2.0]], torch.tensor(1.0), torch.zeros(1, 3).long()):
        messages = []
        for loss in (robust_loss, multiclass_loss):
            with pytest.raises((ValueError, TypeError), match="`scores` must") as caught:
                loss(scores, torch.tensor(0))
            messages.append((caught.type, str(caught.value)))
        assert messages[0] == messages[1]


BAD = {
    "radius zero": ({"radius": 0.0}, ValueError, r"`radius` must be a positive number, got 0.0; .+"),
    "radius a word": ({"radius": "1"}, ValueError, r"`radius` must be a positive number, got '1'; .+"),
    "scale negative": ({"scale": -1.0}, ValueError, r"`scale` must be a positive number, got -1.0; .+"),
    "scale infinite": ({"scale": math.inf}, ValueError, r"`scale` must be a positive number, got inf; .+"),
    "surrogate a name": ({"surrogate": "hinge"}, TypeError, r"`surrogate` must be a `Surrogate`, got str; .+"),
    "reduction": ({"reduction": "average"}, ValueError, r"`reduction` must be one of .+, got 'average'; .+"),
    "backend": ({"backend": "fast"}, ValueError, r"`backend` must be one of .+, got 'fast'; .+"),
    "smoothing": ({"label_smoothing": 2.0}, ValueError, r"`label_smoothing` must be in \[0, 1\], got 2.0; .+"),
}


@pytest.mark.parametrize(("options", "error", "words"), BAD.values(), ids=BAD.keys())
def test_bad_options_are_refused_by_function_and_constructor(
    options: dict[str, object], error: type[Exception], words: str
) -> None:
    for act in (lambda: robust_loss(SCORES, TARGET, **options), lambda: RobustLinearCoreLoss(**options)):
        with pytest.raises(error) as caught:
            act()
        assert re.fullmatch(words, str(caught.value))
