"""Fused dense losses beside the grid: rows of every length, all surrogates, infinite scores, reductions, torch.compile.

They run compiled on a GPU, or on the CPU in Triton's interpreter; `test_interpreted.py` starts the latter.
"""

import functools
import math
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

import linearcore.kernels.fused._dense as dense_module
from linearcore import Hinge, LinearCore, Surrogate, binary_loss, multiclass_loss
from linearcore.kernels import fused
from linearcore.losses import Form, robust_loss
from tests.cases import PAIRS, cross, each
from tests.kernels.paths import DEVICE

FORMS = ("logodds", "pairwise", "centered")
every_form = pytest.mark.parametrize("form", FORMS)
Loss = Callable[..., Tensor]


@pytest.fixture(autouse=True)
def tensors_on_the_device() -> Iterator[None]:
    with DEVICE:
        yield


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All rows are taken for long ones, which do not fit into registers."""
    monkeypatch.setattr(dense_module, "MAX_ON_CHIP", 1)
    dense_module._plan.cache_clear()
    yield
    dense_module._plan.cache_clear()


def drawn(*size: int, seed: int = 0, scale: float = 2.0) -> Tensor:
    return scale * torch.randn(size, generator=torch.Generator().manual_seed(seed), device="cpu").to(DEVICE)


def is_fused(loss: Tensor) -> bool:
    return loss.grad_fn is not None and loss.grad_fn.name() == "_DenseLossBackward"


def agree(loss: Loss, scores: Tensor, target: Tensor, upstream: float | None = None, **options: object) -> None:
    """Compares a fused loss and its gradient with the reference in float64, and with themselves."""
    leaf, exact = scores.clone().requires_grad_(), scores.double().requires_grad_()
    doubled = {key: item.double() if isinstance(item, Tensor) else item for key, item in options.items()}
    found, expected = loss(leaf, target, **options), loss(exact, target, backend="reference", **doubled)
    assert is_fused(found) and found.dtype == scores.dtype
    above = drawn(*found.shape, seed=1).to(found.dtype) if upstream is None else torch.full_like(found, upstream)
    finite = torch.where(expected.isfinite(), expected, 0.0)
    (right,) = torch.autograd.grad(finite, exact, above.double())
    (gradient,) = torch.autograd.grad(found, leaf, above, retain_graph=True)
    eps = 4 * torch.finfo(scores.dtype).eps + 2e-6
    torch.testing.assert_close(found.detach().double(), expected.detach(), rtol=eps, atol=eps, equal_nan=True)
    largest = float(right.abs().max()) if right.numel() else 0.0
    torch.testing.assert_close(gradient.double(), right, rtol=eps, atol=eps * max(largest, 1e-3))
    assert torch.equal(torch.autograd.grad(found, leaf, above, retain_graph=True)[0], gradient)
    # Without a gradient another kernel is compiled, whose compiler may combine products and sums in other places.
    rounding = torch.finfo(scores.dtype).eps if scores.dtype != torch.float32 else 4 * torch.finfo(torch.float32).eps
    torch.testing.assert_close(loss(scores, target, **options), found.detach(), rtol=rounding, atol=rounding, equal_nan=True)


def with_unusual_rows(num_classes: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Rows with large scores, masked classes, one class that is left, a masked label, and an ignored label."""
    scores = drawn(8, num_classes)
    target = (torch.arange(8) * 7) % num_classes
    scores[0] *= 1e3
    scores[1, (target[1] + 1) % num_classes] = -math.inf
    scores[2] = torch.where(torch.arange(num_classes) == target[2], scores[2], -math.inf)
    scores[3, target[3]] = -math.inf
    target[4] = -100
    scores[4, 0] = math.nan
    scores[5, ::2] = torch.where(torch.arange(num_classes)[::2] == target[5], scores[5, ::2], -math.inf)
    return scores.to(dtype), target


def check_unusual_rows(form: str, reduction: str, num_classes: int) -> None:
    scores, target = with_unusual_rows(num_classes)
    if reduction == "sum":
        is_finite = [0, 1, 2, 4, 5]
        scores, target = scores[is_finite], target[is_finite]
    agree(functools.partial(multiclass_loss, form=form), scores, target, reduction=reduction)


