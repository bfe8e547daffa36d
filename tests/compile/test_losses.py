"""Losses under torch.compile(fullgraph=True), torch.func and forward mode: the numbers of eager mode.

Most cases stop at the traced graph (`aot_eager`), which is where a loss can go wrong; a few go through inductor's code
generation as well.
"""

import shutil
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jvp, vmap

from linearcore import (
    BinaryLinearCoreLoss,
    Form,
    LinearCore,
    LinearCoreLoss,
    Surrogate,
    binary_loss,
    linear_multiclass_loss,
    multiclass_loss,
)
from tests.cases import a_few_pairs, cross, each

every_form = pytest.mark.parametrize("form", ("pairwise", "centered", "logodds"))
needs_compiler = pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="no C++ compiler")

GENERATOR = torch.Generator().manual_seed(0)
SCORES = 2 * torch.randn(6, 5, dtype=torch.float64, generator=GENERATOR)
INDEX = torch.tensor([0, 3, -100, 1, 4, 2])
PROBABILITY = torch.randn(6, 5, dtype=torch.float64, generator=GENERATOR).softmax(1)
PER_CLASS = torch.randn(5, dtype=torch.float64, generator=GENERATOR).exp()
PER_SAMPLE = torch.randn(6, dtype=torch.float64, generator=GENERATOR).exp()
DIRECTION = torch.randn(6, 5, dtype=torch.float64, generator=GENERATOR)

EVERYTHING = {"weight": PER_CLASS, "class_margin": PER_CLASS, "sample_weight": PER_SAMPLE, "label_smoothing": 0.1}


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def same_compiled(loss: Callable[..., Tensor], *arguments: Tensor, backend: str, rtol: float = 1e-11) -> None:
    """Value and gradient with respect to the first argument, compiled and not."""
    compiled = torch.compile(loss, fullgraph=True, backend=backend)
    results = []
    for function in (loss, compiled):
        leaf = arguments[0].clone().requires_grad_()
        value = function(leaf, *arguments[1:])
        results.append((value.detach(), *torch.autograd.grad(value.sum(), leaf)))
    for eager, ours in zip(*results, strict=True):
        assert ours.dtype == eager.dtype
        torch.testing.assert_close(ours, eager, rtol=rtol, atol=rtol)


@each(
    ("form", "target", "options"),
    {
        f"{form}-{kind}-{asked}": (form, target, options)
        for form in ("pairwise", "centered", "logodds")
        for kind, target in (("hard", INDEX), ("soft", PROBABILITY))
        for asked, options in (("plain", {}), ("everything", EVERYTHING))
    },
    ("pairwise-soft-everything", "centered-hard-everything", "logodds-hard-plain", "logodds-soft-everything"),
)
def test_multiclass_loss(form: str, target: Tensor, options: dict[str, object]) -> None:
    same_compiled(lambda s, t: multiclass_loss(s, t, form=form, **options), SCORES, target, backend="aot_eager")


