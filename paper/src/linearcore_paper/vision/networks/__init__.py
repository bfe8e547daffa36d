"""Networks for small images, by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from torch import nn

from linearcore.heads import NormedScores
from linearcore_paper.vision.networks._resnet import resnet18
from linearcore_paper.vision.networks._small import small_network

__all__ = ["NETWORKS", "resnet18", "small_network"]

#: Function from the number of classes, the channels of an image, and the width to a network.
Builder = Callable[[int, int, int], nn.Module]


def _resnet18(num_classes: int, channels: int, width: int) -> nn.Module:
    return resnet18(num_classes, width=width, channels=channels)


def _small(num_classes: int, channels: int, width: int) -> nn.Module:
    return small_network(num_classes, channels=channels, widths=(width, 4 * width, 4 * width))


def _normed(build: Builder) -> Builder:
    def make(num_classes: int, channels: int, width: int) -> nn.Module:
        return nn.Sequential(build(num_classes, channels, width), NormedScores(num_classes))

    return make


_BASE_NETWORKS: dict[str, Builder] = {"resnet18": _resnet18, "small": _small}
#: Values of `Recipe.network`. "…-normed" adds `NormedScores` after the last layer.
NETWORKS: Mapping[str, Builder] = MappingProxyType(
    _BASE_NETWORKS | {f"{name}-normed": _normed(build) for name, build in _BASE_NETWORKS.items()}
)