#: With every form a short row and a long one, each with the other reduction.
rows = each(
    ("form", "reduction", "num_classes"),
    {
        f"{form}-{reduction}-{number}": (form, reduction, number)
        for form in FORMS
        for reduction in ("none", "sum")
        for number in (2, 3, 70, 1000, 2500, 9000)
    },
    [
        f"{form}-{reduction}-{number}"
        for form, reductions in zip(FORMS, (("sum", "none"), ("none", "sum"), ("sum", "none")), strict=True)
        for reduction, number in zip(reductions, (3, 2500), strict=True)
    ],
)


@rows
def test_rows_on_chip(form: str, reduction: str, num_classes: int) -> None:
    check_unusual_rows(form, reduction, num_classes)


@pytest.mark.usefixtures("streams")
@rows
def test_long_rows(form: str, reduction: str, num_classes: int) -> None:
    check_unusual_rows(form, reduction, num_classes)


#: Every surrogate that has kernels, with every form that accepts it.
FUSED_PAIRS = {name: pair for name, pair in PAIRS.items() if pair[0].kernel_identity is not None}
NARROW = {"logistic-1-tau1.0-beta1.0", "logistic-2-tau0.3-beta3.0", "gamma-1-tau0.3-beta3.0", "quartic-1-tau1.0-beta1.0"}


@pytest.mark.parametrize("is_long", (False, True), ids=("short", "long"))
@each(("phi", "form"), FUSED_PAIRS, (name for name in FUSED_PAIRS if any(name.startswith(start) for start in NARROW)))
def test_surrogates(phi: Surrogate, form: Form, is_long: bool, request: pytest.FixtureRequest) -> None:
    if is_long:
        request.getfixturevalue("streams")
    scores = drawn(5, 21)
    scores[1, 3] = -math.inf
    agree(functools.partial(multiclass_loss, form=form), scores, torch.arange(5), surrogate=phi)


@cross(form=FORMS, reduction=("none", "mean"), dtype=(torch.bfloat16, torch.float16))
def test_half_precision_is_computed_in_float32(form: str, reduction: str, dtype: torch.dtype) -> None:
    scores, target = drawn(4, 3000).to(dtype), torch.tensor([0, 1, 2, 2999])
    agree(functools.partial(multiclass_loss, form=form), scores, target, reduction=reduction)


def test_small_gradients_in_float16_are_scaled_before_they_are_rounded() -> None:
    scores = drawn(4, 3000).half().requires_grad_()
    loss = multiclass_loss(scores, torch.zeros(4, dtype=torch.long), form="pairwise").float() * 2.0**14
    (gradient,) = torch.autograd.grad(loss, scores)
    exact = scores.detach().double().requires_grad_()
    multiclass_loss(exact, torch.zeros(4, dtype=torch.long), form="pairwise", backend="reference").backward()
    assert exact.grad is not None
    torch.testing.assert_close(gradient.double(), exact.grad * 2.0**14, rtol=2**-9, atol=1e-7)


@cross(size=((5, 3), (9, 10), (40, 130), (3, 3000)), reduction=("none", "mean"), tau=(2.0, 0.3))
def test_robust_loss(tau: float, reduction: str, size: tuple[int, int]) -> None:
    scores = drawn(*size)
    scores[0, 1] = -math.inf
    scores[1] *= 1e-5  # A norm below the lower bound.
    scores[2] = scores[2] * 1e4 + 1e3
    target = torch.arange(size[0]) % size[1]
    target[1] = -100 if reduction == "mean" else target[1]
    agree(robust_loss, scores, target, surrogate=LinearCore(tau=tau), radius=1.5, scale=0.3, reduction=reduction)


