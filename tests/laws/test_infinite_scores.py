"""Infinite scores and NaN: one rule for all losses.

−inf masks a class out and is an error for the label's class; +inf and NaN are errors. Without `validate` the loss of such a
row is inf or NaN, never a finite number, and other rows do not change. With `validate` the message has the index and value.
"""

import functools
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from linearcore import (
    BinaryLinearCoreLoss,
    Exponential,
    Hinge,
    LinearCore,
    Surrogate,
    binary_loss,
    multiclass_loss,
    sampled_multiclass_loss,
)  # fmt: skip
from linearcore.losses import robust_loss
from linearcore.losses.baselines import BASELINES, early_learning_loss
from linearcore.proposals import Uniform

INF, NAN = math.inf, math.nan
GOOD = [0.5, 1.0, -1.0, 0.0]

#: Scores of a row whose label is class 0, and the index and value in the message.
BAD = {
    "+inf at the label": ([INF, 1.0, -1.0, 0.0], r"scores\[1, 0\] = inf"),
    "+inf elsewhere": ([0.5, 1.0, INF, 0.0], r"scores\[1, 2\] = inf"),
    "+inf at both": ([INF, 1.0, INF, 0.0], r"scores\[1, 0\] = inf"),
    "+inf at the label, others masked": ([INF, -INF, -INF, -INF], r"scores\[1, 0\] = inf"),
    "NaN at the label": ([NAN, 1.0, -1.0, 0.0], r"scores\[1, 0\] = nan"),
    "NaN elsewhere": ([0.5, 1.0, -1.0, NAN], r"scores\[1, 3\] = nan"),
    "label masked": ([-INF, 1.0, -1.0, 0.0], r"= (0|-inf) \(1 of"),
    "all masked": ([-INF] * 4, r"= (0|-inf) \([14] of"),
    "label masked, +inf elsewhere": ([-INF, 1.0, INF, 0.0], r"scores\[1, 2\] = inf"),
}


def elr(scores: Tensor, target: Tensor, **options: object) -> Tensor:
    return early_learning_loss(scores, target, torch.full_like(scores, 0.25), **options)[0]


LOSSES: dict[str, Callable[..., Tensor]] = {
    f"{form}-{backend}-{name}": functools.partial(multiclass_loss, form=form, backend=backend, surrogate=surrogate)
    for form in ("pairwise", "centered", "logodds")
    for backend in ("reference", "eager", "auto")
    for name, surrogate in {"core": LinearCore(), "hinge": Hinge(), "exponential": Exponential()}.items()
}
LOSSES |= {
    f"robust-{backend}": functools.partial(robust_loss, backend=backend) for backend in ("reference", "eager", "auto")
}
LOSSES |= {name: baseline for name, baseline in BASELINES.items()} | {"elr": elr}

TARGETS = {
    "index": (torch.tensor([1, 0, 2]), {}),
    "probability": (torch.eye(4)[[1, 0, 2]], {}),
    "smoothed": (torch.tensor([1, 0, 2]), {"label_smoothing": 0.1}),
}


@pytest.mark.parametrize("row", BAD)
@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("name", LOSSES)
def test_the_loss_is_not_finite_and_other_rows_do_not_change(name: str, kind: str, row: str) -> None:
    loss, (target, options) = LOSSES[name], TARGETS[kind]
    scores = torch.tensor([[1.0, 0.2, 0.3, 0.4], BAD[row][0], GOOD])
    found = loss(scores, target, reduction="none", **options)
    assert not found[1].isfinite()
    without = loss(scores[[0, 2]], target[[0, 2]], reduction="none", **options)
    torch.testing.assert_close(found[[0, 2]], without)
    with pytest.raises(ValueError, match=BAD[row][1]):
        loss(scores, target, validate=True, **options)


