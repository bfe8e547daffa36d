"""The classes of the batch itself, for sure, and draws for the rest."""

from dataclasses import dataclass

import torch
from torch import Tensor

from linearcore.proposals._base import Candidates
from linearcore.proposals._completed import Completed, completed


@dataclass(frozen=True, kw_only=True)
class InBatch(Completed):
    """The classes that are some row's target, each with weight 1, and draws that stand for all the others.

        Σ_{v≠y} f(v) = Σ_{v∈batch, v≠y} f(v) + E_{v~q} 1[v ∉ batch] f(v)/q(v)

    Frequent classes are nearly always in the batch, so that a few draws do for the rest, and the bias of a sampled log-odds
    is small; nothing has to be counted beforehand. With 16 or 64 draws it erred least in the study of Turkish tags
    (`docs/many-classes.md`). Take `Unigram(power=0.75)` where M more candidates cost too much: where few classes of a batch
    come twice, and for chains whose transitions are a full matrix (no `rank`), whose gradient gets N·(M + K) entries.

    It is unbiased for every batch, since which classes are in it does not depend on the draws. A row that is ignored
    or masked has the target 0 for the losses and heads of this library: class 0 then is in the batch, which is one candidate
    more and no bias.

    Args:
        shared: as in `Proposal`, for the draws. The classes of the batch are one set in any case, but with draws of their
            own all rows get a copy of it, and M + K rows of a weight matrix each: seldom worth it.
        rest: the law of the draws; its `shared` is not asked.

    Example:
        >>> candidates = InBatch().candidates(torch.tensor([3, 5, 3]), num_classes=1000, num_samples=4)
        >>> candidates.index.shape, candidates.log_weight[:, :2]
        (torch.Size([1, 6]), tensor([[-inf, 0.],
                [0., -inf],
                [-inf, 0.]]))

    Time O(N·log N) and O(N·(M + K)), the second in memory, too. On a CPU M is how many classes are in the batch. That number
    is not known elsewhere without waiting for the device, nor to a compiler: there M = min(N, n), and the places that are
    too many weigh nothing. Shapes then depend on N, n and K alone, as a CUDA graph needs it.
    """

    def candidates(
        self, target: Tensor, num_classes: int, num_samples: int, generator: torch.Generator | None = None
    ) -> Candidates:
        """The M classes of the batch and K draws for targets (N,)."""
        ordered = target.long().sort().values
        known, is_idle = _distinct(ordered, num_classes)
        drawn = super().candidates(target, num_classes, num_samples, generator)
        # Not `torch.isin`, which may wait for the device.
        is_known = torch.searchsorted(ordered, drawn.index) < torch.searchsorted(ordered, drawn.index, right=True)
        idle = (known == target.unsqueeze(-1)) | is_idle
        return completed(known.expand(len(drawn.index), -1), idle, drawn, is_known)


def _distinct(ordered: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    """Each of the sorted classes (N,) once, and which places are too many: (M,) both.

    `torch.unique` has a shape that depends on what is in the tensor. A CPU can be asked for it, and products as wide as N
    would take it several times as long; a GPU hardly notices them, and there M = min(N, n). The places that are too many
    repeat some class of the batch: an optimiser for sparse gradients touches no row on their account.
    """
    is_first = torch.ones_like(ordered, dtype=torch.bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    number = is_first.sum()
    if ordered.device.type == "cpu" and not torch.compiler.is_compiling():
        size = int(number)
    else:
        size = min(len(ordered), num_classes)
    place = is_first.cumsum(0) - 1
    # Repetitions go to one place, with one value.
    known = ordered[:size].scatter(0, place, ordered)
    return known, torch.arange(size, device=ordered.device) >= number
