"""Labelled images with a hash of their content."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from linearcore.runtime import complaint, shape, stream_for

#: Greyscale and RGB.
_CHANNELS = (1, 3)


@dataclass(frozen=True, eq=False)
class Images:
    """Images with one label each.

    Args:
        images: (N, channels, height, width) uint8.
        labels: (N,) int64, indices into `classes`.
        classes: the names of the classes.

    Raises:
        TypeError: if a dtype is wrong.
        ValueError: if there are no images, shapes do not match, channels are last, or a label is out of range.

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
        shape("labels", self.labels, (len(self.images),), "pass one label per image")
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
        """Number of classes."""
        return len(self.classes)

    @property
    def channels(self) -> int:
        """3 for RGB, 1 for greyscale."""
        return int(self.images.shape[1])

    @cached_property
    def digest(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 of pixels and labels."""
        digest = hashlib.sha256(str(tuple(self.images.shape)).encode())
        digest.update(self.images.cpu().flatten().numpy().data)
        digest.update(self.labels.cpu().numpy().data)
        return digest.hexdigest()[:16]

    def to(self, device: torch.device | str) -> "Images":
        """Moves the images to a device in channels-last memory format; copies only if needed."""
        images = self.images.to(device).contiguous(memory_format=torch.channels_last)
        return replace(self, images=images, labels=self.labels.to(device))

    def with_labels(self, labels: Tensor) -> "Images":
        """Returns the same images with other labels (N,), for example noisy ones."""
        return replace(self, labels=labels.to(self.labels.device))

    def take(self, index: Tensor) -> "Images":
        """Returns the images at these indices, in this order."""
        return replace(self, images=self.images[index], labels=self.labels[index])


@dataclass(frozen=True)
class ImageSets:
    """Training and test set of a published dataset.

    Attributes:
        train: training set.
        test: test set, only for the final evaluation.
    """

    train: Images
    test: Images


def check_images(images: object, channels: int | None = None) -> None:
    """Raises if these are not images (N, channels, height, width) uint8. N may be 0 only if `channels` is given."""
    if isinstance(images, Images):
        raise TypeError(complaint("images", "be a torch tensor", "Images", "pass its `images`"))
    tensor = _check_dtype("images", images, torch.uint8)
    sizes = tuple(tensor.shape)
    if tensor.dim() != 4 or 0 in sizes[0 if channels is None else 1 :]:
        must = f"have shape (N, {channels or 'channels'}, height, width), none of them 0"
        advice = "pass one image as `image[None]`" if tensor.dim() == 3 else "add the missing dimensions"
        raise ValueError(complaint("images", must, sizes, advice))
    allowed = _CHANNELS if channels is None else (channels,)
    if sizes[1] in allowed or (channels is None and sizes[3] not in allowed):
        return
    must = f"have shape (N, {channels or 'channels'}, height, width)"
    is_last = sizes[3] in allowed
    advice = "move the channels with `images.permute(0, 3, 1, 2)`" if is_last else "pass as many channels as in training"
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
    """Splits `data` at random into training images and `count` validation images; both keep their order.

    To choose hyper-parameters on labels that are as noisy as those of training, split after adding label noise.

    Args:
        data: images to split.
        count: number of validation images, from 1 to `len(data) - 1`.
        seed: random seed.

    Returns:
        The training images, and the validation images.

    Raises:
        ValueError: if `count` is out of range.

    Example:
        >>> data = Images(torch.zeros(5, 1, 4, 4, dtype=torch.uint8), torch.arange(5), tuple("abcde"))
        >>> rest, held = hold_out(data, 2, seed=0)
        >>> sorted([*rest.labels.tolist(), *held.labels.tolist()])
        [0, 1, 2, 3, 4]
    """
    if not 1 <= count < len(data):
        raise ValueError(complaint("count", f"be in [1, {len(data) - 1}]", count, "keep some images for training"))
    stream = stream_for("hold out", seed)
    order = torch.rand(len(data), dtype=torch.float64, generator=stream).argsort(stable=True)
    return data.take(order[count:].sort().values), data.take(order[:count].sort().values)
