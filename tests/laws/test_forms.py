"""What is true of every allowed surrogate × form as a function of the scores, read back on instances.

The definitions are those of `docs/notation.md`.

Laws: equal to the definition; convex; C1 and C2 exactly where the surrogate is; gradients bounded as its Lipschitz
constant implies, and the bound reached; blind to a shift of all scores and to the order of the classes; at two classes
the binary loss; in the core the pairwise gradient is n times the centered one, and the losses of all labels add up to a
constant, the condition for tolerance to uniform label noise. What is *not* true of `pairwise`, the paper's linear
bound, is in tests/golden/test_forms.py (`docs/reading-the-paper-with-care.md` (a)).
"""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from linearcore.losses import Centered, Form, LogOdds, Pairwise, binary_loss, multiclass_loss
from linearcore.surrogates import Surrogate
from tests.cases import PAIRS, SHORT, SURROGATES, allows, each, every_pair
from tests.oracles import row_losses

WITH_CORE = {name: phi for name, phi in SURROGATES.items() if phi.core is not None}
every_core = each("phi", WITH_CORE, (name for name in SHORT if name in WITH_CORE))
batches_drawn = settings(max_examples=8)

num_classes = st.integers(2, 6)
scales = st.sampled_from((0.1, 1.0, 5.0, 40.0))
seeds = st.integers(0, 2**31)


def drawn(shape: tuple[int, ...], scale: float = 1.0, seed: int = 0) -> Tensor:
    return scale * torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def labels_for(scores: Tensor) -> Tensor:
    """Every class in turn."""
    return torch.arange(scores.shape[0]) % scores.shape[1]


def losses(phi: Surrogate, form: Form, scores: Tensor, target: Tensor) -> Tensor:
    return multiclass_loss(scores, target, surrogate=phi, form=form, reduction="none")


def value_and_gradient(phi: Surrogate, form: Form, scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    scores = scores.detach().requires_grad_()
    value = losses(phi, form, scores, target)
    return value.detach(), torch.autograd.grad(value.sum(), scores)[0]


def scores_at(form: Form, knot: float, rest: Tensor) -> Tensor:
    """One row with label 0 whose margin is `knot`: for sums over competitors the margin to class 1."""
    n = len(rest) + 1
    if isinstance(form, Centered):  # s̄ − s_1 = knot, where s̄ holds s_1 too
        others = rest.sum()
        return torch.cat([rest[:1], ((others / n - knot) / (1 - 1 / n)).reshape(1), rest[1:]])
    reference = torch.logsumexp(rest, 0) if isinstance(form, LogOdds) else rest[0]
    return torch.cat([(reference + knot).reshape(1), rest])


def jumps(phi: Surrogate, form: Form, knot: float) -> tuple[float, float]:
    """How far first and second derivative along a line through a knot differ on its two sides."""
    middle, direction = scores_at(form, knot, drawn((3,), 0.3, 1)), drawn((4,), 1.0, 2)
    t = torch.tensor([-1e-6, 1e-6], dtype=torch.float64, requires_grad=True)
    value = losses(phi, form, middle + t[:, None] * direction, torch.zeros(2, dtype=torch.long))
    (first,) = torch.autograd.grad(value.sum(), t, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), t)
    return float(first.detach().diff().abs()), float(second.diff().abs())


@every_pair
def test_is_the_definition_row_by_row(phi: Surrogate, form: Form) -> None:
    """Batch = loop, for every label, in value and gradient."""
    scores = drawn((3, 4), 2.0)
    looped = [row.clone().requires_grad_() for row in scores]
    expected = torch.cat([row_losses(phi, form, row) for row in looped])
    target = torch.arange(4).repeat(3)
    value, gradient = value_and_gradient(phi, form, scores.repeat_interleave(4, 0), target)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-12, atol=1e-13)
    expected.sum().backward()
    summed = gradient.reshape(3, 4, 4).sum(1)
    torch.testing.assert_close(summed, torch.stack([row.grad for row in looped]), rtol=1e-11, atol=1e-12)


