"""A new member of an axis is one class in one file: here, defined in a test, it works wherever the library's own do."""

import math
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import linearcore as lc
from linearcore.analysis import certify, transform
from linearcore.forms import Form, Labels, LinearMargins
from linearcore.proposals import Proposal, Uniform
from linearcore.surrogates import Surrogate

GENERATOR = torch.Generator().manual_seed(0)
SCORES = torch.randn(5, 4, dtype=torch.float64, generator=GENERATOR)
TARGET = torch.tensor([0, 3, -100, 2, 2])


@dataclass(frozen=True)
class Strongest(Form):
    """φ(s_y − max_{v≠y} s_v): the margin to the strongest competitor."""

    name: ClassVar[str] = "strongest"

    def hard_losses(self, surrogate: Surrogate, scores: Tensor, labels: Labels) -> Tensor:
        assert labels.index is not None
        margin = self.decision_margin(scores, labels.index)
        delta = labels.label_margin(scores)
        return surrogate._value(margin if delta is None else margin - delta.squeeze(-1))


def by_hand(scores: Tensor, label: int) -> Tensor:
    others = torch.cat([scores[:label], scores[label + 1 :]])
    return lc.LinearCore().value(scores[label] - others.max())


@pytest.mark.parametrize("backend", ("auto", "reference", "eager"))
def test_a_form_in_losses(backend: str) -> None:
    leaf = SCORES.clone().requires_grad_()
    losses = lc.multiclass_loss(leaf, TARGET, form=Strongest(), reduction="none", backend=backend)
    expected = torch.stack([by_hand(row, y) if y >= 0 else row.new_zeros(()) for row, y in zip(SCORES, TARGET, strict=True)])
    torch.testing.assert_close(losses.detach(), expected)
    # Probabilities and label smoothing are expectations over labels.
    share = F.softmax(SCORES.flip(0), -1)
    soft = lc.multiclass_loss(leaf, share, form=Strongest(), reduction="none", backend=backend)
    every = torch.stack([torch.stack([by_hand(row, y) for y in range(4)]) for row in SCORES])
    torch.testing.assert_close(soft.detach(), (share * every).sum(-1))
    assert torch.autograd.gradcheck(lambda s: lc.multiclass_loss(s, TARGET, form=Strongest(), backend=backend), leaf)
    assert torch.autograd.gradgradcheck(lambda s: lc.multiclass_loss(s, share, form=Strongest(), backend=backend), leaf)


def test_a_form_in_modules_and_heads() -> None:
    lc.LinearCoreLoss(form=Strongest())(SCORES.float().requires_grad_(), TARGET).backward()
    emissions, tags = SCORES.float().unsqueeze(1).requires_grad_(), torch.tensor([[0], [3], [1], [2], [2]])
    for options in ({}, {"rank": 2}, {"unary": 0.5}):
        head = lc.LinearCoreChain(4, form=Strongest(), **options)
        head.loss(emissions, tags).backward()
        assert float(head.confidence(emissions.detach()).min()) >= 0


def test_probabilities_without_a_share_of_a_masked_class() -> None:
    scores = SCORES.clone()
    scores[0, 1] = scores[3, 3] = -math.inf
    share = F.softmax(SCORES.flip(0), -1).masked_fill(scores == -math.inf, 0.0)
    for surrogate in (lc.LinearCore(), lc.SquaredHinge(), lc.Exponential()):
        leaf, weight = scores.clone().requires_grad_(), torch.ones(4, dtype=torch.float64, requires_grad=True)
        lc.multiclass_loss(leaf, share / share.sum(-1, keepdim=True), form=Strongest(), surrogate=surrogate).backward()
        lc.multiclass_loss(scores, share, form=Strongest(), surrogate=surrogate, weight=weight).backward()
        assert leaf.grad.isfinite().all() and weight.grad.isfinite().all()


@dataclass(frozen=True)
class Against(Form):
    """φ(t · (s_y − mean s)), with a factor t that may be trained."""

    name: ClassVar[str] = "against"
    factor: Tensor | float = 1.0

    def hard_losses(self, surrogate: Surrogate, scores: Tensor, labels: Labels) -> Tensor:
        assert labels.index is not None
        own = scores.gather(-1, labels.index.unsqueeze(-1)).squeeze(-1)
        return surrogate._value(self.factor * (own - scores.mean(-1)))

    def margins(self, own: Tensor, candidates: Tensor, basis: Tensor) -> LinearMargins:
        eye = torch.eye(len(basis), dtype=basis.dtype)
        return LinearMargins(eye[own], basis, eye[own] - eye[candidates].mean(1))


