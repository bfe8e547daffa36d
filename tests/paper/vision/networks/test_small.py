import pytest
import torch

from linearcore_paper.vision.networks import NETWORKS, small_network


@pytest.mark.parametrize("channels, side", [(3, 32), (1, 28), (3, 8)])
def test_any_image_gives_a_score_a_class(channels, side):
    network = small_network(7, channels=channels, widths=(4, 8, 8))
    scores = network(torch.randn(2, channels, side, side))
    assert scores.shape == (2, 7) and float(scores.detach().abs().max()) < 3


def test_the_registry_gives_the_later_blocks_four_times_the_width():
    network = NETWORKS["small"](10, 3, 64)
    assert [block[0].out_channels for block in network.blocks] == [64, 256, 256]
    assert sum(parameter.numel() for parameter in network.parameters()) < 2.2e6