@pytest.mark.parametrize("upstream", (1.0, 2.0, 0.0))
@pytest.mark.parametrize("is_small", (True, False))
@every_form
def test_upstream_gradients(form: str, is_small: bool, upstream: float, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_small:
        monkeypatch.setattr(dense_module, "SMALL", 0)
    agree(functools.partial(multiclass_loss, form=form), drawn(5, 9), torch.arange(5), upstream)


@pytest.mark.parametrize("factor", (1.0, 0.3))
def test_a_tensor_is_multiplied_by_a_number_on_the_device(factor: float) -> None:
    tensor = drawn(3000)
    expected = tensor * factor
    fused.scale_by(tensor, torch.tensor(factor))
    torch.testing.assert_close(tensor, expected)


@pytest.mark.parametrize("is_long", (False, True), ids=("short", "long"))
@every_form
def test_weights_and_class_margins(form: str, is_long: bool, request: pytest.FixtureRequest) -> None:
    if is_long:
        request.getfixturevalue("streams")
    target = torch.tensor([0, 3, -100, 1, 4])
    options = {"weight": drawn(9).exp(), "sample_weight": drawn(5).exp(), "class_margin": drawn(9).abs()}
    leaf, exact = drawn(5, 9).requires_grad_(), drawn(5, 9).double().requires_grad_()
    found = multiclass_loss(leaf, target, form=form, backend="fused", **options)
    doubled = {key: item.double() for key, item in options.items()}
    expected = multiclass_loss(exact, target, form=form, backend="reference", **doubled)
    torch.testing.assert_close(found.double(), expected, rtol=2e-6, atol=1e-6)
    gradients = [torch.autograd.grad(loss, scores)[0].double() for loss, scores in ((found, leaf), (expected, exact))]
    torch.testing.assert_close(*gradients, rtol=2e-6, atol=1e-6)


def test_a_row_is_counted_once_and_programs_share_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    target = torch.arange(300) % 7
    target[::3] = -100
    agree(multiclass_loss, drawn(300, 7), target)
    monkeypatch.setattr(dense_module, "COUNTED_ONCE", 1)
    monkeypatch.setattr(dense_module, "TILE", 64)
    dense_module._plan.cache_clear()
    agree(multiclass_loss, drawn(300, 7), target)
    dense_module._plan.cache_clear()
    assert multiclass_loss(drawn(3, 4), torch.full((3,), -100)).isnan()


@every_form
def test_second_derivatives_are_those_of_the_reference(form: str) -> None:
    leaf, target = drawn(4, 5).requires_grad_(), torch.tensor([0, 2, -100, 4])
    results = []
    for backend in ("auto", "reference"):
        loss = multiclass_loss(leaf, target, form=form, backend=backend)
        (slope,) = torch.autograd.grad(loss, leaf, create_graph=True)
        results.append(torch.autograd.grad(slope.square().sum(), leaf)[0])
    torch.testing.assert_close(*results)
    assert results[0].abs().max() > 0


@cross(form=FORMS, is_long=(False, True), bad=(math.inf, math.nan), place=(0, 1))
def test_a_bad_score_has_no_finite_loss(
    form: str, place: int, bad: float, is_long: bool, request: pytest.FixtureRequest
) -> None:
    if is_long:
        request.getfixturevalue("streams")
    scores = drawn(3, 5)
    scores[1, place] = bad
    losses = multiclass_loss(scores, torch.zeros(3, dtype=torch.long), form=form, reduction="none")
    assert losses.isfinite().tolist() == [True, False, True]


def test_other_surrogates_use_the_fused_log_odds_or_blocks() -> None:
    leaf = drawn(3, 5).requires_grad_()
    for form, backend in (("logodds", "fused"), ("pairwise", "auto")):
        loss = multiclass_loss(leaf, torch.arange(3), form=form, surrogate=Hinge(), backend=backend)
        assert not is_fused(loss)
        torch.testing.assert_close(
            loss, multiclass_loss(leaf, torch.arange(3), form=form, surrogate=Hinge(), backend="reference")
        )
    with pytest.raises(ValueError, match="`backend` must have fused kernels"):
        multiclass_loss(leaf, torch.arange(3), form="pairwise", surrogate=Hinge(), backend="fused")


@cross(form=FORMS, options=({}, {"class_margin": True}, {"reduction": "none"}))
def test_compiled_it_calls_the_kernels(form: str, options: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    torch.compiler.reset()
    calls: list[str] = []
    for name in ("rows_forward", "rows_backward"):
        original = getattr(fused, name)
        monkeypatch.setattr(
            fused, name, lambda *given, name=name, original=original: (calls.append(name), original(*given))[1]
        )
    if "class_margin" in options:
        options = {"class_margin": drawn(5).abs()}
    compiled = torch.compile(functools.partial(multiclass_loss, form=form, **options), fullgraph=True, backend="aot_eager")
    target = torch.tensor([0, 2, -100, 4])
    results = []
    for function in (compiled, functools.partial(multiclass_loss, form=form, **options)):
        leaf = drawn(4, 5).requires_grad_()
        loss = function(leaf, target)
        results.append((loss.detach(), *torch.autograd.grad(loss, leaf, drawn(*loss.shape, seed=1))))
    assert calls[:2] == ["rows_forward", "rows_backward"]
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("phi", (LinearCore(), LinearCore("gamma", sides=2), LinearCore("exponential", tau=0.5)), ids=repr)
@pytest.mark.parametrize("reduction", ("none", "mean"))
def test_binary_losses(phi: Surrogate, reduction: str) -> None:
    scores = drawn(7, 400)
    loss = functools.partial(binary_loss, surrogate=phi)
    for target in (scores > 1, (scores > 1).long(), (scores > 1).byte(), scores.sigmoid()):
        leaf, exact = scores.clone().requires_grad_(), scores.double().requires_grad_()
        found = loss(leaf, target, reduction=reduction)
        expected = loss(
            exact, target.double() if target.is_floating_point() else target, reduction=reduction, backend="reference"
        )
        assert found.grad_fn is not None and found.grad_fn.name() == "_BinaryLossBackward"
        upstream = drawn(*found.shape, seed=1)
        torch.testing.assert_close(found.detach().double(), expected.detach(), rtol=2e-6, atol=2e-6)
        gradients = [
            torch.autograd.grad(value, leaf_, above)[0].double()
            for value, leaf_, above in ((found, leaf, upstream), (expected, exact, upstream.double()))
        ]
        torch.testing.assert_close(*gradients, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16), ids=str)
def test_binary_losses_in_half_precision(dtype: torch.dtype) -> None:
    scores = drawn(5, 9).to(dtype).requires_grad_()
    target = drawn(5, 9, seed=1) > 0
    loss = binary_loss(scores, target)
    assert loss.dtype == dtype and binary_loss(scores, target, reduction="none").dtype == dtype
    (gradient,) = torch.autograd.grad(loss, scores)
    exact = scores.detach().double().requires_grad_()
    (right,) = torch.autograd.grad(binary_loss(exact, target, backend="reference"), exact)
    torch.testing.assert_close(gradient.double(), right, rtol=2 * torch.finfo(dtype).eps, atol=1e-6)


def test_binary_losses_without_a_finite_value_and_second_derivatives() -> None:
    scores, target = drawn(2, 3), torch.tensor([[1, 0, 1], [0, 1, 1]])
    scores[0, 1], scores[1, 2] = math.inf, math.nan
    assert binary_loss(scores, target, reduction="none").isfinite().tolist() == [[True, False, True], [True, True, False]]
    leaf = drawn(2, 3).requires_grad_()
    (slope,) = torch.autograd.grad(binary_loss(leaf, target), leaf, create_graph=True)
    (curvature,) = torch.autograd.grad(slope.square().sum(), leaf)
    (exact,) = torch.autograd.grad(binary_loss(leaf, target, backend="reference"), leaf, create_graph=True)
    torch.testing.assert_close(curvature, torch.autograd.grad(exact.square().sum(), leaf)[0])


if DEVICE.type == "cuda":

    @pytest.mark.parametrize("num_classes", (1000, 32_000))
    @every_form
    def test_more_than_two_billion_scores(form: str, num_classes: int) -> None:
        num_rows = 2**31 // num_classes + 100
        scores = torch.randn(num_rows, num_classes, dtype=torch.bfloat16).requires_grad_()
        target = torch.arange(num_rows) % num_classes
        losses = multiclass_loss(scores, target, form=form, reduction="none")
        (gradient,) = torch.autograd.grad(losses, scores, torch.ones_like(losses))
        end = scores.detach()[-50:].clone().requires_grad_()
        expected = multiclass_loss(end, target[-50:], form=form, reduction="none")
        assert torch.equal(losses[-50:], expected)
        assert torch.equal(gradient[-50:], torch.autograd.grad(expected, end, torch.ones_like(expected))[0])
        mean = multiclass_loss(scores, target, form=form)
        (gradient,) = torch.autograd.grad(mean, scores)
        torch.testing.assert_close(gradient[-50:].sum(-1), torch.zeros(50, dtype=torch.bfloat16), rtol=0, atol=1e-3)
