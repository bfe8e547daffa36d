"""Softmax regression on the other folds."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from linearcore.noise import boundary, linear_posterior
from linearcore.noise._linear_posterior import _fit


def problem(count: int = 900, width: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    stream = torch.Generator().manual_seed(0)
    points = torch.randn(count, width, generator=stream, dtype=torch.float64)
    scores = points @ torch.randn(width, 3, generator=stream, dtype=torch.float64)
    return points, torch.multinomial(scores.softmax(1), 1, generator=stream).squeeze(1)


def test_fit_is_ridge_regularised_softmax_regression():
    points, labels = problem()
    weight, bias = _fit(points, labels, 3, 0.01)
    peer = LogisticRegression(C=1 / (0.01 * len(points)), tol=1e-10, max_iter=1000).fit(points.numpy(), labels.numpy())
    expected = peer.predict_proba(points.numpy())
    np.testing.assert_allclose((points @ weight + bias).softmax(1).numpy(), expected, atol=1e-5)


def test_no_row_has_a_say_in_its_own_probabilities():
    points, labels = problem(200)
    before = linear_posterior(points, labels, num_classes=3, seed=0)
    changed = labels.clone()
    changed[7] = (changed[7] + 1) % 3
    after = linear_posterior(points, changed, num_classes=3, seed=0)
    torch.testing.assert_close(after[7], before[7], atol=1e-9, rtol=0)
    assert (after - before).abs().max() > 1e-4


def test_order_of_features_does_not_matter():
    # Another order of summing up is what another machine would differ in.
    points, labels = problem()
    forward = linear_posterior(points, labels, num_classes=3, seed=0)
    backward = linear_posterior(points.flip(1), labels, num_classes=3, seed=0)
    torch.testing.assert_close(backward, forward, atol=1e-6, rtol=0)


def test_units_of_features_do_not_matter():
    points, labels = problem()
    plain = linear_posterior(points, labels, num_classes=3, seed=0)
    scaled = linear_posterior(points * torch.tensor([1e3, 1, 1, 1e-3, 1, 1]) + 5, labels, num_classes=3, seed=0)
    torch.testing.assert_close(scaled, plain, atol=1e-6, rtol=0)


def test_parts_come_from_the_seed_alone():
    points, labels = problem(200)
    state = torch.get_rng_state()
    first = linear_posterior(points, labels, num_classes=3, seed=0)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(linear_posterior(points.numpy(), labels.tolist(), num_classes=3, seed=0), first)
    assert not torch.equal(linear_posterior(points, labels, num_classes=3, seed=1), first)


def test_it_makes_probabilities_that_boundary_takes():
    points, labels = problem()
    with torch.no_grad():
        eta = linear_posterior(points.float(), labels, num_classes=3, seed=0, folds=5)
    assert eta.shape == (900, 3) and eta.dtype == torch.float64 and not eta.requires_grad
    assert float((eta.argmax(1) == labels).double().mean()) > 0.6
    noisy = boundary(labels, 0.4, posterior=eta, num_classes=3, seed=0)
    assert abs(noisy.realised_rate - 0.4) < 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 1}, "`folds` must be an integer from 2 to the number of rows, got 1"),
        ({"folds": 201}, "`folds` must be an integer from 2"),
        ({"penalty": 0}, "`penalty` must be a positive number, got 0"),
        ({"num_classes": 1}, "`num_classes` must be"),
        ({"seed": -1}, "`seed` must be"),
        ({"labels": [0, 1]}, r"`labels` must have shape \(200,\), got \(2,\)"),
    ],
)
def test_messages(options, message):
    points, labels = problem(200)
    arguments = {"labels": labels, "num_classes": 3, "seed": 0} | options
    with pytest.raises(ValueError, match=message):
        linear_posterior(points, arguments.pop("labels"), **arguments)
