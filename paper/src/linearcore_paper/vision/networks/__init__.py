"""Networks for small images."""

from linearcore_paper.vision.networks._registry import NETWORKS
from linearcore_paper.vision.networks._resnet import resnet18
from linearcore_paper.vision.networks._small import small_network

__all__ = ["NETWORKS", "resnet18", "small_network"]
