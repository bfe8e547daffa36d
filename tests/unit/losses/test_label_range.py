"""A label out of range raises on a CPU. Where numbers cannot be read it makes the loss NaN, never a finite number."""

import functools

import pytest
import torch
from torch import Tensor

import linearcore as lc
from linearcore.proposals import InBatch, Uniform
from tests.cases import each

FORMS = ("pairwise", "centered", "logodds")


def scores(*size: int) -> Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(0)).requires_grad_()


@pytest.mark.parametrize("backend", ("auto", "reference", "eager"))
@pytest.mark.parametrize("smoothing", (0.0, 0.1))
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wrong", (-1, 4, 10**9))
def test_a_cpu_refuses_it(wrong: int, form: str, smoothing: float, backend: str) -> None:
    with pytest.raises(ValueError, match=r"`target` must be in \[0, 4\).*got"):
        lc.multiclass_loss(scores(3, 4), torch.tensor([0, wrong, 3]), form=form, label_smoothing=smoothing, backend=backend)


@pytest.mark.parametrize("reduction", ("mean", "sum"))
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("wrong", (-1, 4))
def test_under_a_transform_the_loss_and_its_gradient_are_nan(wrong: int, form: str, reduction: str) -> None:
    target = torch.tensor([0, wrong, 3])
    gradient, loss = torch.func.grad_and_value(
        lambda given: lc.multiclass_loss(given, target, form=form, reduction=reduction)
    )(scores(3, 4).detach())
    assert loss.isnan() and gradient[1].isnan().all()
    # An ignored label is no label out of range.
    fine = torch.func.vmap(lambda given: lc.multiclass_loss(given, torch.tensor([0, -100, 3]), form=form))(scores(2, 3, 4))
    assert fine.isfinite().all()


@each("form", {form: form for form in FORMS}, ("logodds",))
def test_compiled_it_is_nan(form: str) -> None:
    compiled = torch.compile(functools.partial(lc.multiclass_loss, form=form, reduction="none"), fullgraph=True)
    assert compiled(scores(3, 4), torch.tensor([0, -1, 3])).isnan().tolist() == [False, True, False]


@pytest.mark.parametrize("proposal", (Uniform(), InBatch()), ids=str)
@pytest.mark.parametrize("wrong", (-1, 6))
def test_a_sampled_loss_refuses_it(wrong: int, proposal: object) -> None:
    weight = scores(6, 2)
    with pytest.raises(ValueError, match=r"`target` must be in \[0, 6\)"):
        lc.sampled_multiclass_loss(scores(3, 2), weight, torch.tensor([0, wrong, 3]), proposal=proposal, num_samples=4)


SIGNS = torch.tensor([1, -1, 1])


@pytest.mark.parametrize("backend", ("auto", "reference", "eager"))
@pytest.mark.parametrize(
    ("target", "signed"),
    ((SIGNS, False), (SIGNS.float(), False), (SIGNS + 1, False), (torch.tensor([255, 0, 1], dtype=torch.uint8), False),
     (torch.tensor([0.2, 1.1, 0.0]), False), (SIGNS.abs() - 1, True), (1.5 * SIGNS, True)),
)  # fmt: skip
def test_a_cpu_refuses_binary_targets(target: Tensor, signed: bool, backend: str) -> None:
    with pytest.raises(ValueError, match=r"`target` must be in .*got target\["):
        lc.binary_loss(scores(3), target, signed=signed, backend=backend)
    assert lc.binary_loss(scores(3), torch.tensor([1.002, 1, 0]), backend=backend).isfinite()  # Rounding is no error.


def test_binary_targets_that_cannot_be_read_make_the_loss_nan() -> None:
    compiled = torch.compile(functools.partial(lc.binary_loss, reduction="none"), backend="aot_eager")
    given = scores(3)
    losses = compiled(given, SIGNS)
    losses.sum().backward()
    assert losses.isnan().tolist() == [False, True, False] == given.grad.isnan().tolist()


def test_ignored_binary_targets_may_be_anything() -> None:
    weight, given = torch.tensor([1.0, 0.0, 1.0]), scores(3)
    masked = lc.binary_loss(given, torch.tensor([0, -100, 1]), sample_weight=weight)
    assert torch.equal(masked, lc.binary_loss(given, torch.tensor([0, 1, 1]), sample_weight=weight))
    assert lc.binary_loss(given, torch.ones(3, dtype=torch.uint8), signed=True).isfinite()  # −1 is 255 as uint8.
