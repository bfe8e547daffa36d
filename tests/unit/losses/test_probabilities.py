"""`probabilities` are those at which the expected loss is minimal at the scores, with the scores' own order; and skorch."""

import copy
import pickle

import numpy as np
import pytest
import torch
from skorch import NeuralNetBinaryClassifier, NeuralNetClassifier
from torch import Tensor, nn

from linearcore import BinaryLinearCoreLoss, Exponential, Hinge, LinearCore, LinearCoreLoss, Logistic, LogOdds, Surrogate
from linearcore.forms import Labels

SCORES = 3 * torch.randn(40, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
SMOOTH = (LinearCore(), LinearCore("gamma", 0.5, sharpness=2.0), LinearCore(sides=2), Logistic(), Exponential())


@pytest.mark.parametrize("surrogate", SMOOTH, ids=str)
def test_scores_minimise_the_expected_loss_under_their_posterior(surrogate: Surrogate) -> None:
    scores = SCORES.clone().requires_grad_()
    p = LogOdds().posterior(surrogate, SCORES)
    torch.testing.assert_close(p.sum(-1), torch.ones(40, dtype=torch.float64))
    losses = [LogOdds().hard_losses(surrogate, scores, Labels(torch.full((40,), label))) for label in range(4)]
    (gradient,) = torch.autograd.grad((p * torch.stack(losses, -1)).sum(), scores)
    assert gradient.abs().amax() < 1e-10


@pytest.mark.parametrize("surrogate", (*SMOOTH, Hinge()), ids=str)
def test_with_two_classes_it_is_the_posterior_of_the_margin(surrogate: Surrogate) -> None:
    scores = torch.stack([torch.zeros(81, dtype=torch.float64), torch.linspace(-40, 40, 81, dtype=torch.float64)], 1)
    found = LogOdds().posterior(surrogate, scores)[:, 1]
    torch.testing.assert_close(found, surrogate.posterior(scores[:, 1]), rtol=1e-9, atol=1e-12)


def test_with_the_logistic_surrogate_it_is_the_softmax() -> None:
    torch.testing.assert_close(LinearCoreLoss(surrogate=Logistic()).probabilities(SCORES), SCORES.softmax(1))
    binary = BinaryLinearCoreLoss(surrogate=Logistic()).probabilities(SCORES)
    torch.testing.assert_close(binary, SCORES.sigmoid())


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16), ids=str)
@pytest.mark.parametrize("surrogate", (LinearCore(), LinearCore(tau=50.0), Hinge()), ids=str)
def test_the_highest_score_has_the_highest_probability(surrogate: Surrogate, dtype: torch.dtype) -> None:
    """Also in the core, where the loss gives two classes the same probability."""
    for scores in (SCORES[:, :2], SCORES, 0.01 * SCORES, 100 * SCORES):
        scores = scores.to(dtype)
        top = scores.amax(1, keepdim=True)
        found = LinearCoreLoss(surrogate=surrogate).probabilities(scores)
        assert (scores.gather(1, found.argmax(1, keepdim=True)) == top).all()
        assert found.isfinite().all() and (found >= 0).all()
    binary = BinaryLinearCoreLoss(surrogate=surrogate).probabilities(SCORES.to(dtype))
    assert ((binary > 0.5) == (SCORES > 0)).all()


def test_masked_classes_have_probability_zero() -> None:
    scores = torch.tensor([[1.0, -torch.inf, 3.0, 0.0], [-torch.inf, 2.0, -torch.inf, -torch.inf]])
    found = LinearCoreLoss().probabilities(scores)
    torch.testing.assert_close(found[0, [0, 2, 3]], LinearCoreLoss().probabilities(scores[0, [0, 2, 3]]))
    assert found[0, 1] == 0 and found[1].tolist() == [0, 1, 0, 0]


def test_classes_are_where_the_loss_has_them() -> None:
    scores = SCORES.reshape(10, 4, 4).transpose(1, 2)
    expected = LinearCoreLoss().probabilities(SCORES).reshape(10, 4, 4).transpose(1, 2)
    torch.testing.assert_close(LinearCoreLoss().probabilities(scores), expected)
    torch.testing.assert_close(LinearCoreLoss().probabilities(SCORES[0]), LinearCoreLoss().probabilities(SCORES)[0])


@pytest.mark.parametrize("form", ("pairwise", "centered"))
def test_other_forms_refuse(form: str) -> None:
    with pytest.raises(ValueError, match=f"`form` must estimate probabilities, got '{form}'"):
        LinearCoreLoss(form=form).probabilities(SCORES)


FEATURES = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
LABELS = FEATURES[:, :3].argmax(1)


def test_skorch_predicts_probabilities() -> None:
    torch.manual_seed(0)
    criterion = LinearCoreLoss()
    network = NeuralNetClassifier(
        nn.Linear(5, 3), criterion=criterion, predict_nonlinearity=criterion.probabilities, train_split=None, lr=0.1,
        max_epochs=5, verbose=0,
    )  # fmt: skip
    for net in (network, copy.deepcopy(network)):
        net.fit(FEATURES, LABELS)
        probabilities, scores = net.predict_proba(FEATURES), net.forward(FEATURES)
        np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)
        np.testing.assert_allclose(probabilities, criterion.probabilities(scores), rtol=1e-5)
        assert (net.predict(FEATURES) == scores.argmax(1).numpy()).all()
    assert (pickle.loads(pickle.dumps(network)).predict_proba(FEATURES) == network.predict_proba(FEATURES)).all()


class OneScore(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 1)

    def forward(self, features: Tensor) -> Tensor:
        return self.linear(features).squeeze(-1)


def both_columns(scores: Tensor) -> Tensor:
    positive = BinaryLinearCoreLoss().probabilities(scores)
    return torch.stack([1 - positive, positive], -1)


def test_skorch_with_one_score() -> None:
    torch.manual_seed(0)
    net = NeuralNetBinaryClassifier(
        OneScore,
        criterion=BinaryLinearCoreLoss,
        predict_nonlinearity=both_columns,
        train_split=None,
        max_epochs=2,
        verbose=0,
    )
    net.fit(FEATURES, (LABELS == 0).astype(np.float32))
    assert (net.predict(FEATURES) == (net.forward(FEATURES) > 0).numpy()).all()
    np.testing.assert_allclose(net.predict_proba(FEATURES).sum(1), 1, rtol=1e-6)
