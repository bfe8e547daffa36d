import pytest
import torch
import torch.nn.functional as F

from linearcore.losses.baselines import EarlyLearning
from linearcore_paper.vision import _evaluation
from linearcore_paper.vision._evaluation import count_correct, mean_loss, scores_of
from linearcore_paper.vision._losses import SampleLoss
from linearcore_paper.vision._result import new_network
from linearcore_paper.vision._views import Normal
from tests.paper.vision.toy_images import SHORT, toy


def test_scores_use_running_statistics_and_leave_everything_as_it_was(monkeypatch):
    monkeypatch.setattr(_evaluation, "_BATCH", 16)
    data = toy(50)
    network, normal = new_network(SHORT, 3, 3).train(), Normal.of(data.images)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    scores = scores_of(network, data.images, normal, None)
    assert network.training and not scores.requires_grad
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    inputs = (data.images.float() - normal.mean[:, None, None]) / normal.deviation[:, None, None]
    torch.testing.assert_close(scores, network.eval()(inputs).detach(), rtol=1e-4, atol=1e-5)
    # Each image alone gives the same: no image sees the rest of its batch.
    torch.testing.assert_close(scores_of(network, data.images[7:8], normal, None), scores[7:8], rtol=1e-4, atol=1e-5)


def test_right_ones_are_counted():
    assert int(count_correct(torch.tensor([[1.0, 2.0], [3.0, 0.0], [0.0, 1.0]]), torch.tensor([1, 1, 1]))) == 2


def test_the_mean_loss_weighs_an_uneven_last_batch_rightly(monkeypatch):
    monkeypatch.setattr(_evaluation, "_BATCH", 16)
    data, scores = toy(50), torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    expected = float(F.cross_entropy(scores, data.labels))
    assert float(mean_loss(SampleLoss(F.cross_entropy, "cpu"), scores, data)) == pytest.approx(expected)
    loss = SampleLoss(EarlyLearning(50, 3), "cpu")
    assert float(mean_loss(loss, scores, data)) == pytest.approx(expected)
    assert not loss.state()["history"].any() and loss.function.training
