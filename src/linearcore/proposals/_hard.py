"""Competitors that are known to matter, for sure, and draws for the rest."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.proposals._base import Candidates
from linearcore.proposals._completed import Completed, completed


@dataclass(frozen=True, eq=False, kw_only=True)
class Hard(Completed):
    """For every target a list of hard competitors, each with weight 1, and draws that stand for all the others.

        Σ_{v≠y} f(v) = Σ_{v∈hard(y)} f(v) + E_{v~q} 1[v ∉ hard(y) ∪ {y}] f(v)/q(v)

    It is unbiased for whatever lists, also old ones, which only cost variance; `hardest` makes them from a model's own
    weights. What the draws must cover is small where the lists are good, and then the bias of a sampled log-odds is, too.

    Take `InBatch` or `Unigram(power=0.75)` first. The lists here are each target's own, so that a step costs what own draws
    cost, with `shared` as well: about 400 ms where shared draws take about 20, in the study of Turkish tags on a CPU
    (`docs/many-classes.md`; N = 800, K = 64, lists of 16). In equal time it erred at 38 % at best there, and they at 17 %.

    Args:
        shared: as in `Proposal`, for the draws; the lists are each target's own.
        table: (n, k) the hard competitors of every class. The class itself and repetitions count for nothing.
        rest: the law of the draws.

    Example:
        >>> hard = Hard(table=torch.tensor([[1, 2], [0, 2], [1, 0], [0, 1]]))
        >>> hard.candidates(torch.tensor([3]), num_classes=4, num_samples=1).index[:, :2]
        tensor([[0, 1]])

    Time and memory O(N·(K + k)), and O(N·K·k) to see which draws are in the lists.
    """

    table: Tensor | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.table, Tensor) or self.table.dim() != 2 or not _is_integer(self.table):
            got = type(self.table).__name__ if not isinstance(self.table, Tensor) else tuple(self.table.shape)
            raise ValueError(complaint("table", "be integers of shape (n, k)", got, "for example hardest(weight, 16)"))
        super().__post_init__()

    def candidates(
        self, target: Tensor, num_classes: int, num_samples: int, generator: torch.Generator | None = None
    ) -> Candidates:
        """The k hard competitors and K draws for targets (N,)."""
        assert self.table is not None
        if len(self.table) != num_classes:
            advice = "list the competitors of all classes, in their order"
            raise ValueError(complaint("table", f"be for {num_classes} classes", len(self.table), advice))
        if self.table.device != target.device:
            object.__setattr__(self, "table", self.table.to(target.device))
        known = self.table[target]
        drawn = super().candidates(target, num_classes, num_samples, generator)
        index = drawn.index.expand(target.shape[0], -1)
        is_known = (index.unsqueeze(-1) == known.unsqueeze(-2)).any(-1)
        repeated = (known.unsqueeze(-1) == known.unsqueeze(-2)).tril(-1).any(-1)
        idle = repeated | (known == target.unsqueeze(-1))
        return completed(known, idle, drawn._replace(index=index), is_known)


def _is_integer(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


@torch.no_grad()
def hardest(weight: Tensor, top: int, chunk: int = 1024) -> Tensor:
    """(n, k): for each class the k others whose rows of `weight` (n, d) point most its way (largest inner product).

    For a projection's weight these are the classes that a model takes for it first. Time O(n²·d), in pieces of `chunk` rows;
    once in a few hundred steps is enough, since old lists are unbiased as well.
    """
    num_classes = weight.shape[0]
    top = min(top, num_classes - 1)
    rows = []
    for start in range(0, num_classes, chunk):
        scores = weight[start : start + chunk] @ weight.t()
        own = torch.arange(start, start + len(scores), device=weight.device).unsqueeze(-1)
        rows.append(scores.scatter_(-1, own, -math.inf).topk(top).indices)
    return torch.cat(rows)
