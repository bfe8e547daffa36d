"""Labelled images, and a hash that names them."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from linearcore.runtime import complaint, shape, stream_for

#: Shades of grey, and colours.
_CHANNELS = (1, 3)


@dataclass(frozen=True, eq=False)
class Images:
    """Images with one label each.

    Args:
        images: (N, channels, height, width) uint8.
        labels: (N,) int64, places in `classes`.
        classes: the names of the classes.

    Raises:
        TypeError: if a dtype is another.
        ValueError: if there is no image, shapes do not fit, channels come last, or a label names no class.

    Example:
        >>> data = Images(torch.zeros(4, 3, 8, 8, dtype=torch.uint8), torch.tensor([0, 1, 1, 0]), ("cat", "dog"))
        >>> len(data), data.num_classes, data.digest
        (4, 2, '...')
        >>> data.take(torch.tensor([1, 0])).labels
        tensor([1, 0])
    """

    images: Tensor
    labels: Tensor
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        check_images(self.images)
        _check_dtype("labels", self.labels, torch.int64)
        shape("labels", self.labels, (len(self.images),), "give one for every image")
        low, high = int(self.labels.min()), int(self.labels.max())
        if low < 0 or high >= len(self.classes):
            must = f"be in [0, {len(self.classes)})"
            raise ValueError(complaint("labels", must, f"{low} to {high}", "name every class in `classes`"))

    def __repr__(self) -> str:
        size = "×".join(map(str, self.images.shape[1:]))
        return f"Images({len(self)} of {size}, {self.num_classes} classes, {self.images.device})"

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def num_classes(self) -> int:
        """How many classes have a name."""
        return len(self.classes)

    @property
    def channels(self) -> int:
        """3 for colours, 1 for shades of grey."""
        return int(self.images.shape[1])

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits that name pixels and labels: the beginning of their SHA-256."""
        known = hashlib.sha256(str(tuple(self.images.shape)).encode())
        known.update(self.images.cpu().flatten().numpy().data)
        known.update(self.labels.cpu().numpy().data)
        return known.hexdigest()[:16]

    def to(self, device: torch.device | str) -> "Images":
        """The same on a device, pixel by pixel in memory as training reads them; nothing is copied if that is so already."""
        images = self.images.to(device).contiguous(memory_format=torch.channels_last)
        return replace(self, images=images, labels=self.labels.to(device))

    def with_labels(self, labels: Tensor) -> "Images":
        """The same images with other labels (N,), for example wrong ones."""
        return replace(self, labels=labels.to(self.labels.device))

    def take(self, index: Tensor) -> "Images":
        """The images at these places, in this order."""
        return replace(self, images=self.images[index], labels=self.labels[index])


@dataclass(frozen=True)
class ImageSets:
    """The two halves of a published data set.

    Attributes:
        train: to learn from.
        test: to look at when everything has been decided.
    """

    train: Images
    test: Images


def check_images(images: object, channels: int | None = None) -> None:
    """Raises unless these are images (N, channels, height, width) uint8; with `channels` of so many, and N may be 0."""
    if isinstance(images, Images):
        raise TypeError(complaint("images", "be a torch tensor", "Images", "pass its `images`"))
    tensor = _check_dtype("images", images, torch.uint8)
    sizes = tuple(tensor.shape)
    if tensor.dim() != 4 or 0 in sizes[0 if channels is None else 1 :]:
        must = f"have shape (N, {channels or 'channels'}, height, width), none of them 0"
        advice = "one image is `image[None]`" if tensor.dim() == 3 else "add the dimensions that are missing"
        raise ValueError(complaint("images", must, sizes, advice))
    allowed = _CHANNELS if channels is None else (channels,)
    if sizes[1] in allowed or (channels is None and sizes[3] not in allowed):
        return
    must = f"have shape (N, {channels or 'channels'}, height, width)"
    is_last = sizes[3] in allowed
    advice = "move the channels with `images.permute(0, 3, 1, 2)`" if is_last else "give as many channels as in training"
    raise ValueError(complaint("images", must, sizes, advice))


def _check_dtype(name: str, tensor: object, dtype: torch.dtype) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise TypeError(complaint(name, "be a torch tensor", type(tensor).__name__, "wrap it in torch.as_tensor"))
    if tensor.dtype != dtype:
        is_picture = dtype == torch.uint8 and tensor.is_floating_point()
        advice = (
            "from 0…1 make bytes with `(255 * images).round().to(torch.uint8)`" if is_picture else "convert it with `.to`"
        )
        raise TypeError(complaint(name, f"be {dtype}", tensor.dtype, advice))
    return tensor


def hold_out(data: Images, count: int, seed: int) -> tuple[Images, Images]:
    """Parts `data` at random into the rest and `count` images for validation, both in their old order.

    Hyper-parameters are chosen on labels that are as wrong as those of training: hold out after the labels went wrong.

    Args:
        data: what to part.
        count: from 1 to all but one.
        seed: of the draw.

    Returns:
        The rest, and what was held out.

    Raises:
        ValueError: if `count` does not lie between.

    Example:
        >>> data = Images(torch.zeros(5, 1, 4, 4, dtype=torch.uint8), torch.arange(5), tuple("abcde"))
        >>> rest, held = hold_out(data, 2, seed=0)
        >>> sorted([*rest.labels.tolist(), *held.labels.tolist()])
        [0, 1, 2, 3, 4]
    """
    if not 1 <= count < len(data):
        raise ValueError(complaint("count", f"be in [1, {len(data) - 1}]", count, "leave images to train on"))
    stream = stream_for("hold out", seed)
    order = torch.rand(len(data), dtype=torch.float64, generator=stream).argsort(stable=True)
    return data.take(order[count:].sort().values), data.take(order[:count].sort().values)
