"""`robust_loss` under torch.compile, torch.func and forward mode, and the module `RobustLinearCoreLoss`."""

import copy
import inspect
import math

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import grad, hessian, jvp, vmap

from linearcore import LinearCore, RobustLinearCoreLoss, multiclass_loss
from linearcore.losses import robust_loss
from tests.cases import cross

GENERATOR = torch.Generator().manual_seed(0)
SCORES = 2 * torch.randn(6, 5, dtype=torch.float64, generator=GENERATOR)
INDEX = torch.tensor([0, 3, -100, 1, 4, 2])
PROBABILITY = torch.randn(6, 5, dtype=torch.float64, generator=GENERATOR).softmax(1)
DIRECTION = torch.randn(6, 5, dtype=torch.float64, generator=GENERATOR)
PER_CLASS = torch.randn(5, dtype=torch.float64, generator=GENERATOR).exp()
PER_SAMPLE = torch.tensor([1.0, 0.0, 2.0, 1.0, 0.5, 3.0], dtype=torch.float64)
targets = pytest.mark.parametrize("target", (INDEX, PROBABILITY), ids=("hard", "soft"))
surrogates = pytest.mark.parametrize("phi", (LinearCore(tau=2.0), LinearCore("gamma", 0.5)), ids=("core", "tail"))

#: Every argument of the module, each with a value that is not its default and changes the result.
OPTIONS = {
    "weight": PER_CLASS,
    "radius": 2.0,
    "surrogate": LinearCore("gamma", 0.5),
    "scale": 0.3,
    "ignore_index": 4,
    "label_smoothing": 0.1,
    "reduction": "sum",
}


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def value_and_gradient(loss: object, scores: Tensor, *others: Tensor) -> tuple[Tensor, Tensor]:
    leaf = scores.clone().requires_grad_()
    value = loss(leaf, *others)
    return value.detach(), torch.autograd.grad(value.sum(), leaf)[0]


@cross(target={"hard": INDEX, "soft": PROBABILITY}, phi={"core": LinearCore(tau=2.0), "tail": LinearCore("gamma", 0.5)})
def test_compiled_in_one_graph(phi: LinearCore, target: Tensor) -> None:
    def loss(scores: Tensor, target: Tensor) -> Tensor:
        return robust_loss(scores, target, surrogate=phi, weight=PER_CLASS, label_smoothing=0.1, reduction="none")

    scores = SCORES.clone()
    scores[1, 0] = -math.inf if target is INDEX else 0.0
    eager = value_and_gradient(loss, scores, target)
    compiled = value_and_gradient(torch.compile(loss, fullgraph=True, backend="aot_eager"), scores, target)
    for ours, expected in zip(compiled, eager, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-11, atol=1e-11)


def test_the_module_compiles() -> None:
    criterion = RobustLinearCoreLoss(PER_CLASS, scale=0.1)
    eager = value_and_gradient(criterion, SCORES, INDEX)
    compiled = value_and_gradient(torch.compile(criterion, fullgraph=True, backend="aot_eager"), SCORES, INDEX)
    for ours, expected in zip(compiled, eager, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-11, atol=1e-11)


