"""Proposal with a list of hard negatives per class."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.proposals._base import Candidates
from linearcore.proposals._fixed import FixedPlusSamples, join_candidates


@dataclass(frozen=True, eq=False, kw_only=True)
class HardNegatives(FixedPlusSamples):
    """A list of hard negatives per class, each with weight 1, plus importance samples of the other classes.

        Σ_{v≠y} f(v) = Σ_{v∈hard(y)} f(v) + E_{v~q} 1[v ∉ hard(y) ∪ {y}] f(v)/q(v)

    The estimate is unbiased for any lists; outdated lists only increase its variance. `hard_negatives` computes lists from
    the weights of the last layer. Good lists also reduce the bias of a sampled log-odds loss.

    Try `InBatch` or `Unigram(power=0.75)` first. Lists differ between rows, so a step is as slow as with `shared=False`,
    even if `shared=True`: about 400 ms, against 20 ms with shared samples, for Turkish tags on a CPU
    (`docs/many-classes.md`; N = 800, K = 64, lists of 16). After equal training time the best test error was 28.7 %
    (K = 16), against 17 % with shared samples.

    Args:
        shared: as in `Proposal`, for the samples only.
        table: (n, k), for each of the n classes k hard negatives. The class itself and repetitions are ignored.
        rest: proposal for the other classes.

    Example:
        >>> proposal = HardNegatives(table=torch.tensor([[1, 2], [0, 2], [1, 0], [0, 1]]))
        >>> proposal.candidates(torch.tensor([3]), num_classes=4, num_samples=1).index[:, :2]
        tensor([[0, 1]])

    Time and memory for N rows and K samples: O(N·(K + k)), plus O(N·K·k) to find samples that are in the lists.
    """

    table: Tensor | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.table, Tensor) or self.table.dim() != 2 or not _is_integer(self.table):
            got = type(self.table).__name__ if not isinstance(self.table, Tensor) else tuple(self.table.shape)
            advice = "for example hard_negatives(weight, 16)"
            raise ValueError(complaint("table", "be integers of shape (n, k)", got, advice))
        super().__post_init__()

    def candidates(
        self, target: Tensor, num_classes: int, num_samples: int, generator: torch.Generator | None = None
    ) -> Candidates:
        """Returns the k hard negatives and K samples for targets (N,)."""
        assert self.table is not None
        if len(self.table) != num_classes:
            advice = "list the competitors of all classes, in their order"
            raise ValueError(complaint("table", f"be for {num_classes} classes", len(self.table), advice))
        if self.table.device != target.device:
            object.__setattr__(self, "table", self.table.to(target.device))
        hard = self.table[target]
        samples = super().candidates(target, num_classes, num_samples, generator)
        index = samples.index.expand(target.shape[0], -1)
        is_hard = (index.unsqueeze(-1) == hard.unsqueeze(-2)).any(-1)
        is_repeated = (hard.unsqueeze(-1) == hard.unsqueeze(-2)).tril(-1).any(-1)
        is_ignored = is_repeated | (hard == target.unsqueeze(-1))
        return join_candidates(hard, is_ignored, samples._replace(index=index), is_hard)


def _is_integer(tensor: Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool)


@torch.no_grad()
def hard_negatives(weight: Tensor, top: int, chunk: int = 1024) -> Tensor:
    """Returns for each class the `top` other classes with the largest inner product of their rows of `weight` (n, d).

    For the weight of a last layer these are the classes that the model confuses most often. The result has shape (n, top).
    Recompute it every few hundred steps; outdated lists stay unbiased. Time: O(n²·d), computed `chunk` rows at a time.
    """
    num_classes = weight.shape[0]
    top = min(top, num_classes - 1)
    rows = []
    for start in range(0, num_classes, chunk):
        scores = weight[start : start + chunk] @ weight.t()
        diagonal = torch.arange(start, start + len(scores), device=weight.device).unsqueeze(-1)
        rows.append(scores.scatter_(-1, diagonal, -math.inf).topk(top).indices)
    return torch.cat(rows)
