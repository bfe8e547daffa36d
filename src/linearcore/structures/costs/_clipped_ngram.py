"""Clipped n-gram counts, and the product of n-gram counts."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from linearcore.structures.costs._base import Cost
from linearcore.structures.costs._grams import clipped_matches, count_products, gram_codes
from linearcore.structures.costs._ngram import check_order
from linearcore.structures.costs._packing import packed


@dataclass(frozen=True)
class ClippedNgram(Cost):
    """Fraction of the target's n-grams that the prediction does not have anywhere.

        ℓ = 1 − Σ_g min(c'(g), c(g)) / Σ_g c(g),   c(g) the number of times that the n-gram g occurs

    An n-gram that moves costs nothing, and one that occurs twice in the target must be predicted twice. Sequences with
    fewer than n tags are compared by their longest n-grams, the whole sequences.

    Other sequences than the target can cost 0: with n = 1 every permutation, with n = 2 (0, 0, 1, 0) and (0, 1, 0, 0). It is
    no sum over n-grams at fixed places, also with longer histories.

    Args:
        n: length of the n-grams.

    Raises:
        ValueError: if `n` is not a positive integer.

    Example:
        >>> target, prediction = torch.tensor([0, 1, 2, 3]), torch.tensor([3, 0, 1, 2])
        >>> ClippedNgram().between(prediction, target, dtype=torch.float64).item()
        0.333333

    Time O(L log L) for each sequence, and a matrix product over the distinct n-grams for all pairs. Synchronises with the
    GPU.
    """

    n: int = 2
    name: ClassVar[str] = "clipped-ngram"

    def __post_init__(self) -> None:
        check_order("n", self.n)

    def between(
        self, prediction: Tensor, target: Tensor, mask: Tensor | None = None, *, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        (left, _), (right, length) = packed(prediction, mask), packed(target, mask)
        cost = torch.zeros((), dtype=torch.float64, device=target.device)
        # Rows with fewer than n tags use n-grams of their own length.
        for n, codes in enumerate(gram_codes(left, right, min(self.n, target.shape[-1])), 1):
            is_used = (length == n) if n < self.n else (length >= n)
            if n == self.n or bool(is_used.any()):
                num_shared = clipped_matches(*codes)
                cost = torch.where(is_used, 1 - num_shared / (length - n + 1).clamp(min=1), cost)
        return cost.expand(torch.broadcast_shapes(left.shape[:-1], right.shape[:-1])).to(dtype)


def ngram_kernel(
    prediction: Tensor, target: Tensor, mask: Tensor | None = None, n: int = 2, *, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Returns the count kernel Σ_g c'(g) c(g) (…) of n-grams: the number of pairs of equal n-grams, one from each sequence.

    It is a positive-definite kernel, a rational kernel of two automata, but neither a similarity nor a cost: it is not
    bounded by 1, and the target need not maximise it. With n = 1, target (0, 0, 1) has 5 with itself and 6 with (0, 0, 0).
    Use `ClippedNgram` or `AlignedNgram` as a cost.

    Args:
        prediction, target, mask: as in `Cost.between`.
        n: length of the n-grams; sequences with fewer tags have none.
        dtype: dtype of the result.

    Raises:
        ValueError: if `n` is not a positive integer.

    Example:
        >>> ngram_kernel(torch.tensor([0, 0, 0]), torch.tensor([[0, 0, 1], [0, 0, 0]]), n=1)
        tensor([6., 9.])
    """
    check_order("n", n)
    *_, codes = gram_codes(packed(prediction, mask)[0], packed(target, mask)[0], n)
    return count_products(*codes).to(dtype)
