"""From stored bytes to what a network sees: moved, mirrored, normalised."""

from dataclasses import dataclass

import torch
from torch import Tensor

_SHADES = 256


@dataclass(frozen=True)
class Normal:
    """Mean and standard deviation of each channel, (channels,) float32, in shades from 0 to 255."""

    mean: Tensor
    deviation: Tensor

    @classmethod
    def of(cls, images: Tensor) -> "Normal":
        """Of images (N, channels, height, width), counted shade by shade: exact, and hence the same on every machine."""
        shades = torch.arange(_SHADES, dtype=torch.float64)
        counts = [torch.bincount(images[:, channel].flatten(), minlength=_SHADES) for channel in range(images.shape[1])]
        share = torch.stack(counts).cpu().double() / (images.numel() // images.shape[1])
        mean = (share * shades).sum(1)
        deviation = (share * (shades - mean[:, None]).square()).sum(1).sqrt()
        # A channel of one shade only is left as it is, around zero.
        deviation = deviation.where(deviation > 0, 1.0)
        return cls(mean.float().to(images.device), deviation.float().to(images.device))

    def __call__(self, pixels: Tensor) -> Tensor:
        """Pixels (N, height, width, channels) uint8 to float32 inputs (N, channels, height, width) in the same memory."""
        return ((pixels.float() - self.mean) / self.deviation).permute(0, 3, 1, 2)


def as_pixels(images: Tensor) -> Tensor:
    """(N, channels, height, width) to (N, height, width, channels), a view if the memory is in this order already."""
    return images.permute(0, 2, 3, 1).contiguous()


def cropped(pixels: Tensor, index: Tensor, down: Tensor, right: Tensor, flip: Tensor) -> Tensor:
    """A batch of images, each seen through a window that is moved and perhaps mirrored.

    Args:
        pixels: (N, height, width, channels) uint8, all images.
        index: (B,) int64, which of them.
        down, right: (B,) int64, how far the window is moved; beyond the border everything is 0.
        flip: (B,) int64, 1 where left and right are exchanged in the window.

    Returns:
        (B, height, width, channels) uint8.

    Example:
        >>> pixels = torch.arange(1, 7, dtype=torch.uint8).reshape(1, 2, 3, 1)
        >>> one, nothing = torch.ones(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
        >>> cropped(pixels, nothing, nothing, one, nothing)[0, :, :, 0]
        tensor([[2, 3, 0],
                [5, 6, 0]], dtype=torch.uint8)
        >>> cropped(pixels, nothing, nothing, nothing, one)[0, :, :, 0]
        tensor([[3, 2, 1],
                [6, 5, 4]], dtype=torch.uint8)
    """
    height, width = pixels.shape[1:3]
    rows = torch.arange(height, device=pixels.device) + down[:, None]
    places = torch.arange(width, device=pixels.device)
    columns = torch.where(flip[:, None] == 1, width - 1 - places, places) + right[:, None]
    inside = ((rows >= 0) & (rows < height))[:, :, None] & ((columns >= 0) & (columns < width))[:, None, :]
    rows, columns = rows.clamp(0, height - 1), columns.clamp(0, width - 1)
    return pixels[index[:, None, None], rows[:, :, None], columns[:, None, :]] * inside[..., None]
