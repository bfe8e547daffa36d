"""F1 of single tags."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from linearcore._checks import complaint
from linearcore.structures.costs._base import Cost

#: Name of the tag outside of all spans.
OUTSIDE = "O"


def f1_cost(correct: Tensor, predicted: Tensor, gold: Tensor, dtype: torch.dtype) -> Tensor:
    """Returns 1 − F1 from counts; 0 if nothing is predicted and nothing is in the target."""
    total = predicted + gold
    return torch.where(total == 0, 0.0, 1 - 2 * correct.to(dtype) / total.clamp(min=1))


@dataclass(frozen=True)
class TokenF1(Cost):
    """1 − F1 of the tags that count as positive: all but those outside.

        ℓ = 1 − 2 |correct| / (|predicted| + |true|)       correct: the same positive tag at the same position

    The F1 is over all positive tags of one sequence together (micro average). If neither sequence has a positive tag the
    cost is 0, where some libraries define F1 as 0. `SpanF1` counts whole spans instead. It is not additive, because the
    denominator depends on the prediction.

    Args:
        outside: index, or indices, of the tags that are not positive.

    Raises:
        ValueError: if an index is not a non-negative integer.

    Example:
        >>> target, prediction = torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 0, 0])
        >>> TokenF1(outside=0).between(prediction, target, dtype=torch.float64).item()
        0.333333
        >>> TokenF1.of_names(["B", "I", "O"])
        TokenF1(outside=(2,))
    """

    outside: int | Sequence[int]
    name: ClassVar[str] = "token-f1"
    needs_names: ClassVar[bool] = True

    def __post_init__(self) -> None:
        indices = (self.outside,) if isinstance(self.outside, int) else tuple(self.outside)
        for index in indices:
            if not isinstance(index, int) or isinstance(index, bool) or index < 0:
                advice = "pass the index of the tag that is not counted, such as 0"
                raise ValueError(complaint("outside", "hold indices of tags", repr(index), advice))
        object.__setattr__(self, "outside", indices)

    @classmethod
    def of_names(cls, names: Sequence[str]) -> "TokenF1":
        """Returns the cost where the tag named "O" is outside.

        Raises:
            ValueError: if no tag has this name.
        """
        if OUTSIDE not in names:
            advice = "pass TokenF1(outside=…) with the indices of the tags that are not counted"
            raise ValueError(complaint("names", f"contain {OUTSIDE!r} for 'token-f1'", f"{len(names)} other names", advice))
        return cls(tuple(names).index(OUTSIDE))

    @property
    def _indices(self) -> tuple[int, ...]:
        assert isinstance(self.outside, tuple)
        return self.outside

    @property
    def shared_ngram(self) -> int | None:
        # With several tags outside, sequences without a positive tag can cost 0 and differ everywhere.
        return 1 if len(set(self._indices)) <= 1 else None

    @property
    def is_zero_only_if_equal(self) -> bool:
        return len(set(self._indices)) <= 1

    def check(self, num_tags: int) -> None:
        for index in self._indices:
            if index >= num_tags:
                raise ValueError(complaint("outside", f"be below {num_tags}", index, "number the tags from 0"))

    def between(
        self, prediction: Tensor, target: Tensor, mask: Tensor | None = None, *, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        is_predicted, is_true = self._is_positive(prediction, mask), self._is_positive(target, mask)
        is_correct = (prediction == target) & is_true
        return f1_cost(is_correct.sum(-1), is_predicted.sum(-1), is_true.sum(-1), dtype)

    def _is_positive(self, tags: Tensor, mask: Tensor | None) -> Tensor:
        is_positive = torch.ones_like(tags, dtype=torch.bool)
        for index in self._indices:
            is_positive = is_positive & (tags != index)
        return is_positive if mask is None else is_positive & mask
