"""Forms by themselves: labels and their shares, and each fast path against the definition beside it.

Refused pairs are reached here too, as the analysis reaches them (`docs/reading-the-paper-with-care.md` (a), (e)).
"""

import math

import pytest
import torch
from torch import Tensor

from linearcore.forms import Centered, Form, Labels, LogOdds, Pairwise, reference_rows
from linearcore.surrogates import ConvolutionalFenchelYoung, LinearCore
from tests.cases import A_FEW, every_surrogate
from tests.oracles import Bound, row_losses

GENERATOR = torch.Generator().manual_seed(0)
SCORES = 2 * torch.randn(4, 5, dtype=torch.float64, generator=GENERATOR)
INDEX = torch.tensor([0, 4, 2, 2])
PROBABILITY = torch.randn(4, 5, dtype=torch.float64, generator=GENERATOR).softmax(1)
WEIGHT = torch.tensor([1.0, 2.0, 0.5, 0.0, 3.0], dtype=torch.float64)
MARGIN = torch.tensor([0.1, -0.4, 0.0, 2.0, 0.7], dtype=torch.float64)

BOUND: dict[str, Bound] = {
    f"{name}-{form}": Bound(form, phi)
    for name, phi in A_FEW.items()
    for form in (Pairwise(False), Pairwise(), Centered(False), Centered(), LogOdds())
}
every_bound = pytest.mark.parametrize("bound", BOUND.values(), ids=BOUND.keys())


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-13)


@every_bound
@pytest.mark.parametrize("margin", (None, MARGIN), ids=("plain", "margin"))
def test_fast_path_is_the_definition(bound: Bound, margin: Tensor | None) -> None:
    labels, scores = Labels(INDEX, margin=margin), SCORES.clone().requires_grad_()
    expected = bound.hard(scores, labels)
    losses, kept = bound.hard_forward(SCORES, labels)
    close(losses, expected.detach())
    upstream = torch.tensor([[1.0], [-2.0], [0.0], [0.5]], dtype=torch.float64)
    gradient = bound.hard_gradient(SCORES, labels, kept, upstream)
    close(gradient, torch.autograd.grad(expected, scores, upstream.squeeze(1))[0])
    assert len(kept) <= 3 and all(numbers.numel() == len(SCORES) for numbers in kept)


@every_bound
@pytest.mark.parametrize("margin", (None, MARGIN), ids=("plain", "margin"))
def test_soft_chunks_add_up(bound: Bound, margin: Tensor | None) -> None:
    """Where a form says it is quadratic it may be asked for some labels at a time."""
    labels = Labels(probability=PROBABILITY, margin=margin)
    whole = bound.soft(SCORES, labels, slice(0, 5))
    if bound.form.soft_is_quadratic(labels):
        close(sum(bound.soft(SCORES, labels, chunk) for chunk in (slice(0, 2), slice(2, 3), slice(3, 5))), whole)
    every = torch.stack([bound.hard(SCORES, Labels(torch.full((4,), y), margin=margin)) for y in range(5)], 1)
    close(whole, (PROBABILITY * every).sum(1))


def test_which_soft_losses_are_quadratic() -> None:
    plain, margin = Labels(probability=PROBABILITY), Labels(probability=PROBABILITY, margin=MARGIN)
    forms = (Pairwise(), Centered(), LogOdds())
    quadratic = [[form.soft_is_quadratic(labels) for labels in (plain, margin)] for form in forms]
    assert quadratic == [[True, True], [False, True], [False, False]]


@pytest.mark.parametrize("phi", (LinearCore(sides=2), ConvolutionalFenchelYoung()), ids=("two_sided", "cfy"))
def test_refused_pairs_are_computed_all_the_same(phi) -> None:
    losses = Bound(Centered(), phi).rows(SCORES, Labels(INDEX))
    close(losses, torch.stack([row_losses(phi, Centered(), row)[y] for row, y in zip(SCORES, INDEX, strict=True)]))
    quartic = LinearCore("quartic")
    losses = Bound(LogOdds(), quartic).rows(SCORES, Labels(INDEX))
    close(losses, torch.stack([row_losses(quartic, LogOdds(), row)[y] for row, y in zip(SCORES, INDEX, strict=True)]))


