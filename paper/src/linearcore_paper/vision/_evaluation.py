"""Scores of a network in evaluation mode, accuracy and mean loss."""

import torch
from torch import Tensor, nn

from linearcore_paper.vision._images import Images
from linearcore_paper.vision._losses import SampleLoss
from linearcore_paper.vision._steps import autocast
from linearcore_paper.vision._views import Normal, as_pixels

#: Batch size. It does not change the scores, except for rounding.
_BATCH = 1000


@torch.no_grad()
def scores_of(network: nn.Module, images: Tensor, normal: Normal, dtype: torch.dtype | None) -> Tensor:
    """Computes scores (N, C) float32 in evaluation mode, without augmentation and without synchronising with the GPU.

    Args:
        network: the network; its mode is restored.
        images: (N, channels, height, width) uint8.
        normal: mean and standard deviation of the channels of the *training* images.
        dtype: dtype of autocast; None disables it.
    """
    pixels, was_training = as_pixels(images), network.training
    network.eval()
    try:
        with autocast(images.device, dtype):
            return torch.cat([network(normal(batch)).float() for batch in pixels.split(_BATCH)])
    finally:
        network.train(was_training)


def count_correct(scores: Tensor, labels: Tensor) -> Tensor:
    """Counts the rows whose largest score is at their label; returns a tensor on the device."""
    return (scores.argmax(1) == labels).sum()


@torch.no_grad()
def mean_loss(loss: SampleLoss, scores: Tensor, data: Images) -> Tensor:
    """Computes the mean loss of the training images, with the loss in evaluation mode."""
    loss.train(False)
    index = torch.arange(len(data), device=scores.device)
    batches = zip(scores.split(_BATCH), data.labels.split(_BATCH), index.split(_BATCH), strict=True)
    total = torch.stack([loss(rows, labels, indices) * len(indices) for rows, labels, indices in batches]).sum()
    loss.train(True)
    return total / len(data)
