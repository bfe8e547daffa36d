"""The baselines under torch.compile(fullgraph=True), torch.func and forward mode: the numbers of eager mode."""

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import grad, jvp, vmap

from linearcore.losses.baselines import BASELINES, BaselineLoss, EarlyLearning
from tests.baselines import early_learning
from tests.cases import each

LOSSES = dict(BASELINES) | {"early_learning": early_learning}
every_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
GENERATOR = torch.Generator().manual_seed(0)
SCORES = 2 * torch.randn(6, 5, dtype=torch.float64, generator=GENERATOR)
INDEX = torch.tensor([0, 3, -100, 1, 4, 2])
PROBABILITY = torch.randn(6, 5, dtype=torch.float64, generator=GENERATOR).softmax(1)
DIRECTION = torch.randn(6, 5, dtype=torch.float64, generator=GENERATOR)
WEIGHT = torch.randn(5, dtype=torch.float64, generator=GENERATOR).exp()
KINDS = {"hard": INDEX, "soft": PROBABILITY}
targets = pytest.mark.parametrize("target", KINDS.values(), ids=KINDS.keys())


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def value_and_gradient(loss: object, scores: Tensor, *others: Tensor) -> tuple[Tensor, Tensor]:
    leaf = scores.clone().requires_grad_()
    value = loss(leaf, *others)
    return value.detach(), torch.autograd.grad(value, leaf)[0]


def same(ours: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor]) -> None:
    for actual, wanted in zip(ours, expected, strict=True):
        torch.testing.assert_close(actual, wanted, rtol=1e-11, atol=1e-12)


@each(
    ("loss", "target"),
    {f"{name}-{kind}": (loss, target) for name, loss in LOSSES.items() for kind, target in KINDS.items()},
    ("crammer_singer-hard", "generalized_cross_entropy-soft", "early_learning-hard"),
)
def test_compiled_in_one_graph(loss: object, target: Tensor) -> None:
    def everything(scores: Tensor, target: Tensor) -> Tensor:
        return loss(scores, target) + loss(scores, target, weight=WEIGHT, label_smoothing=0.1)

    compiled = torch.compile(everything, fullgraph=True, backend="aot_eager")
    same(value_and_gradient(compiled, SCORES, target), value_and_gradient(everything, SCORES, target))


def test_modules_compiled_in_one_graph() -> None:
    module = BaselineLoss("generalized_cross_entropy", WEIGHT, q=0.4)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    same(value_and_gradient(compiled, SCORES, INDEX), value_and_gradient(module, SCORES, INDEX))
    places = torch.tensor([3, 0, 5, 6, 1, 2])
    results = []
    for compile_it in (False, True):
        memory = EarlyLearning(7, 5).double()
        criterion = torch.compile(memory, fullgraph=True, backend="aot_eager") if compile_it else memory
        first = value_and_gradient(criterion, SCORES, INDEX, places)
        results.append((*first, *value_and_gradient(criterion, -SCORES, INDEX, places), memory.history.clone()))
    same(*results)
    assert (results[0][-1][4] == 0).all() and (results[0][-1][3] > 0).all()


@every_loss
@targets
def test_vmap_gives_each_sample_its_gradient(loss: object, target: Tensor) -> None:
    target = target if target.is_floating_point() else target.clamp(min=0)
    ours = vmap(grad(loss))(SCORES, target)
    expected = torch.stack([value_and_gradient(loss, *pair)[1] for pair in zip(SCORES, target, strict=True)])
    torch.testing.assert_close(ours, expected, rtol=1e-10, atol=1e-12)


@every_loss
@targets
def test_forward_mode(loss: object, target: Tensor) -> None:
    expected = (value_and_gradient(loss, SCORES, target)[1] * DIRECTION).sum()
    torch.testing.assert_close(jvp(lambda s: loss(s, target), (SCORES,), (DIRECTION,))[1], expected)
    with forward_ad.dual_level():
        dual = forward_ad.unpack_dual(loss(forward_ad.make_dual(SCORES, DIRECTION), target))
        torch.testing.assert_close(dual.tangent, expected)


@every_loss
def test_derivative_with_respect_to_the_target_is_the_loss_of_each_label(loss: object) -> None:
    slope = grad(lambda t: loss(SCORES, t, reduction="sum"))(torch.zeros(6, 5, dtype=torch.float64))
    each = torch.stack([loss(SCORES, torch.full((6,), y), reduction="none") for y in range(5)], 1)
    torch.testing.assert_close(slope, each)