@settings(batches_drawn, max_examples=100)
@given(pair=st.sampled_from(sorted(PAIRS)), n=num_classes, scale=scales, seed=seeds)
def test_any_pair_is_the_definition_at_any_scores(pair: str, n: int, scale: float, seed: int) -> None:
    phi, form = PAIRS[pair]
    scores = drawn((1, n), scale, seed)
    looped = scores[0].clone().requires_grad_()
    expected = row_losses(phi, form, looped)
    value, gradient = value_and_gradient(phi, form, scores.expand(n, n), torch.arange(n))
    # A sum of large terms of both signs is as exact as its largest one.
    close = {"rtol": 1e-11, "atol": 1e-12 * (1 + scale)}
    finite = expected.detach() < 1e12  # `Exponential` overflows, and what it adds to others is lost there.
    torch.testing.assert_close(value[finite], expected.detach()[finite], **close)
    if finite.all():
        (expected_gradient,) = torch.autograd.grad(expected.sum(), looped)
        size = float(gradient.abs().sum())
        torch.testing.assert_close(gradient.sum(0), expected_gradient, rtol=1e-10, atol=1e-12 * (1 + size))


@every_pair
@batches_drawn
@given(n=num_classes, scale=scales, seed=seeds)
def test_midpoints_lie_below(phi: Surrogate, form: Form, n: int, scale: float, seed: int) -> None:
    """ℓ((a + b)/2) ≤ (ℓ(a) + ℓ(b))/2."""
    a, b = drawn((2, 24, n), scale, seed)
    target = labels_for(a)
    ends = losses(phi, form, a, target) / 2 + losses(phi, form, b, target) / 2
    assert (losses(phi, form, (a + b) / 2, target) <= ends + 1e-13 * (1 + scale + ends)).all()


@every_pair
@batches_drawn
@given(n=num_classes, scale=scales, seed=seeds)
def test_gradients_are_monotone(phi: Surrogate, form: Form, n: int, scale: float, seed: int) -> None:
    """⟨∇ℓ(a) − ∇ℓ(b), a − b⟩ ≥ 0: convexity for the hand-written gradient."""
    a, b = drawn((2, 24, n), scale, seed)
    target = labels_for(a)
    at_a, at_b = (value_and_gradient(phi, form, scores, target)[1] for scores in (a, b))
    size = (at_a.abs() + at_b.abs()).amax(1) * (a - b).abs().amax(1)
    assert (((at_a - at_b) * (a - b)).sum(1) >= -1e-13 * n * (1 + size)).all()


@every_pair
def test_smooth_across_knots_exactly_as_declared(phi: Surrogate, form: Form) -> None:
    if not phi.knots:
        assert phi.is_c2
        return
    first, second = (max(column) for column in zip(*(jumps(phi, form, knot) for knot in phi.knots), strict=True))
    assert (first <= 1e-4) == phi.is_c1
    if phi.is_c1:  # Past a kink autograd's second derivative is that of the pieces, which are straight.
        assert (second <= 1e-3) == phi.is_c2


