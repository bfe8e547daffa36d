"""Classes by how often they were seen."""

from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.proposals._base import Proposal, uniform


@dataclass(frozen=True, eq=False, kw_only=True)
class Unigram(Proposal):
    """q(v) ∝ (count_v + smoothing)^power.

    Frequent classes are the usual confusions; a power below 1 lets the rare ones come too. With a smoothing of 0 a class
    that was never seen is never drawn, and the estimate is one of the sum over the others.

    Args:
        shared: as in `Proposal`.
        counts: (n,) how often each class was seen.
        power: 1 for the frequencies themselves, 0 for `Uniform`.
        smoothing: added to every count.

    Example:
        >>> Unigram(counts=torch.tensor([7, 0, 1]), power=1.0).log_prob(torch.arange(3), 3).exp()
        tensor([0.7273, 0.0909, 0.1818])

    Time: O(n) once, then O(log n) a draw.
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
            must = "be non-negative, and not all zero"
            raise ValueError(complaint("counts", must, "others", "count the classes of the training data"))
        object.__setattr__(self, "_log_mass", (mass / mass.sum()).log().float())
        object.__setattr__(self, "_cumulative", mass.cumsum(0) / mass.sum())

    def sample(self, size: tuple[int, ...], num_classes: int, like: Tensor, generator: torch.Generator | None) -> Tensor:
        cumulative = self._table("_cumulative", num_classes, like)
        # `right`: a class without mass, whose step has height 0, is passed over.
        return torch.searchsorted(cumulative, uniform(size, like, generator), right=True).clamp(max=num_classes - 1)

    def log_prob(self, index: Tensor, num_classes: int) -> Tensor:
        return self._table("_log_mass", num_classes, index)[index]

    def _table(self, name: str, num_classes: int, like: Tensor) -> Tensor:
        table: Tensor = self.__dict__[name]
        if len(table) != num_classes:
            advice = "count all classes, in their order"
            raise ValueError(complaint("counts", f"be for {num_classes} classes", len(table), advice))
        if table.device != like.device:  # Moved once: the next call finds it there.
            table = table.to(like.device)
            object.__setattr__(self, name, table)
        return table
