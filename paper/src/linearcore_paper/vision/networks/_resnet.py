"""ResNet-18 for small images."""

import torch.nn.functional as F
from torch import Tensor, nn

_BLOCKS = 2
_STAGES = 4


def resnet18(num_classes: int = 10, *, width: int = 64, channels: int = 3) -> nn.Module:
    """Builds ResNet-18 for images of 32 × 32: a 3 × 3 stem without stride or pooling, four stages of two blocks.

    Args:
        num_classes: number of classes.
        width: channels of the first stage; the others have 2, 4 and 8 times as many.
        channels: channels of an image.

    Returns:
        A network with `stem`, `stages` and the linear layer `head`.

    Example:
        >>> sum(parameter.numel() for parameter in resnet18().parameters())
        11173962

    Cost: 0.56 · 10⁹ multiplications per image of 32 × 32 at width 64.

    Reference: He, Zhang, Ren and Sun, *Deep Residual Learning for Image Recognition*, CVPR 2016.
    """
    network = _ResNet(num_classes, width, channels)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network


class _ResNet(nn.Module):
    """Stem, stages, global average pooling, linear layer."""

    def __init__(self, num_classes: int, width: int, channels: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(_conv(channels, width, 3, 1), nn.BatchNorm2d(width), nn.ReLU(inplace=True))
        blocks: list[nn.Module] = []
        num_in = width
        for stage in range(_STAGES):
            for block in range(_BLOCKS):
                stride = 2 if stage > 0 and block == 0 else 1
                blocks.append(_Block(num_in, width << stage, stride))
                num_in = width << stage
        self.stages = nn.Sequential(*blocks)
        self.head = nn.Linear(num_in, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Computes scores (N, num_classes) of normalised images (N, channels, height, width)."""
        scores: Tensor = self.head(self.stages(self.stem(images)).mean((2, 3)))
        return scores


class _Block(nn.Module):
    """Two convolutions with a shortcut."""

    def __init__(self, num_in: int, num_out: int, stride: int) -> None:
        super().__init__()
        self.first, self.first_norm = _conv(num_in, num_out, 3, stride), nn.BatchNorm2d(num_out)
        self.second, self.second_norm = _conv(num_out, num_out, 3, 1), nn.BatchNorm2d(num_out)
        is_same = stride == 1 and num_in == num_out
        self.shortcut = (
            nn.Identity() if is_same else nn.Sequential(_conv(num_in, num_out, 1, stride), nn.BatchNorm2d(num_out))
        )

    def forward(self, maps: Tensor) -> Tensor:
        inner = F.relu(self.first_norm(self.first(maps)), inplace=True)
        return F.relu(self.second_norm(self.second(inner)) + self.shortcut(maps), inplace=True)


def _conv(num_in: int, num_out: int, kernel: int, stride: int) -> nn.Conv2d:
    # The batch norm that follows cancels any bias.
    return nn.Conv2d(num_in, num_out, kernel, stride, padding=kernel // 2, bias=False)