def steepest(form: Form, n: int, lipschitz: float) -> float:
    """sup ‖∇ℓ‖₁ over scores, from sup |φ'|.

    pairwise: each competitor moves itself and the label by |φ'|. logodds: one margin, whose gradient has 1-norm 2.
    centered: ∇ = a − mean(a) with a_v = −φ' in [0, Lip] and a_y = 0, whose 1-norm is largest with half of a at Lip.
    """
    if isinstance(form, LogOdds):
        return 2 * lipschitz
    total = 2 * (n - 1) if isinstance(form, Pairwise) else 2 * (n // 2) * ((n + 1) // 2) / n
    return total * lipschitz / (n - 1 if form.normalize else 1)


@every_pair
def test_gradient_is_bounded_as_the_lipschitz_constant_implies(phi: Surrogate, form: Form) -> None:
    if math.isinf(phi.lipschitz):
        return
    n = 4
    worst = torch.tensor([[-1e4, 1e4, 1e4, -1e4] if isinstance(form, Centered) else [-1e4, 1e4, 1e4, 1e4]])
    scores = torch.cat([worst, *(drawn((20, n), scale, 3) for scale in (1.0, 30.0, 1e15, 1e30))])
    target = torch.cat([torch.zeros(1, dtype=torch.long), labels_for(scores)[1:]])
    size = value_and_gradient(phi, form, scores, target)[1].abs().sum(1)
    bound = steepest(form, n, phi.lipschitz)
    assert (size <= bound * (1 + 1e-12)).all()
    assert float(size[0]) == pytest.approx(bound, rel=1e-6)


@every_pair
def test_a_shift_of_all_scores_changes_nothing(phi: Surrogate, form: Form) -> None:
    scores = drawn((6, 4), 2.0)
    value, gradient = value_and_gradient(phi, form, scores, labels_for(scores))
    shifted, gradient_there = value_and_gradient(phi, form, scores + 37.5, labels_for(scores))
    torch.testing.assert_close(shifted, value, rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(gradient_there, gradient, rtol=1e-11, atol=1e-11)
    assert (gradient.sum(1).abs() <= 1e-13 * (1 + gradient.abs().sum(1))).all()


@every_pair
def test_the_order_of_the_classes_does_not_matter(phi: Surrogate, form: Form) -> None:
    scores, order = drawn((6, 5), 2.0), torch.tensor([3, 0, 4, 1, 2])
    target = labels_for(scores)
    value, gradient = value_and_gradient(phi, form, scores, target)
    permuted, gradient_there = value_and_gradient(phi, form, scores[:, order], order.argsort()[target])
    torch.testing.assert_close(permuted, value, rtol=1e-13, atol=1e-14)
    torch.testing.assert_close(gradient_there, gradient[:, order], rtol=1e-12, atol=1e-14)


@every_pair
def test_two_classes_are_the_binary_loss(phi: Surrogate, form: Form) -> None:
    """pairwise = logodds = φ(±u) on u = s_1 − s_0, with targets as binary_loss takes them; centered is φ(±u/2)."""
    scores = drawn((9, 2), 2.0)
    target = labels_for(scores)
    u = scores[:, 1] - scores[:, 0]
    margin = u / 2 if isinstance(form, Centered) else u
    expected = binary_loss(margin, target, surrogate=phi, reduction="none")
    torch.testing.assert_close(losses(phi, form, scores, target), expected, rtol=1e-12, atol=1e-13)


@every_pair
@pytest.mark.parametrize("missing", (0, 2), ids=("one class", "all others missing"))
def test_a_single_class_costs_nothing_to_change(phi: Surrogate, form: Form, missing: int) -> None:
    """No competitors: a sum over none of them, and for logodds the limit φ(+∞)."""
    scores = torch.cat([drawn((3, 1)), torch.full((3, missing), -math.inf, dtype=torch.float64)], 1)
    alone = float(phi.value(math.inf)) if isinstance(form, LogOdds) else 0.0
    for target in (torch.zeros(3, dtype=torch.long), (scores != -math.inf).double()):
        value, gradient = value_and_gradient(phi, form, scores, target)
        assert value.tolist() == [alone] * 3
        assert (gradient == 0).all()


def in_the_core(phi: Surrogate, n: int = 5) -> Tensor:
    """Rows whose differences all lie inside the core."""
    assert phi.core is not None
    noise = torch.rand((4, n), dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    return noise * phi.core[1] * 0.99


@every_core
def test_core_gradient_of_pairwise_is_n_times_that_of_centered(phi: Surrogate) -> None:
    """For the sums, over any n; a two-sided surrogate reaches `centered` through the kernel alone."""
    for n in (2, 3, 5):
        scores = in_the_core(phi, n)
        target = labels_for(scores)
        pairwise = value_and_gradient(phi, Pairwise(normalize=False), scores, target)[1]
        if allows(Centered(), phi):
            centered = value_and_gradient(phi, Centered(normalize=False), scores, target)[1]
            torch.testing.assert_close(pairwise, n * centered, rtol=1e-12, atol=1e-13)
        slope = float(phi.derivative(0.0))
        expected = torch.full_like(scores, -slope).scatter(1, target[:, None], (n - 1) * slope)
        torch.testing.assert_close(pairwise, expected, rtol=1e-13, atol=0)


@every_core
@pytest.mark.parametrize("normalize", (True, False), ids=("mean", "sum"))
def test_labels_add_up_to_a_constant_in_the_core(phi: Surrogate, normalize: bool) -> None:
    """Σ_y ℓ(s, y) = n (n − 1) φ(0) for the sum: the condition for tolerance to uniform label noise."""
    n = 5
    scores = in_the_core(phi, n).requires_grad_()
    form = Pairwise(normalize=normalize)
    together = sum(losses(phi, form, scores, torch.full((4,), y)) for y in range(n))
    constant = n * (1 if normalize else n - 1) * float(phi.value(0.0))
    torch.testing.assert_close(together, torch.full_like(together, constant), rtol=1e-13, atol=0)
    assert torch.autograd.grad(together.sum(), scores)[0].abs().max() <= 1e-13


@every_core
def test_labels_do_not_add_up_to_a_constant_outside_the_core(phi: Surrogate) -> None:
    assert phi.core is not None
    scores = torch.tensor([[0.0, 0.0, phi.core[1] + 1.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    together = sum(losses(phi, Pairwise(normalize=False), scores, torch.full((2,), y)) for y in range(3))
    assert float(together[0] - together[1]) >= 1e-3