def test_what_a_form_trains_gets_a_gradient() -> None:
    for backend in ("auto", "reference"):
        factor = torch.ones((), requires_grad=True)
        lc.multiclass_loss(SCORES, TARGET, form=Against(factor), backend=backend).backward()
        assert factor.grad is not None and factor.grad != 0
    with pytest.raises(ValueError, match="`backend` must be able to differentiate all inputs"):
        lc.multiclass_loss(SCORES, TARGET, form=Against(factor), backend="eager")


def test_a_form_in_the_consistency_lab() -> None:
    found = certify(lc.LinearCore(), Against(), 3, starts=30)
    assert found.linear_bound.verdict in ("supported", "refuted")
    with pytest.raises(ValueError, match="`form` must declare its margins to be analysed, got 'strongest'"):
        certify(lc.LinearCore(), Strongest(), 3)


def test_a_form_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="`form` must not need all classes when it is sampled, got 'strongest'"):
        lc.sampled_multiclass_loss(
            SCORES, torch.randn(9, 4).double(), TARGET, form=Strongest(), proposal=Uniform(), num_samples=3
        )
    with pytest.raises(ValueError, match="`normalize` must be None or False for form='strongest'"):
        lc.multiclass_loss(SCORES, TARGET, form=Strongest(), normalize=True)


@dataclass(frozen=True)
class Elliptic(Surrogate):
    """φ(u) = √(1 + (1 − u)²) + 1 − u: smooth, convex and decreasing."""

    lipschitz: ClassVar[float] = 2.0
    smoothness: ClassVar[float] = 1.0
    is_convex: ClassVar[bool] = True
    is_c1: ClassVar[bool] = True
    is_c2: ClassVar[bool] = True
    is_monotone: ClassVar[bool] = True
    vanishes: ClassVar[bool] = True
    bounds_zero_one: ClassVar[bool] = True
    knots: ClassVar[tuple[float, ...]] = ()
    core: ClassVar[None] = None

    def _value(self, margin: Tensor) -> Tensor:
        z = 1 - margin
        return torch.where(z > 0, torch.hypot(z, torch.ones_like(z)) + z, 1 / (torch.hypot(z, torch.ones_like(z)) - z))

    def _derivative(self, margin: Tensor) -> Tensor:
        z = 1 - margin
        return -z / torch.hypot(z, torch.ones_like(z)) - 1

    def _curvature(self, margin: Tensor) -> Tensor:
        return (1 + (1 - margin) ** 2) ** -1.5


@pytest.mark.parametrize("form", ("pairwise", "centered", "logodds"))
def test_a_surrogate(form: str) -> None:
    leaf = SCORES.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda s: lc.multiclass_loss(s, TARGET, surrogate=Elliptic(), form=form), leaf)
    lc.LinearCoreChain(4, surrogate=Elliptic(), form=form).double().loss(leaf.unsqueeze(1), TARGET.unsqueeze(1)).backward()
    assert certify(Elliptic(), form, 2, starts=20).linear_bound.verdict in ("supported", "refuted")
    assert float(transform(Elliptic(), 0.5)) > 0


@dataclass(frozen=True, kw_only=True)
class Halves(Proposal):
    """Half of the draws from the first half of the classes, half from the others."""

    def sample(self, size: tuple[int, ...], num_classes: int, like: Tensor, generator: torch.Generator | None) -> Tensor:
        first = (num_classes + 1) // 2
        drawn = torch.rand((2, *size), generator=generator, device=like.device, dtype=torch.float64)
        low = (drawn[1] * first).long()
        high = first + (drawn[1] * (num_classes - first)).long()
        return torch.where((drawn[0] < 0.5) | (num_classes == 1), low, high).clamp(max=num_classes - 1)

    def log_prob(self, index: Tensor, num_classes: int) -> Tensor:
        first = (num_classes + 1) // 2
        sizes = torch.where(index < first, float(first), float(num_classes - first))
        return -sizes.log() - math.log(2)


def test_a_proposal() -> None:
    weight, target = torch.randn(7, 4, dtype=torch.float64, generator=GENERATOR), torch.tensor([0, 6, 3, 2, 2])
    options = {"form": lc.Pairwise(normalize=False), "reduction": "sum"}
    exact = lc.multiclass_loss(SCORES @ weight.t(), target, **options)
    stream = torch.Generator().manual_seed(1)
    draws = torch.stack([
        lc.sampled_multiclass_loss(SCORES, weight, target, proposal=Halves(), num_samples=20, generator=stream, **options)
        for _ in range(400)
    ])  # fmt: skip
    assert abs(float(draws.mean() - exact)) < 4 * float(draws.std()) / 20
    head, layer = lc.LinearCoreChain(7), nn.Linear(4, 7)
    head.sampled_loss(SCORES.float().unsqueeze(1), layer, target.unsqueeze(1), proposal=Halves(), num_samples=3).backward()
