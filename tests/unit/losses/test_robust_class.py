"""`robust_loss(norm="class")`: of scores that a network has normed itself. What is proven of both is in heads."""

import math

import pytest
import torch
from torch import Tensor

from linearcore import LinearCore, Logistic, RobustLinearCoreLoss, Surrogate
from linearcore.losses import multiclass_loss, robust_loss

SURROGATES = {"preset": LinearCore(tau=2.0), "tail": LinearCore("truncated_quadratic", 0.4), "logistic": Logistic()}
every_surrogate = pytest.mark.parametrize("phi", SURROGATES.values(), ids=SURROGATES.keys())
#: n = 5: √4/5.
UNIT = 0.4


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return 2 * torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


SCORES, TARGET = drawn(12, 5), torch.arange(12) % 5


def by_definition(phi: Surrogate, scores: Tensor, unit: float) -> Tensor:
    """(N, C): the mean over the competitors that are there, for every label."""
    margins = unit * (scores.unsqueeze(2) - scores.unsqueeze(1))
    others = ~torch.eye(scores.shape[1], dtype=torch.bool) & (scores != -math.inf).unsqueeze(1)
    values = torch.where(others, phi.value(margins.masked_fill(~others, 0.0)), 0.0)
    return values.sum(2) / others.sum(2)


@every_surrogate
@pytest.mark.parametrize("backend", ("reference", "eager", "auto"))
def test_value_and_gradient_are_the_definition(phi, backend):
    options = {"norm": "class", "surrogate": phi, "radius": 1.5, "scale": 0.3, "backend": backend}
    scores = SCORES.clone().requires_grad_()
    every = 0.3 * by_definition(phi, scores, 1.5 * UNIT)
    expected = every.gather(1, TARGET[:, None]).squeeze(1)
    found = robust_loss(scores, TARGET, reduction="none", **options)
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(value.sum(), scores, retain_graph=True)[0] for value in (found, expected)]
    torch.testing.assert_close(*gradients)
    probability = drawn(12, 5, seed=1).softmax(1)
    torch.testing.assert_close(robust_loss(scores, probability, **options), (probability * every).sum(1).mean())


def test_one_sample_does_not_see_the_others_and_length_counts():
    one = robust_loss(SCORES[:1], TARGET[:1], norm="class")
    torch.testing.assert_close(one, robust_loss(SCORES, TARGET, norm="class", reduction="none")[0])
    assert robust_loss(2 * SCORES, TARGET, norm="class") != robust_loss(SCORES, TARGET, norm="class")


def test_certain_answers_of_equal_classes_have_margin_1_in_its_unit():
    for n in (2, 3, 10, 100):
        z = torch.full((n, n), -1 / math.sqrt(n - 1), dtype=torch.float64).fill_diagonal_(math.sqrt(n - 1))
        torch.testing.assert_close(z.mean(0), torch.zeros_like(z[0]), atol=1e-12, rtol=0)
        torch.testing.assert_close(z.var(0, correction=0), torch.ones_like(z[0]))
        expected = LinearCore(tau=2.0).value(torch.ones(n, dtype=torch.float64))
        torch.testing.assert_close(robust_loss(z, torch.arange(n), norm="class", reduction="none"), expected)


def test_classes_that_are_not_there_and_rows_that_do_not_count():
    scores, target = SCORES.clone(), TARGET.clone()
    scores[:, 4] = -math.inf
    target[target == 4] = 0
    target[:2] = -100
    scores[0] = math.nan
    leaf = scores.requires_grad_()
    value = robust_loss(leaf, target, norm="class")
    value.backward()
    assert leaf.grad[:2].eq(0).all() and leaf.grad.isfinite().all()
    expected = UNIT * scores.detach()
    told = {"form": "pairwise", "normalize": True, "surrogate": LinearCore(tau=2.0)}
    torch.testing.assert_close(value, multiclass_loss(expected, target, **told))
    assert robust_loss(SCORES[:0], TARGET[:0], norm="class", reduction="sum") == 0
    # No rows that count: 0/0, as in torch.
    assert robust_loss(SCORES, torch.full((12,), -100), norm="class").isnan()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_precisions_compute_in_float32(dtype):
    """A mean of losses that differ by thousands: its own rounding is all that is lost."""
    scores = (1000 * SCORES).to(dtype).repeat(50, 1)
    target = TARGET.repeat(50)
    found = robust_loss(scores, target, norm="class", reduction="none")
    assert found.dtype == dtype
    exact = robust_loss(scores.double(), target, norm="class", reduction="none")
    assert ((found.double() - exact).abs() <= 0.5001 * torch.finfo(dtype).eps * exact.abs() + 1e-3).all()


def test_weights_and_smoothing_are_those_of_the_pairwise_form():
    weight, sample_weight = torch.arange(1.0, 6.0, dtype=torch.float64), drawn(12, seed=3).abs()
    both = {"weight": weight, "sample_weight": sample_weight, "label_smoothing": 0.1}
    told = {"form": "pairwise", "normalize": True, "surrogate": LinearCore(tau=2.0)}
    found = robust_loss(SCORES, TARGET, norm="class", **both)
    torch.testing.assert_close(found, multiclass_loss(UNIT * SCORES, TARGET, **told, **both))


def test_module_passes_it_on():
    module = RobustLinearCoreLoss(norm="class", scale=0.1)
    torch.testing.assert_close(module(SCORES, TARGET), robust_loss(SCORES, TARGET, norm="class", scale=0.1))
    assert not module.is_symmetric and "norm='class'" in repr(module)
