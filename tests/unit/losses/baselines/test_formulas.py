"""Every baseline is its published formula, and the identities between them hold."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from linearcore import LinearCore, Logistic, multiclass_loss
from linearcore.losses.baselines import (
    BASELINES,
    active_passive_cross_entropy,
    asymmetric_generalized_cross_entropy,
    crammer_singer,
    cross_entropy,
    generalized_cross_entropy,
    mean_absolute_error,
    normalized_cross_entropy,
    reverse_cross_entropy,
    symmetric_cross_entropy,
    unhinged,
    weston_watkins,
)
from tests.baselines import CASES, FORMULAS, published

every_case = pytest.mark.parametrize(("name", "options"), CASES.values(), ids=CASES.keys())
SCORES = 3 * torch.randn(12, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
TARGET = torch.randint(5, (12,), generator=torch.Generator().manual_seed(1))
PROBABILITY = torch.randn(12, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).softmax(1)


def close(actual: Tensor, expected: Tensor, tolerance: float = 1e-12) -> None:
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def test_every_baseline_has_a_formula() -> None:
    assert set(BASELINES) == set(FORMULAS)


@every_case
def test_values_are_the_papers(name: str, options: dict[str, object]) -> None:
    expected = [published(name, row, int(y), **options) for row, y in zip(SCORES, TARGET, strict=True)]
    actual = BASELINES[name](SCORES, TARGET, reduction="none", **options)
    close(actual, torch.tensor(expected, dtype=torch.float64))


@every_case
def test_probability_targets_are_expectations(name: str, options: dict[str, object]) -> None:
    each = [[published(name, row, y, **options) for y in range(5)] for row in SCORES]
    expected = (PROBABILITY * torch.tensor(each, dtype=torch.float64)).sum(1)
    close(BASELINES[name](SCORES, PROBABILITY, reduction="none", **options), expected)


@every_case
def test_a_class_that_is_not_there_is_left_out(name: str, options: dict[str, object]) -> None:
    scores = SCORES.clone()
    scores[:, 2] = -math.inf
    scores.requires_grad_()
    target = TARGET.masked_fill(TARGET == 2, 4)
    loss = BASELINES[name](scores, target, reduction="none", **options)
    rows = zip(scores.detach(), target, strict=True)
    expected = [published(name, row, int(y), **options) for row, y in rows]
    close(loss.detach(), torch.tensor(expected, dtype=torch.float64))
    (gradient,) = torch.autograd.grad(loss.sum(), scores)
    assert gradient.isfinite().all() and (gradient[:, 2] == 0).all()
    one_hot = BASELINES[name](scores, F.one_hot(target, 5).double(), reduction="none", **options)
    close(one_hot.detach(), loss.detach())
    (soft_gradient,) = torch.autograd.grad(one_hot.sum(), scores)
    close(soft_gradient, gradient)


@pytest.mark.parametrize("name", BASELINES)
def test_a_label_without_competitors_is_not_wrong(name: str) -> None:
    for scores in (torch.tensor([[2.0]]), torch.tensor([[-math.inf, 2.0, -math.inf]])):
        scores.requires_grad_()
        loss = BASELINES[name](scores, torch.tensor([scores.shape[1] // 2]))
        assert loss == 0
        assert (torch.autograd.grad(loss, scores)[0] == 0).all()


def test_cross_entropy_is_torchs_and_ours() -> None:
    close(cross_entropy(SCORES, TARGET), F.cross_entropy(SCORES, TARGET))
    close(cross_entropy(SCORES, TARGET), multiclass_loss(SCORES, TARGET, surrogate=Logistic(), form="logodds"))


def test_generalized_goes_from_cross_entropy_to_half_the_mean_absolute_error() -> None:
    close(generalized_cross_entropy(SCORES, TARGET, q=1e-6), cross_entropy(SCORES, TARGET), 1e-5)
    close(generalized_cross_entropy(SCORES, TARGET, q=1e-9), cross_entropy(SCORES, TARGET), 1e-7)
    assert generalized_cross_entropy(SCORES, TARGET, q=0.0) == cross_entropy(SCORES, TARGET)
    close(generalized_cross_entropy(SCORES, TARGET, q=1.0), mean_absolute_error(SCORES, TARGET) / 2)


def test_truncation_leaves_unlikely_labels_alone() -> None:
    scores = SCORES.clone().requires_grad_()
    loss = generalized_cross_entropy(scores, TARGET, q=0.5, truncation=0.3, reduction="none")
    likely = scores.softmax(1).gather(1, TARGET[:, None]).squeeze(1) > 0.3
    assert 0 < likely.sum() < 12
    gradient = torch.autograd.grad(loss.sum(), scores)[0]
    assert (gradient[~likely] == 0).all() and (gradient[likely] != 0).all()
    close(loss[~likely], torch.full_like(loss[~likely], (1 - 0.3**0.5) / 0.5))


def test_limits_of_the_asymmetric_one() -> None:
    close(
        asymmetric_generalized_cross_entropy(SCORES, TARGET, a=0.0, q=0.3),
        generalized_cross_entropy(SCORES, TARGET, q=0.3),
    )
    for a in (0.0, 0.5, 6.0):
        close(asymmetric_generalized_cross_entropy(SCORES, TARGET, a=a, q=1.0), mean_absolute_error(SCORES, TARGET) / 2)
    p = SCORES.softmax(1).gather(1, TARGET[:, None])
    close(asymmetric_generalized_cross_entropy(SCORES, TARGET, a=0.6, q=1e-8), (1.6 / (0.6 + p)).log().mean(), 1e-7)


def test_reverse_is_the_mean_absolute_error_and_the_sums_are_sums() -> None:
    reverse = reverse_cross_entropy(SCORES, TARGET, log_zero=-4.0)
    close(reverse, 2 * mean_absolute_error(SCORES, TARGET))
    close(reverse_cross_entropy(SCORES, TARGET, log_zero=-2.0), mean_absolute_error(SCORES, TARGET))
    options = {"alpha": 0.3, "beta": 0.7, "log_zero": -4.0}
    close(symmetric_cross_entropy(SCORES, TARGET, **options), 0.3 * cross_entropy(SCORES, TARGET) + 0.7 * reverse)
    active = normalized_cross_entropy(SCORES, TARGET)
    close(active_passive_cross_entropy(SCORES, TARGET, **options), 0.3 * active + 0.7 * reverse)


def test_weston_watkins_is_torchs_times_the_number_of_classes() -> None:
    close(weston_watkins(SCORES, TARGET), 5 * F.multi_margin_loss(SCORES, TARGET))


def test_crammer_singer_is_the_largest_term_of_weston_watkins() -> None:
    """And torch's multi-margin loss of the two scores that are left of a row, times two."""
    best = SCORES.scatter(1, TARGET[:, None], -math.inf).amax(1)
    pairs = torch.stack([SCORES.gather(1, TARGET[:, None]).squeeze(1), best], 1)
    close(crammer_singer(SCORES, TARGET), 2 * F.multi_margin_loss(pairs, torch.zeros(12, dtype=torch.long)))
    assert (crammer_singer(SCORES, TARGET, reduction="none") <= weston_watkins(SCORES, TARGET, reduction="none")).all()