@targets
@surrogates
def test_func_grad_jvp_and_forward_mode(phi: LinearCore, target: Tensor) -> None:
    def loss(scores: Tensor) -> Tensor:
        return robust_loss(scores, target, surrogate=phi)

    value, expected = value_and_gradient(loss, SCORES)
    torch.testing.assert_close(grad(loss)(SCORES), expected, rtol=1e-11, atol=1e-12)
    ours, tangent = jvp(loss, (SCORES,), (DIRECTION,))
    torch.testing.assert_close(ours, value, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(tangent, (expected * DIRECTION).sum(), rtol=1e-10, atol=1e-11)
    with forward_ad.dual_level():
        dual = forward_ad.unpack_dual(loss(forward_ad.make_dual(SCORES, DIRECTION)))
        torch.testing.assert_close(dual.tangent, tangent, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("target", (INDEX.clamp(min=0), PROBABILITY), ids=("hard", "soft"))
def test_vmap_gives_each_sample_its_gradient(target: Tensor) -> None:
    gradients = vmap(grad(robust_loss))(SCORES, target)
    for row, (sample, label) in enumerate(zip(SCORES, target, strict=True)):
        _, expected = value_and_gradient(robust_loss, sample, label)
        torch.testing.assert_close(gradients[row], expected, rtol=1e-10, atol=1e-12)


def test_hessian_is_symmetric_and_blind_to_shifts_and_sizes() -> None:
    def loss(row: Tensor) -> Tensor:
        return robust_loss(row, torch.tensor(1), surrogate=LinearCore("gamma", 0.5))

    curvature = hessian(loss)(SCORES[0])
    torch.testing.assert_close(curvature, torch.autograd.functional.hessian(loss, SCORES[0]), rtol=1e-10, atol=1e-11)
    torch.testing.assert_close(curvature, curvature.T)
    assert curvature.sum(1).abs().max() <= 1e-12 and curvature.abs().max() > 1e-3
    # A loss of degree 0: its gradient has degree −1, so that H·s = −g.
    torch.testing.assert_close(curvature @ SCORES[0], -grad(loss)(SCORES[0]), rtol=1e-9, atol=1e-11)


def test_module_is_the_function() -> None:
    module = RobustLinearCoreLoss(**OPTIONS)
    expected = robust_loss(SCORES, INDEX.clamp(min=0), sample_weight=PER_SAMPLE, **OPTIONS)
    assert module(SCORES, INDEX.clamp(min=0), PER_SAMPLE) == expected
    assert RobustLinearCoreLoss()(SCORES, INDEX) == robust_loss(SCORES, INDEX)


@pytest.mark.parametrize("left_out", OPTIONS)
def test_every_argument_is_passed_on(left_out: str) -> None:
    fewer = {name: option for name, option in OPTIONS.items() if name != left_out}
    target = INDEX.clamp(min=0)
    assert RobustLinearCoreLoss(**fewer)(SCORES, target) == robust_loss(SCORES, target, **fewer)
    assert RobustLinearCoreLoss(**fewer)(SCORES, target) != RobustLinearCoreLoss(**OPTIONS)(SCORES, target)


def test_backend_and_validate_are_passed_on() -> None:
    with pytest.raises(ValueError, match="`scores` must not be NaN"):
        RobustLinearCoreLoss(validate=True)(SCORES * math.nan, INDEX)
    soft = PROBABILITY.clone().requires_grad_()
    with pytest.raises(ValueError, match="`backend` must be able to differentiate all inputs"):
        RobustLinearCoreLoss(backend="eager")(SCORES, soft)
    assert RobustLinearCoreLoss(backend="reference")(SCORES, soft).requires_grad


def test_module_replaces_cross_entropy_loss() -> None:
    ours, theirs = RobustLinearCoreLoss(PER_CLASS), nn.CrossEntropyLoss(PER_CLASS)
    assert set(ours.state_dict()) == set(theirs.state_dict()) == {"weight"} and not list(ours.parameters())
    assert not RobustLinearCoreLoss().state_dict()
    assert ours.to(torch.float32).weight.dtype == torch.float32
    twin = copy.deepcopy(ours)
    assert twin(SCORES, INDEX) == ours(SCORES, INDEX)
    shown = repr(RobustLinearCoreLoss(scale=0.1, radius=0.5))
    assert "radius=0.5" in shown and "scale=0.1" in shown and "LinearCore('logistic', tau=2" in shown
    with pytest.raises(TypeError, match="`weight` must be a torch tensor, got list"):
        RobustLinearCoreLoss([1.0, 2.0])


def test_signature_is_multiclass_loss_s() -> None:
    ours, theirs = (inspect.signature(function).parameters for function in (robust_loss, multiclass_loss))
    own = ("radius", "surrogate", "scale")
    assert list(ours)[2:5] == list(own)
    shared = [name for name in theirs if name not in ("surrogate", "form", "normalize", "class_margin")]
    assert [name for name in ours if name not in own] == shared
    assert all(ours[name].default == theirs[name].default for name in shared)
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in list(ours.values())[2:])


def test_on_the_meta_device_nothing_is_looked_at() -> None:
    scores = torch.empty(6, 5, device="meta", requires_grad=True)
    loss = robust_loss(scores, torch.empty(6, dtype=torch.long, device="meta"))
    assert loss.device.type == "meta"
