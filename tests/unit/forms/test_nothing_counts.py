"""Rows that count for nothing have no gradient, whatever their scores; and torch.func sees through soft targets."""

import pytest
import torch

from linearcore import Exponential, LinearCore, binary_loss, multiclass_loss

FORMS = ("pairwise", "centered", "logodds")
TARGET = torch.tensor([0, -100])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16), ids=str)
def test_an_ignored_row_without_any_class(form: str, dtype: torch.dtype) -> None:
    scores = torch.tensor([[1.0, 0.0, 2.0], [-torch.inf] * 3], dtype=dtype, requires_grad=True)
    multiclass_loss(scores, TARGET, form=form, backend="eager").backward()
    assert scores.grad is not None and scores.grad.isfinite().all()
    assert (scores.grad[1] == 0).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("how", ("ignored", "weightless"))
def test_a_row_whose_slopes_overflow(form: str, how: str) -> None:
    scores = torch.tensor([[1.0, 0.0, 2.0], [0.0, 400.0, -200.0]], requires_grad=True)
    target = TARGET if how == "ignored" else torch.tensor([0, 2])
    weight = None if how == "ignored" else torch.tensor([1.0, 0.0])
    loss = multiclass_loss(scores, target, form=form, surrogate=Exponential(), sample_weight=weight, backend="eager")
    loss.backward()
    assert loss.isfinite() and scores.grad is not None and scores.grad.isfinite().all()
    assert (scores.grad[1] == 0).all()


def test_a_binary_element_whose_slope_overflows() -> None:
    scores = torch.tensor([1.0, -200.0], requires_grad=True)
    target, weight = torch.tensor([1, 1]), torch.tensor([1.0, 0.0])
    binary_loss(scores, target, surrogate=Exponential(), sample_weight=weight).backward()
    assert scores.grad is not None and scores.grad.isfinite().all() and scores.grad[1] == 0


@pytest.mark.parametrize("form", FORMS)
def test_gradients_of_soft_targets_through_vmap(form: str) -> None:
    """The gradient with respect to a class without share is its loss, inside a transform as outside of one."""
    scores = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    target = torch.eye(3, dtype=torch.float64)[[0, 2, 1, 0]]

    def loss(row: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
        return multiclass_loss(row, share, form=form, surrogate=LinearCore())

    found = torch.func.grad(lambda q: torch.func.vmap(loss)(scores, q).sum())(target)
    leaf = target.clone().requires_grad_()
    torch.stack([loss(row, share) for row, share in zip(scores, leaf, strict=True)]).sum().backward()
    torch.testing.assert_close(found, leaf.grad)
    _, forward = torch.func.jvp(lambda s: torch.func.vmap(loss)(s, target), (scores,), (torch.ones_like(scores),))
    torch.testing.assert_close(forward, torch.zeros_like(forward), atol=1e-12, rtol=0)  # Shifts change nothing.
