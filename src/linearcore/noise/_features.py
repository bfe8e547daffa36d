"""Features of many instances, read a few at a time and prepared as a law wants them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.noise._arguments import Numbers

#: How many numbers are in memory as float64 at a time: 32 MiB.
CHUNK = 2**22


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
        # A feature that never changes says nothing. Its spread would be the rounding of its mean, and dividing by that
        # would make noise, another on every machine, of it.
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
