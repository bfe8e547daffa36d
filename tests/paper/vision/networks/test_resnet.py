import pytest
import torch
from torch import nn

from linearcore_paper.vision.networks import NETWORKS, resnet18


def test_it_has_the_parameters_that_everyone_counts():
    network = resnet18()
    assert sum(parameter.numel() for parameter in network.parameters()) == 11_173_962
    convolutions = [module for module in network.modules() if isinstance(module, nn.Conv2d)]
    assert len(convolutions) == 1 + 16 + 3
    assert [conv.stride[0] for conv in convolutions].count(2) == 6
    assert not any(isinstance(module, nn.MaxPool2d) for module in network.modules())


def test_its_weights_begin_as_he_et_al_draw_them():
    torch.manual_seed(0)
    network = resnet18()
    widening = next(module for module in network.modules() if isinstance(module, nn.Conv2d) and module.out_channels == 512)
    assert widening.in_channels == 256
    assert float(widening.weight.detach().std()) == pytest.approx((2 / (512 * 9)) ** 0.5, rel=0.01)


@pytest.mark.parametrize("channels, side", [(3, 32), (1, 28), (3, 8)])
def test_any_image_gives_a_score_a_class(channels, side):
    network = resnet18(7, width=4, channels=channels)
    assert network(torch.zeros(2, channels, side, side)).shape == (2, 7)


def test_maps_shrink_three_times_and_the_mean_is_taken_over_places():
    network = resnet18(3, width=4).eval()
    images = torch.randn(2, 3, 32, 32)
    maps = network.stages(network.stem(images))
    assert maps.shape == (2, 32, 4, 4)
    torch.testing.assert_close(network(images), network.head(maps.flatten(2).mean(2)))


def test_the_registry_knows_it():
    assert set(NETWORKS) == {name + ending for name in ("resnet18", "small") for ending in ("", "-normed")}
    assert NETWORKS["resnet18"](5, 1, 4).head.weight.shape == (5, 32)
