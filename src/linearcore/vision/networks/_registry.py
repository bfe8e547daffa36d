"""The networks by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from torch import nn

from linearcore.vision.networks._resnet import resnet18
from linearcore.vision.networks._small import small_network


def _resnet18(num_classes: int, channels: int, width: int) -> nn.Module:
    return resnet18(num_classes, width=width, channels=channels)


def _small(num_classes: int, channels: int, width: int) -> nn.Module:
    return small_network(num_classes, channels=channels, widths=(width, 4 * width, 4 * width))


#: What a recipe can name: functions of the number of classes, the channels of an image, and the width.
NETWORKS: Mapping[str, Callable[[int, int, int], nn.Module]] = MappingProxyType({"resnet18": _resnet18, "small": _small})