def test_crammer_singer_with_ties_at_the_top() -> None:
    scores = torch.tensor([[2.0, 2.0, 0.0]]).double()
    close(crammer_singer(scores.expand(3, 3), torch.arange(3), reduction="none"), torch.tensor([1.0, 1.0, 3.0]).double())


@pytest.mark.parametrize("phi", (LinearCore(tau=1.5), LinearCore("gamma", 2.0), LinearCore(sides=2, tau=1.5)), ids=str)
@pytest.mark.parametrize("normalize", (True, False))
@pytest.mark.parametrize("soft", (False, True), ids=("hard", "soft"))
def test_unhinged_is_pairwise_inside_the_core(phi: LinearCore, normalize: bool, soft: bool) -> None:
    scores = SCORES / SCORES.abs().amax() * 0.7  # Margins up to 1.4.
    target = PROBABILITY if soft else TARGET
    constant = (float(phi.value(0.0)) - 1) * (1 if normalize else 4)
    results = []
    for loss in (
        lambda s: unhinged(s, target, normalize=normalize, reduction="none") + constant,
        lambda s: multiclass_loss(s, target, surrogate=phi, form="pairwise", normalize=normalize, reduction="none"),
    ):
        leaf = scores.clone().requires_grad_()
        value = loss(leaf)
        results.append((value.detach(), *torch.autograd.grad(value.sum(), leaf)))
    for ours, pairwise in zip(*results, strict=True):
        close(ours, pairwise)


def test_unhinged_of_two_classes_is_the_authors_binary_loss() -> None:
    margin = SCORES[:, 0] - SCORES[:, 1]
    sign = torch.where(TARGET % 2 == 0, 1.0, -1.0).double()
    close(unhinged(SCORES[:, :2], TARGET % 2, reduction="none"), 1 - sign * margin)
