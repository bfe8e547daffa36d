import pytest
import torch

from linearcore import vision
from linearcore.losses.rivals import unhinged
from linearcore.vision.networks import NETWORKS, NormedScores


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_scores_of_a_class_have_mean_0_and_variance_1_however_long_they_are(dtype):
    torch.manual_seed(0)
    network = NormedScores(torch.nn.Linear(3, 4, dtype=dtype), 4)
    inputs = torch.randn(64, 3, dtype=dtype)
    scores = network(inputs)
    assert scores.dtype == torch.float32
    torch.testing.assert_close(scores.mean(0), torch.zeros(4), atol=1e-5, rtol=0)
    torch.testing.assert_close(scores.var(0, correction=0), torch.ones(4), atol=1e-3, rtol=0)
    with torch.no_grad():
        network.network.weight *= 1024
        network.network.bias *= 1024
    torch.testing.assert_close(network(inputs), scores, atol=1e-3, rtol=0)


def test_in_evaluation_a_score_does_not_depend_on_the_others():
    torch.manual_seed(0)
    network = NormedScores(torch.nn.Linear(3, 4), 4)
    for _ in range(50):
        network(torch.randn(64, 3))
    network.eval()
    inputs = torch.randn(8, 3)
    torch.testing.assert_close(network(inputs)[:1], network(inputs[:1]))


def test_nothing_is_learned_in_the_norm():
    for name in ("small", "resnet18"):
        plain, normed = (dict(NETWORKS[key](4, 1, 2).named_parameters()) for key in (name, f"{name}-normed"))
        assert list(normed) == [f"network.{key}" for key in plain]


def test_unhinged_loss_ends_where_it_diverges_on_raw_scores():
    torch.manual_seed(0)
    labels = torch.arange(4).repeat(32)
    pixels = (40 * labels[:, None, None, None] + torch.randint(0, 60, (128, 1, 8, 8))).to(torch.uint8)
    data = vision.Images(pixels, labels, ("a", "b", "c", "d"))
    how = {"width": 4, "epochs": 20, "batch": 16, "rate": 0.3, "loss_scale": 10.0}
    with pytest.raises(FloatingPointError, match="not finite"):
        vision.train(data, unhinged, vision.Recipe("small", **how), test=data)
    found = vision.train(data, unhinged, vision.Recipe("small-normed", **how), test=data)
    assert found.history[-1]["test_accuracy"] > 80