@each("form", {form: form for form in ("pairwise", "centered", "logodds")}, ("pairwise",))
@pytest.mark.parametrize("target", (INDEX.reshape(2, 3), PROBABILITY.reshape(2, 3, 5)), ids=("hard", "soft"))
def test_linear_multiclass_loss(form: str, target: Tensor) -> None:
    weight = torch.randn(5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    hidden = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    options = {"form": form, "linear_bias": PER_CLASS, "chunk_bytes": 1}
    same_compiled(lambda h, w, t: linear_multiclass_loss(h, w, t, **options), hidden, weight, target, backend="aot_eager")


@needs_compiler
def test_multiclass_loss_through_inductor() -> None:
    """float32 as in training, rows with several dimensions, a class that is missing."""
    scores = SCORES.float().repeat(4, 1).reshape(4, 6, 5).movedim(2, 1).clone()
    scores[0, 4] = -torch.inf
    target = INDEX.repeat(4).reshape(4, 6).masked_fill(INDEX == 4, 0)
    same_compiled(multiclass_loss, scores, target, backend="inductor", rtol=1e-5)


@cross(phi={"gamma": LinearCore("gamma"), "quartic": LinearCore("quartic", sides=2)}, reduction=("none", "sum"))
def test_other_surrogates_and_reductions(phi: Surrogate, reduction: str) -> None:
    def loss(scores: Tensor, target: Tensor) -> Tensor:
        return multiclass_loss(scores, target, surrogate=phi, form="pairwise", reduction=reduction)

    same_compiled(loss, SCORES, INDEX, backend="aot_eager")


@pytest.mark.parametrize("target", (PROBABILITY > 0.2, PROBABILITY), ids=("sure", "soft"))
def test_binary_loss(target: Tensor) -> None:
    def loss(scores: Tensor, target: Tensor) -> Tensor:
        return binary_loss(scores, target, pos_weight=PER_CLASS, sample_weight=PER_SAMPLE[:, None])

    same_compiled(loss, SCORES, target, backend="aot_eager")


def test_modules() -> None:
    same_compiled(LinearCoreLoss(PER_CLASS, form="pairwise"), SCORES, INDEX, backend="aot_eager")
    same_compiled(BinaryLinearCoreLoss(PER_CLASS), SCORES, PROBABILITY, backend="aot_eager")


@needs_compiler
def test_a_training_step_through_inductor() -> None:
    """A network and its loss in one graph, half precision inside autocast."""
    torch.manual_seed(0)
    network, criterion = torch.nn.Linear(5, 3), LinearCoreLoss(form="pairwise")

    def step(inputs: Tensor, target: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return criterion(network(inputs), target)

    eager = step(SCORES.float(), INDEX.clamp(0, 2))
    compiled = torch.compile(step, fullgraph=True)(SCORES.float(), INDEX.clamp(0, 2))
    assert compiled.dtype == eager.dtype == torch.float32
    gradients = [torch.autograd.grad(loss, network.weight)[0] for loss in (eager, compiled)]
    torch.testing.assert_close(compiled, eager, rtol=2e-2, atol=2e-2)
    torch.testing.assert_close(*gradients, rtol=5e-2, atol=2e-2)


def test_sizes_may_change_without_compiling_again() -> None:
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(multiclass_loss, fullgraph=True, backend=counter, dynamic=True)
    compiled(SCORES, INDEX)
    frames = counter.frame_count
    for rows in (2, 3, 5):
        torch.testing.assert_close(compiled(SCORES[:rows], INDEX[:rows]), multiclass_loss(SCORES[:rows], INDEX[:rows]))
    assert counter.frame_count == frames


@a_few_pairs
@pytest.mark.parametrize("target", (INDEX.clamp(min=0), PROBABILITY), ids=("hard", "soft"))
def test_func_grad_and_jvp(phi: Surrogate, form: Form, target: Tensor) -> None:
    def loss(scores: Tensor) -> Tensor:
        return multiclass_loss(scores, target, surrogate=phi, form=form, class_margin=PER_CLASS)

    leaf = SCORES.clone().requires_grad_()
    (expected,) = torch.autograd.grad(loss(leaf), leaf)
    torch.testing.assert_close(grad(loss)(SCORES), expected, rtol=1e-11, atol=1e-12)
    value, tangent = jvp(loss, (SCORES,), (DIRECTION,))
    torch.testing.assert_close(value, loss(SCORES), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(tangent, (expected * DIRECTION).sum(), rtol=1e-10, atol=1e-11)
    with forward_ad.dual_level():
        dual = forward_ad.unpack_dual(loss(forward_ad.make_dual(SCORES, DIRECTION)))
        torch.testing.assert_close(dual.tangent, tangent, rtol=1e-12, atol=1e-12)


@every_form
def test_hessian(form: str) -> None:
    """Symmetric, positive semidefinite, blind to shifts, and what double backward gives."""

    def loss(row: Tensor) -> Tensor:
        return multiclass_loss(row, torch.tensor(1), surrogate=LinearCore("gamma", 0.3), form=form)

    curvature = hessian(loss)(SCORES[0])
    torch.testing.assert_close(curvature, torch.autograd.functional.hessian(loss, SCORES[0]), rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(curvature, curvature.T)
    assert torch.linalg.eigvalsh(curvature)[0] >= -1e-12
    assert curvature.sum(1).abs().max() <= 1e-12
    assert curvature.abs().max() > 1e-3


@every_form
@pytest.mark.parametrize("target", (INDEX.clamp(min=0), PROBABILITY), ids=("hard", "soft"))
def test_vmap_gives_each_sample_its_gradient(form: str, target: Tensor) -> None:
    """Per-sample gradients of a network's weights, as differential privacy wants them."""
    torch.manual_seed(0)
    network = torch.nn.Linear(5, 5).double()
    parameters = {name: parameter.detach() for name, parameter in network.named_parameters()}

    def loss(parameters: dict[str, Tensor], sample: Tensor, label: Tensor) -> Tensor:
        return multiclass_loss(functional_call(network, parameters, sample), label, form=form)

    gradients = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, SCORES, target)
    for row, (sample, label) in enumerate(zip(SCORES, target, strict=True)):
        network.zero_grad()
        multiclass_loss(network(sample), label, form=form).backward()
        for name, parameter in network.named_parameters():
            torch.testing.assert_close(gradients[name][row], parameter.grad, rtol=1e-10, atol=1e-12)


def test_vmap_over_batches_of_binary_losses() -> None:
    batches, targets = SCORES.reshape(3, 2, 5), PROBABILITY.reshape(3, 2, 5)
    mapped = vmap(binary_loss)(batches, targets)
    torch.testing.assert_close(mapped, torch.stack([binary_loss(*pair) for pair in zip(batches, targets, strict=True)]))
    curvature = hessian(lambda scores: binary_loss(scores, targets[0], reduction="sum"))(batches[0]).reshape(10, 10)
    torch.testing.assert_close(curvature, curvature.diagonal().diag())


def test_derivative_with_respect_to_the_target_under_func() -> None:
    """A mixture is linear in its target: the derivative is the loss of each label, shares of exactly 0 included."""
    target = torch.zeros(6, 5, dtype=torch.float64)
    for form in ("pairwise", "centered", "logodds"):
        slope = grad(lambda t, form=form: multiclass_loss(SCORES, t, form=form, reduction="sum"))(target)
        labels = [torch.full((6,), y) for y in range(5)]
        every = torch.stack([multiclass_loss(SCORES, label, form=form, reduction="none") for label in labels], 1)
        torch.testing.assert_close(slope, every, rtol=1e-11, atol=1e-12)
