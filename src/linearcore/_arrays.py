"""Labels and features as users pass them: tensors, arrays and sequences, checked and converted."""

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

#: The number of float64 entries that are in memory at a time: 32 MiB.
CHUNK = 2**22


def check_num_classes(num_classes: int) -> None:
    """Raises unless there are at least two classes."""
    if isinstance(num_classes, bool) or not isinstance(num_classes, int) or num_classes < 2:
        raise ValueError(complaint("num_classes", "be an integer of at least 2", repr(num_classes), "count the classes"))


def as_labels(labels: Labels, num_classes: int, name: str = "labels") -> Tensor:
    """Returns `labels` as int64 on their own device, or raises unless they are integers in 0..n−1."""
    tensor = torch.as_tensor(labels)
    if tensor.numel() == 0:
        tensor = tensor.long()  # torch calls an empty list floating point
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise TypeError(complaint(name, "be integers", tensor.dtype, "pass class indices, for example `.long()`"))
    tensor = tensor.long()
    in_range = (tensor >= 0) & (tensor < num_classes)
    holds(name, in_range, f"lie in 0..{num_classes - 1}", "raise `num_classes`, or take out ignored labels first")
    return tensor


def one_per_row(labels: Tensor, rows: int, name: str) -> None:
    """Raises unless the labels are a vector with one entry for every row of the argument called `name`."""
    if tuple(labels.shape) != (rows,):
        advice = f"pass as many labels as `{name}` has rows, flattened"
        raise ValueError(complaint("labels", f"have shape ({rows},)", tuple(labels.shape), advice))


@dataclass(frozen=True, eq=False)
class Features:
    """Rows of features, flattened, in float64, minus `shift` and times `scale`.

    Attributes:
        source: (N, …) as the user passed it: integers or floating point, a memory map or a tensor on any device.
        shift: (D,) or None.
        scale: (D,) or None.
    """

    source: Numbers
    shift: Tensor | None = None
    scale: Tensor | None = None

    @classmethod
    def prepared(cls, source: Numbers, inputs: str) -> "Features":
        """Checks all numbers, and for "centred" and "normalised" takes means and spreads over all rows."""
        if not hasattr(source, "shape") or not hasattr(source, "dtype"):
            raise TypeError(complaint("features", "be a tensor or an array", type(source).__name__, "see numpy.asarray"))
        if len(source.shape) < 2:
            must = "have a row for every label"
            raise ValueError(complaint("features", must, f"shape {tuple(source.shape)}", "pass shape (N, …)"))
        if source.dtype.is_complex if isinstance(source, Tensor) else source.dtype.kind not in "biuf":
            raise TypeError(complaint("features", "be real numbers", source.dtype, "pass float32, for example"))
        plain = cls(source)
        low, high, mean = plain._extent()
        if inputs == "raw":
            return plain
        if inputs == "centred":
            return cls(source, mean)
        centred = cls(source, mean)
        variance = sum((rows.square().sum(0) for rows in centred.chunks()), torch.zeros_like(mean)) / max(1, len(source))
        # A constant feature becomes 0. Its computed spread is the rounding error of its mean, and dividing by that would
        # make noise of it that differs between machines.
        scale = torch.where(low < high, variance.rsqrt(), 0.0)
        return cls(source, mean, scale)

    def rows(self, index: Tensor | slice) -> Tensor:
        """(k, D): some rows, prepared."""
        if isinstance(self.source, Tensor):
            place = index if isinstance(index, slice) else index.to(self.source.device)
            values = self.source[place].detach().cpu().double()
        else:
            # An index of one entry would be a number to numpy if it were a tensor; and a memory map must not be written to.
            piece = self.source[index if isinstance(index, slice) else index.numpy()]
            values = torch.from_numpy(np.array(piece, dtype=np.float64))
        flat = values.flatten(1)
        if self.shift is not None:
            flat = flat - self.shift
        return flat if self.scale is None else flat * self.scale

    def chunks(self) -> Iterator[Tensor]:
        """All rows, some at a time."""
        for start in range(0, len(self.source), self.chunk):
            yield self.rows(slice(start, start + self.chunk))

    @property
    def width(self) -> int:
        """D."""
        return int(torch.Size(self.source.shape[1:]).numel())

    @property
    def chunk(self) -> int:
        """How many rows are read at a time."""
        return max(1, CHUNK // max(1, self.width))

    def _extent(self) -> tuple[Tensor, Tensor, Tensor]:
        """Least, greatest and mean value of every feature."""
        low = torch.full((self.width,), torch.inf, dtype=torch.float64)
        high, total = -low, torch.zeros_like(low)
        for rows in self.chunks():
            low, high = torch.minimum(low, rows.amin(0)), torch.maximum(high, rows.amax(0))
            total = total + rows.sum(0)
        # NaN stays NaN in a minimum, and infinity is one of the two ends.
        if len(self.source) and not bool((low.isfinite() & high.isfinite()).all()):
            raise ValueError(complaint("features", "be finite", "NaN or infinite ones", "fill or drop them first"))
        return low, high, total / max(1, len(self.source))
