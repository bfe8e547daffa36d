"""Scores of a network as it is, and what they say about labels."""

import torch
from torch import Tensor, nn

from linearcore_paper.vision._images import Images
from linearcore_paper.vision._losses import SampleLoss
from linearcore_paper.vision._steps import autocast
from linearcore_paper.vision._views import Normal, as_pixels

#: Images at once. Their scores do not depend on it, up to the last bits.
_BATCH = 1000


@torch.no_grad()
def scores_of(network: nn.Module, images: Tensor, normal: Normal, dtype: torch.dtype | None) -> Tensor:
    """(N, C) float32 scores in evaluation mode, without augmentation, on the device of `images` and without waiting for it.

    Args:
        network: left in the mode that it was in.
        images: (N, channels, height, width) uint8.
        normal: mean and deviation of the channels of the *training* images.
        dtype: of autocast; None is float32.
    """
    pixels, was_training = as_pixels(images), network.training
    network.eval()
    try:
        with autocast(images.device, dtype):
            return torch.cat([network(normal(part)).float() for part in pixels.split(_BATCH)])
    finally:
        network.train(was_training)


def right_of(scores: Tensor, labels: Tensor) -> Tensor:
    """How many rows have their largest score at their label, as a tensor on the device."""
    return (scores.argmax(1) == labels).sum()


@torch.no_grad()
def mean_loss(loss: SampleLoss, scores: Tensor, data: Images) -> Tensor:
    """Of the training images in their order; a loss that remembers only looks."""
    loss.train(False)
    index = torch.arange(len(data), device=scores.device)
    parts = zip(scores.split(_BATCH), data.labels.split(_BATCH), index.split(_BATCH), strict=True)
    total = torch.stack([loss(rows, labels, places) * len(places) for rows, labels, places in parts]).sum()
    loss.train(True)
    return total / len(data)
