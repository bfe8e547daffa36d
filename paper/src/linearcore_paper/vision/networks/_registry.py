"""The networks by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from torch import nn

from linearcore.heads import NormedScores
from linearcore_paper.vision.networks._resnet import resnet18
from linearcore_paper.vision.networks._small import small_network

#: From the number of classes, the channels of an image, and the width.
Builder = Callable[[int, int, int], nn.Module]


def _resnet18(num_classes: int, channels: int, width: int) -> nn.Module:
    return resnet18(num_classes, width=width, channels=channels)


def _small(num_classes: int, channels: int, width: int) -> nn.Module:
    return small_network(num_classes, channels=channels, widths=(width, 4 * width, 4 * width))


def _normed(build: Builder) -> Builder:
    def make(num_classes: int, channels: int, width: int) -> nn.Module:
        return nn.Sequential(build(num_classes, channels, width), NormedScores(num_classes))

    return make


_PLAIN: dict[str, Builder] = {"resnet18": _resnet18, "small": _small}
#: What a recipe can name. "…-normed" ends in `NormedScores`.
NETWORKS: Mapping[str, Builder] = MappingProxyType(
    _PLAIN | {f"{name}-normed": _normed(build) for name, build in _PLAIN.items()}
)
