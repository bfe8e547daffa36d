"""Edit distance."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from linearcore.structures.costs._base import Cost
from linearcore.structures.costs._packing import packed


@dataclass(frozen=True)
class EditDistance(Cost):
    """Levenshtein distance divided by the length of the longer sequence.

    The distance is the smallest number of insertions, deletions and substitutions that turn the prediction into the target.
    Use it if a shift by one place is a small error, as for letters, phonemes or morphological features.

    Example:
        >>> target, prediction = torch.tensor([0, 1, 2, 3]), torch.tensor([3, 0, 1, 2])
        >>> EditDistance().between(prediction, target).item()
        0.5
    """

    name: ClassVar[str] = "edit"
    compares_lengths: ClassVar[bool] = True

    @property
    def is_zero_only_if_equal(self) -> bool:
        return True

    def between(
        self,
        prediction: Tensor,
        target: Tensor,
        mask: Tensor | None = None,
        *,
        prediction_mask: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        """Returns ℓ(prediction, target) (…), as `Cost.between` does.

        Args:
            prediction, target, mask, dtype: as in `Cost.between`.
            prediction_mask: mask of predictions (…, L') that have other lengths than the targets; None for `mask`.

        Time O(number of pairs · L · L'), memory O(number of pairs · L).
        """
        left, left_length = packed(prediction, mask if prediction_mask is None else prediction_mask)
        right, right_length = packed(target, mask)
        longest = torch.maximum(left_length, right_length)
        return edit_distance(left, left_length, right, right_length).to(dtype) / longest.clamp(min=1)


def edit_distance(left: Tensor, left_length: Tensor, right: Tensor, right_length: Tensor) -> Tensor:
    """Returns the Levenshtein distances (…) of packed sequences (…, N) and (…, M) with these lengths (…).

    Anti-diagonals of the table D[i, j] are computed one after the other, for all pairs at once: D[i, j] needs only the two
    anti-diagonals before it.
    """
    rows, columns = left.shape[-1], right.shape[-1]
    shape = torch.broadcast_shapes(left.shape[:-1], right.shape[:-1])
    # Positions first: a part of an anti-diagonal is then contiguous.
    left, right = _positions_first(left, len(shape)), _positions_first(right.flip(-1), len(shape))
    dtype = torch.int16 if rows + columns < 2**15 else torch.int32
    last_diagonal, last_row = (left_length + right_length).expand(shape), left_length.expand(shape).unsqueeze(0)
    before, current = (torch.full((rows + 1, *shape), d, dtype=dtype, device=left.device) for d in (0, 0))
    distance = current[0].clone()
    for d in range(1, rows + columns + 1):
        low, high = max(1, d - columns), min(rows, d - 1)  # Rows i with i ≥ 1 and j = d − i ≥ 1.
        following = torch.full_like(current, d)  # D[0, d] = D[d, 0] = d.
        if low <= high:
            differs = left[low - 1 : high] != right[columns - d + low : columns - d + high + 1]
            shorter = torch.minimum(current[low - 1 : high], current[low : high + 1]).add_(1)
            torch.minimum(shorter, before[low - 1 : high] + differs, out=following[low : high + 1])
        before, current = current, following
        distance = torch.where(last_diagonal == d, current.gather(0, last_row).squeeze(0), distance)
    return distance


def _positions_first(tags: Tensor, dims: int) -> Tensor:
    """Returns tags (…, N) as (N, …) with `dims` further dimensions."""
    return tags.reshape((1,) * (dims + 1 - tags.dim()) + tags.shape).movedim(-1, 0).contiguous()
