"""Proposal by class frequency."""

from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.proposals._base import Proposal, uniform


@dataclass(frozen=True, eq=False, kw_only=True)
class Unigram(Proposal):
    """Distribution by class frequency, q(v) ∝ (count_v + smoothing)^power.

    Frequent classes are confused most often. A power below 1 samples rare classes more often. With smoothing=0 a class with
    count 0 is never sampled, and the estimate is unbiased for the sum over the other classes only.

    Args:
        shared: as in `Proposal`.
        counts: (n,) number of training examples per class.
        power: exponent; 1 gives the class frequencies, 0 gives `Uniform`.
        smoothing: constant added to every count.

    Example:
        >>> Unigram(counts=torch.tensor([7, 0, 1]), power=1.0).log_prob(torch.arange(3), 3).exp()
        tensor([0.7273, 0.0909, 0.1818])

    Time: O(n) once, then O(log n) per sample.
    """

    counts: Tensor | None = None
    power: float = 0.75
    smoothing: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.counts, Tensor) or self.counts.dim() != 1 or self.counts.numel() == 0:
            got = type(self.counts).__name__ if not isinstance(self.counts, Tensor) else tuple(self.counts.shape)
            raise ValueError(complaint("counts", "be a tensor of shape (n,)", got, "count the classes of the training data"))
        mass = (self.counts.double() + self.smoothing) ** self.power
        if self.smoothing == 0:
            mass = mass.masked_fill(self.counts == 0, 0.0)
        if not bool((self.counts >= 0).all() & (mass >= 0).all()) or not 0 < float(mass.sum()) < float("inf"):
            must, got = (
                "be non-negative, and not all zero",
                f"counts from {float(self.counts.min()):g} to {float(self.counts.max()):g}",
            )
            raise ValueError(complaint("counts", must, got, "count the classes of the training data"))
        object.__setattr__(self, "_log_mass", (mass / mass.sum()).log().float())
        object.__setattr__(self, "_cumulative", mass.cumsum(0) / mass.sum())

    def sample(self, size: tuple[int, ...], num_classes: int, like: Tensor, generator: torch.Generator | None) -> Tensor:
        cumulative = self._table("_cumulative", num_classes, like)
        # `right=True` skips classes with probability 0.
        return torch.searchsorted(cumulative, uniform(size, like, generator), right=True).clamp(max=num_classes - 1)

    def log_prob(self, index: Tensor, num_classes: int) -> Tensor:
        return self._table("_log_mass", num_classes, index)[index]

    def _table(self, name: str, num_classes: int, like: Tensor) -> Tensor:
        table: Tensor = self.__dict__[name]
        if len(table) != num_classes:
            advice = "count all classes, in their order"
            raise ValueError(complaint("counts", f"be for {num_classes} classes", len(table), advice))
        if table.device != like.device:  # Copied to the device once, and stored for the next call.
            table = table.to(like.device)
            object.__setattr__(self, name, table)
        return table