def test_logodds_with_a_rising_surrogate_is_not_convex() -> None:
    """Why the loss refuses the pair (e): past the turn of φ a midpoint lies above its ends."""
    bound = Bound(LogOdds(), LinearCore("quartic"))
    ends = torch.tensor([[9.0, 3.0, -3.0], [9.0, -3.0, 3.0]], dtype=torch.float64)
    both = bound.rows(torch.cat([ends, ends.mean(0, keepdim=True)]), Labels(torch.zeros(3, dtype=torch.long)))
    assert both[2] > both[:2].mean() + 1


def test_labels_shares() -> None:
    """share_y = weight_y · ((1 − ε) q_y + ε/C)."""
    close(Labels(probability=PROBABILITY).target_weights(SCORES), PROBABILITY)
    close(
        Labels(probability=PROBABILITY, smoothing=0.2, weight=WEIGHT).target_weights(SCORES),
        WEIGHT * (0.8 * PROBABILITY + 0.04),
    )
    one_hot = torch.nn.functional.one_hot(INDEX, 5).double()
    close(Labels(INDEX, smoothing=0.2, weight=WEIGHT).target_weights(SCORES), WEIGHT * (0.8 * one_hot + 0.04))
    assert Labels(probability=PROBABILITY).target_weights(SCORES.float()).dtype == torch.float32


def test_labels_know_whether_they_are_hard() -> None:
    assert Labels(INDEX).is_hard
    assert Labels(INDEX, weight=WEIGHT, margin=MARGIN).is_hard
    assert not Labels(INDEX, smoothing=0.1).is_hard
    assert not Labels(probability=PROBABILITY).is_hard


def test_labels_of_some_rows() -> None:
    labels = Labels(INDEX, None, WEIGHT, MARGIN, 0.1).rows(slice(1, 3))
    assert labels.index.tolist() == [4, 2] and labels.weight is WEIGHT and labels.margin is MARGIN
    assert torch.equal(Labels(probability=PROBABILITY).rows(slice(2, 4)).probability, PROBABILITY[2:])
    assert Labels(INDEX, margin=MARGIN).label_margin(SCORES).tolist() == [[0.1], [0.7], [0.0], [0.0]]
    assert Labels(INDEX, margin=MARGIN).label_margin(SCORES.float()).dtype == torch.float32
    assert Labels(INDEX).label_margin(SCORES) is None


def test_labels_without_weight_stay_out_unless_the_weights_are_differentiated() -> None:
    share, present = torch.tensor([0.0, 0.5, 0.0]), torch.tensor([True, True, False])
    assert Labels.is_counted(share, present).tolist() == [False, True, False]
    assert Labels.is_counted(share.requires_grad_(), present).tolist() == [True, True, False]


@pytest.mark.parametrize("form", (Pairwise(), Centered(), LogOdds()), ids=str)
@pytest.mark.parametrize("backend", ("reference", "eager"))
def test_rows_are_float32_for_half_precision(form: Form, backend: str) -> None:
    for dtype, expected in ((torch.bfloat16, torch.float32), (torch.float16, torch.float32), (torch.float64, torch.float64)):
        assert Bound(form, LinearCore()).rows(SCORES.to(dtype), Labels(INDEX), backend).dtype == expected
    assert reference_rows(form, LinearCore(), SCORES.bfloat16(), Labels(INDEX)).dtype == torch.float32


@every_surrogate
@pytest.mark.parametrize("form", (Pairwise(False), Centered(False)), ids=str)
def test_missing_classes_add_nothing_even_where_the_surrogate_does_not_vanish(phi, form: Form) -> None:
    """A class at −inf has margin +∞: φ(∞) is not always 0, and its mask may be skipped only where it is."""
    scores = torch.tensor([[0.5, -math.inf, 2.0, -math.inf]], dtype=torch.float64)
    labels = Labels(torch.tensor([0]))
    losses, kept = Bound(form, phi).hard_forward(scores, labels)
    fewer, _ = Bound(form, phi).hard_forward(scores[:, ::2], labels)
    close(losses, fewer)
    gradient = Bound(form, phi).hard_gradient(scores, labels, kept, torch.ones(1, 1, dtype=torch.float64))
    assert gradient.isfinite().all() and gradient[0, 1] == gradient[0, 3] == 0
