"""Aligned n-gram cost."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.structures.costs._base import Cost
from linearcore.structures.costs._packing import packed


def check_order(name: str, order: object) -> None:
    """Raises ValueError if the length of n-grams is not a positive integer."""
    if not isinstance(order, int) or isinstance(order, bool) or order < 1:
        raise ValueError(complaint(name, "be a positive integer", repr(order), "pass the length of the n-grams, such as 2"))


@dataclass(frozen=True)
class AlignedNgram(Cost):
    """Fraction of the target's n-grams that the prediction does not have at the same place.

        ℓ = 1 − (1/(L − n + 1)) Σ_j 1[y'_j = y_j, …, y'_{j+n−1} = y_{j+n−1}]

    Use it if runs of n correct tags are useful and single ones are not. A sequence with fewer than n tags is one n-gram, so
    its cost is 0 or 1. n = 1 is the Hamming cost. It is a sum over states that hold the last n − 1 tags.

    Args:
        n: length of the n-grams.

    Raises:
        ValueError: if `n` is not a positive integer.

    Example:
        >>> target, prediction = torch.tensor([0, 0, 1, 2, 1]), torch.tensor([0, 0, 1, 1, 1])
        >>> AlignedNgram().between(prediction, target).item()
        0.5
    """

    n: int = 2
    name: ClassVar[str] = "ngram"
    is_one_if_all_wrong: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_order("n", self.n)

    @property
    def ngram_order(self) -> int:
        return self.n

    @property
    def shared_ngram(self) -> int:
        return self.n

    @property
    def is_zero_only_if_equal(self) -> bool:
        return True

    def between(
        self, prediction: Tensor, target: Tensor, mask: Tensor | None = None, *, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        is_correct, length = packed(prediction == target, mask, padding=False)
        width = min(self.n, is_correct.shape[-1])
        if width == 0:
            return torch.zeros_like(length, dtype=dtype)
        num_kept = is_correct.unfold(-1, width, 1).all(-1).sum(-1)
        num_kept = torch.where(length < self.n, (is_correct.sum(-1) == length).long(), num_kept)
        return 1 - num_kept.to(dtype) / (length - self.n + 1).clamp(min=1)

    def log_similarity_mass(self, target: Tensor, mask: Tensor, num_tags: int) -> Tensor:
        # One n-gram is kept and the other L − n tags are free, for each place with weight 1/(L − n + 1).
        return math.log(num_tags) * (mask.sum(-1) - self.n).clamp(min=0).double()
