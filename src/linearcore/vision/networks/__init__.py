"""Networks for small images."""

from linearcore.vision.networks._registry import NETWORKS
from linearcore.vision.networks._resnet import resnet18
from linearcore.vision.networks._small import small_network

__all__ = ["NETWORKS", "resnet18", "small_network"]
