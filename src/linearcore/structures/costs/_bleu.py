"""Sentence BLEU."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from linearcore._checks import between, complaint, one_of
from linearcore.structures.costs._base import Cost
from linearcore.structures.costs._grams import clipped_matches, gram_codes
from linearcore.structures.costs._ngram import check_order
from linearcore.structures.costs._packing import packed

#: Smoothing methods with the default of their value; None for methods without one.
SMOOTHINGS: dict[str, float | None] = {"none": None, "floor": 0.1, "add-k": 1.0, "exp": None}


@dataclass(frozen=True)
class Bleu(Cost):
    """1 − BLEU of one sequence against one reference, with the smoothing methods and the numbers of sacrebleu.

        BLEU = min(1, exp(1 − |y| / |y'|)) · (Π_{n ≤ N} p_n)^{1/N}      p_n: clipped n-gram precision

    The orders n are those up to `max_order` that the prediction is long enough for (sacrebleu's `effective_order`), so a
    short target has BLEU 1 with itself. Without a single correct tag BLEU is 0. Predictions on a chain have the length of
    the target, and the first factor is 1. Other sequences than the target can cost 0 if n-grams are repeated.

    Args:
        max_order: largest n.
        smooth: precision of an order without a match. "exp": 1/2, 1/4, … of one match, as in mteval; "floor": `value` of
            one match; "add-k": `value` is added to all counts from n = 2; "none": 0, so BLEU is 0.
        value: parameter of "floor" (at most 1; default 0.1) and "add-k" (default 1).

    Raises:
        ValueError: if an argument is out of range.

    Example:
        >>> target, prediction = torch.tensor([0, 1, 2, 3, 4]), torch.tensor([0, 1, 2, 3, 0])
        >>> 1 - Bleu().between(prediction, target, dtype=torch.float64).item()
        0.66874

    Reference: Papineni et al. (2002); Chen and Cherry (2014) for the smoothing.
    """

    max_order: int = 4
    smooth: str = "exp"
    value: float | None = None
    name: ClassVar[str] = "bleu"
    compares_lengths: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_order("max_order", self.max_order)
        one_of("smooth", self.smooth, SMOOTHINGS)
        default = SMOOTHINGS[self.smooth]
        if default is None and self.value is not None:
            advice = "omit it, or use smooth='floor' or 'add-k'"
            raise ValueError(complaint("value", f"be None with smooth={self.smooth!r}", self.value, advice))
        if default is not None:
            value = default if self.value is None else self.value
            # With a larger floor an order without a match could have a precision above 1.
            between("value", value, 0.0, 1.0 if self.smooth == "floor" else 1e9, f"for example {default:g}")
            object.__setattr__(self, "value", value)

    def between(
        self,
        prediction: Tensor,
        target: Tensor,
        mask: Tensor | None = None,
        *,
        prediction_mask: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        """Returns ℓ(prediction, target) (…), as `Cost.between` does. Computed in float64.

        Args:
            prediction, target, mask, dtype: as in `Cost.between`.
            prediction_mask: mask of predictions (…, L') that have other lengths than the targets; None for `mask`.

        Time O(L log L) for each sequence and order, and a matrix product over the distinct n-grams for all pairs.
        Synchronises with the GPU.
        """
        left, length = packed(prediction, mask if prediction_mask is None else prediction_mask)
        right, target_length = packed(target, mask)
        matches = [clipped_matches(*codes) for codes in gram_codes(left, right, self.max_order)]
        log_precision, order = self._mean_log_precision(matches, length)
        ratio = target_length.double() / length.clamp(min=1)
        bleu = torch.exp(torch.clamp(1 - ratio, max=0.0) + log_precision / order.clamp(min=1))
        bleu = torch.where(matches[0] == 0, 0.0, bleu)
        return (1 - torch.where(length + target_length == 0, 1.0, bleu)).to(dtype)

    def _mean_log_precision(self, matches: list[Tensor], length: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the sum (…) of the logarithms of the precisions, and the number (…) of orders in it."""
        total_log = torch.zeros_like(matches[0])
        order = torch.zeros_like(length, dtype=torch.float64)
        factor = torch.ones_like(matches[0])
        for n, correct in enumerate(matches, 1):
            total = (length - n + 1).clamp(min=0).double()
            added = self.value if self.smooth == "add-k" and n > 1 else 0.0
            assert added is not None
            correct, total = correct + added, total + added
            if self.smooth == "exp":
                factor = torch.where((correct == 0) & (total > 0), factor / 2, factor)
                correct = torch.where(correct == 0, factor, correct)
            elif self.smooth == "floor":
                assert self.value is not None
                correct = torch.where(correct == 0, self.value, correct)
            is_used = total > 0
            total_log = total_log + torch.where(is_used, (correct / total.clamp(min=1e-300)).log(), 0.0)
            order = order + is_used
        return total_log, order
