"""Checks and conversions of labels and features that are passed as tensors, NumPy arrays or sequences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from linearcore._checks import complaint, holds

#: Class indices: an integer tensor or array, or a sequence of ints.
Labels = Tensor | npt.NDArray[np.integer] | Sequence[int]

#: Real numbers: a tensor or an array.
Numbers = Tensor | npt.NDArray[np.number]

#: Number of float64 entries that are read at a time: 32 MiB.
CHUNK = 2**22


def check_num_classes(num_classes: int) -> None:
    """Raises if `num_classes` is not an integer of at least 2."""
    if isinstance(num_classes, bool) or not isinstance(num_classes, int) or num_classes < 2:
        raise ValueError(complaint("num_classes", "be an integer of at least 2", repr(num_classes), "count the classes"))


def as_labels(labels: Labels, num_classes: int, name: str = "labels") -> Tensor:
    """Returns `labels` as an int64 tensor on their device; raises if they are not integers in 0..num_classes−1."""
    tensor = torch.as_tensor(labels)
    if tensor.numel() == 0:
        tensor = tensor.long()  # torch converts an empty list to float
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(complaint(name, "be integers", tensor.dtype, "pass class indices, for example `.long()`"))
    tensor = tensor.long()
    in_range = (tensor >= 0) & (tensor < num_classes)
    advice = "increase `num_classes`, or remove ignored labels first"
    holds(name, in_range, f"lie in 0..{num_classes - 1}", advice, values=tensor)
    return tensor


def check_one_per_row(labels: Tensor, rows: int, name: str) -> None:
    """Raises if `labels` does not have shape (rows,), with one label per row of the argument `name`."""
    if tuple(labels.shape) != (rows,):
        advice = f"pass one label per row of `{name}`"
        raise ValueError(complaint("labels", f"have shape ({rows},)", tuple(labels.shape), advice))


@dataclass(frozen=True, eq=False)
class Features:
    """Features as flattened float64 rows: (row − shift) · scale.

    Attributes:
        source: (N, …) integers or floats: an array, a memory map, or a tensor on any device.
        shift: (D,) or None.
        scale: (D,) or None.
    """

    source: Numbers
    shift: Tensor | None = None
    scale: Tensor | None = None

    @classmethod
    def prepare(cls, source: Numbers, inputs: str) -> "Features":
        """Checks `source`; computes means for "centred", and also standard deviations for "normalised", over all rows."""
        if not hasattr(source, "shape") or not hasattr(source, "dtype"):
            raise TypeError(complaint("features", "be a tensor or an array", type(source).__name__, "use numpy.asarray"))
        if len(source.shape) < 2:
            must = "have one row per label"
            raise ValueError(complaint("features", must, f"shape {tuple(source.shape)}", "pass shape (N, …)"))
        if source.dtype.is_complex if isinstance(source, Tensor) else source.dtype.kind not in "biuf":
            raise TypeError(complaint("features", "be real numbers", source.dtype, "convert them, for example to float32"))
        raw = cls(source)
        low, high, mean = raw._statistics()
        if inputs == "raw":
            return raw
        if inputs == "centred":
            return cls(source, mean)
        centred = cls(source, mean)
        variance = sum((rows.square().sum(0) for rows in centred.chunks()), torch.zeros_like(mean)) / max(1, len(source))
        # Constant features become 0. Their computed variance is rounding error; dividing by it would give noise that
        # differs between machines.
        scale = torch.where(low < high, variance.rsqrt(), 0.0)
        return cls(source, mean, scale)

    def rows(self, index: Tensor | slice) -> Tensor:
        """Returns the rows at `index`, shifted and scaled, as (k, D)."""
        if isinstance(self.source, Tensor):
            row_index = index if isinstance(index, slice) else index.to(self.source.device)
            values = self.source[row_index].detach().cpu().double()
        else:
            # NumPy would treat a one-entry tensor as a scalar index. The copy keeps a memory map unchanged.
            rows = self.source[index if isinstance(index, slice) else index.numpy()]
            values = torch.from_numpy(np.array(rows, dtype=np.float64))
        flat = values.flatten(1)
        if self.shift is not None:
            flat = flat - self.shift
        return flat if self.scale is None else flat * self.scale

    def chunks(self) -> Iterator[Tensor]:
        """Yields all rows in chunks of `chunk` rows."""
        for start in range(0, len(self.source), self.chunk):
            yield self.rows(slice(start, start + self.chunk))

    @property
    def width(self) -> int:
        """Number of features D."""
        return int(torch.Size(self.source.shape[1:]).numel())

    @property
    def chunk(self) -> int:
        """Number of rows that are read at a time."""
        return max(1, CHUNK // max(1, self.width))

    def _statistics(self) -> tuple[Tensor, Tensor, Tensor]:
        """Returns minimum, maximum and mean of each feature."""
        low = torch.full((self.width,), torch.inf, dtype=torch.float64)
        high, total = -low, torch.zeros_like(low)
        for rows in self.chunks():
            low, high = torch.minimum(low, rows.amin(0)), torch.maximum(high, rows.amax(0))
            total = total + rows.sum(0)
        # NaN propagates through minimum; ±inf is a minimum or maximum.
        if len(self.source) and not bool((low.isfinite() & high.isfinite()).all()):
            raise ValueError(complaint("features", "be finite", "NaN or infinite values", "fill or drop them first"))
        return low, high, total / max(1, len(self.source))