@pytest.mark.parametrize("name", LOSSES)
def test_a_masked_class_that_is_not_the_label_is_fine(name: str) -> None:
    scores = torch.tensor([GOOD, [0.5, 1.0, -INF, 0.0]])
    for target in (torch.tensor([1, 0]), torch.eye(4)[[1, 0]]):
        assert LOSSES[name](scores, target, validate=True).isfinite()


@pytest.mark.parametrize("name", [name for name in LOSSES if "exponential" not in name])
def test_all_classes_of_an_ignored_row_may_be_masked(name: str) -> None:
    scores = torch.tensor([GOOD, [-INF] * 4], requires_grad=True)
    loss = LOSSES[name](scores, torch.tensor([1, -100]), validate=True)
    (gradient,) = torch.autograd.grad(loss, scores)
    assert loss.isfinite()
    assert gradient.isfinite().all() and (gradient[1] == 0).all()


def test_a_masked_class_without_class_weight_is_no_label() -> None:
    scores, weight = torch.tensor([[0.5, -INF, 1.0]]), torch.tensor([1.0, 0.0, 1.0])
    for target in (torch.tensor([[0.5, 0.25, 0.25]]), torch.tensor([0])):
        loss = multiclass_loss(scores, target, weight=weight, label_smoothing=0.1, validate=True)
        assert loss.isfinite()


@pytest.mark.parametrize("surrogate", (LinearCore(), Hinge(), Exponential()), ids=str)
@pytest.mark.parametrize("backend", ("reference", "eager", "auto"))
@pytest.mark.parametrize("score", (INF, -INF, NAN))
def test_binary_scores_are_finite(surrogate: Surrogate, backend: str, score: float) -> None:
    scores = torch.tensor([0.5, score, -1.0])
    for target in (torch.tensor([1, 1, 0]), torch.tensor([0, 0, 1]), torch.tensor([0.2, 1.0, 0.0])):
        found = binary_loss(scores, target, surrogate=surrogate, backend=backend, reduction="none")
        assert found.isfinite().tolist() == [True, False, True]
    with pytest.raises(ValueError, match=rf"`scores` must be finite, got scores\[1\] = {score:g} "):
        BinaryLinearCoreLoss(validate=True)(scores, torch.tensor([1, 1, 0]))


@pytest.mark.parametrize("form", ("pairwise", "logodds"))
@pytest.mark.parametrize("bias", (INF, -INF, NAN))
def test_a_sampled_loss_of_an_infinite_label_is_not_finite(form: str, bias: float) -> None:
    linear_bias = torch.tensor([0.0, bias, 0.0, 0.0])
    found = sampled_multiclass_loss(
        torch.ones(2, 3), torch.ones(4, 3), torch.tensor([1, -100]), linear_bias=linear_bias, form=form,
        proposal=Uniform(), num_samples=3, reduction="none",
    )  # fmt: skip
    assert not found[0].isfinite() and found[1] == 0


@pytest.mark.parametrize("form", ("pairwise", "centered", "logodds"))
def test_transforms_follow_the_rule(form: str) -> None:
    scores = torch.tensor([[INF, 0.0, 1.0], [-INF, 0.0, 1.0], [0.0, 1.0, 2.0]])
    found = torch.func.vmap(lambda row: multiclass_loss(row, torch.tensor(0), form=form))(scores)
    assert found.isfinite().tolist() == [False, False, True]


@pytest.mark.parametrize("form", ("logodds", "pairwise", "centered"))
def test_no_rows_where_the_host_cannot_look_at_the_scores(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU infinite scores are marked block by block, and an empty batch has no blocks."""
    monkeypatch.setattr("linearcore.losses._infinite.is_on_host", lambda tensor: False)
    scores, target = torch.zeros(0, 4, requires_grad=True), torch.zeros(0, dtype=torch.long)
    losses = multiclass_loss(scores, target, form=form, label_smoothing=0.2, reduction="none")
    assert losses.shape == (0,)
    assert torch.autograd.grad(losses.sum(), scores)[0].shape == (0, 4)
