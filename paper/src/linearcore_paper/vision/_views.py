"""Augmentation and normalisation: from stored pixels to the inputs of a network."""

from dataclasses import dataclass

import torch
from torch import Tensor

_NUM_LEVELS = 256


@dataclass(frozen=True)
class Normal:
    """Normalisation by mean and standard deviation of each channel, (channels,) float32, of values from 0 to 255."""

    mean: Tensor
    deviation: Tensor

    @classmethod
    def of(cls, images: Tensor) -> "Normal":
        """Computes them for images (N, channels, height, width) from value counts, which are equal on every machine."""
        levels = torch.arange(_NUM_LEVELS, dtype=torch.float64)
        counts = [torch.bincount(images[:, channel].flatten(), minlength=_NUM_LEVELS) for channel in range(images.shape[1])]
        frequency = torch.stack(counts).cpu().double() / (images.numel() // images.shape[1])
        mean = (frequency * levels).sum(1)
        deviation = (frequency * (levels - mean[:, None]).square()).sum(1).sqrt()
        # Avoids 0 / 0 for a constant channel.
        deviation = deviation.where(deviation > 0, 1.0)
        return cls(mean.float().to(images.device), deviation.float().to(images.device))

    def __call__(self, pixels: Tensor) -> Tensor:
        """Normalises pixels (N, height, width, channels) uint8 to float32 inputs (N, channels, height, width)."""
        return ((pixels.float() - self.mean) / self.deviation).permute(0, 3, 1, 2)


def as_pixels(images: Tensor) -> Tensor:
    """Permutes (N, channels, height, width) to (N, height, width, channels); a view if the input is channels-last."""
    return images.permute(0, 2, 3, 1).contiguous()


def crop(pixels: Tensor, index: Tensor, down: Tensor, right: Tensor, flip: Tensor) -> Tensor:
    """Selects a batch of images, each shifted and optionally mirrored.

    Args:
        pixels: (N, height, width, channels) uint8, all images.
        index: (B,) int64, indices of the batch.
        down, right: (B,) int64, shift of the crop window; pixels outside the image are 0.
        flip: (B,) int64, 1 to mirror the window left to right.

    Returns:
        (B, height, width, channels) uint8.

    Example:
        >>> pixels = torch.arange(1, 7, dtype=torch.uint8).reshape(1, 2, 3, 1)
        >>> one, zero = torch.ones(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
        >>> crop(pixels, zero, zero, one, zero)[0, :, :, 0]
        tensor([[2, 3, 0],
                [5, 6, 0]], dtype=torch.uint8)
        >>> crop(pixels, zero, zero, zero, one)[0, :, :, 0]
        tensor([[3, 2, 1],
                [6, 5, 4]], dtype=torch.uint8)
    """
    height, width = pixels.shape[1:3]
    rows = torch.arange(height, device=pixels.device) + down[:, None]
    positions = torch.arange(width, device=pixels.device)
    columns = torch.where(flip[:, None] == 1, width - 1 - positions, positions) + right[:, None]
    is_inside = ((rows >= 0) & (rows < height))[:, :, None] & ((columns >= 0) & (columns < width))[:, None, :]
    rows, columns = rows.clamp(0, height - 1), columns.clamp(0, width - 1)
    return pixels[index[:, None, None], rows[:, :, None], columns[:, None, :]] * is_inside[..., None]
