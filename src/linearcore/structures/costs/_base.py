"""Base class of the costs."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from linearcore._checks import complaint


class Cost(ABC):
    """Cost ℓ(prediction, target) in [0, 1] of a tag sequence; 0 if the two are equal.

    A new cost is one subclass in one file and one line in the index. It must have a `name` and `between`, which is enough
    for `Sequences`, `linearcore.analysis`, `LinearCoreChain.structured` and decoding. Other uses need the facts below,
    `site_weight`, `site_costs` or `log_similarity_mass`, and raise ValueError if the cost does not define them. A fact that
    is False, or None, means that it does not hold or is not known.
    """

    name: ClassVar[str]
    #: Whether every wrong sequence costs 1.
    is_constant: ClassVar[bool] = False
    #: Whether it is a sum over positions, up to a factor that depends on the target only; then it defines `site_costs`.
    is_additive: ClassVar[bool] = False
    #: Whether sequences without any correct tag cost 1.
    is_one_if_all_wrong: ClassVar[bool] = False
    #: Whether sequences may have other lengths than the target; then `between` takes a `prediction_mask`.
    compares_lengths: ClassVar[bool] = False
    #: Whether it depends on the names of the tags. Then it is made with `of_names`, and its name alone is not enough.
    needs_names: ClassVar[bool] = False

    @classmethod
    def of_names(cls, names: Sequence[str]) -> "Cost":
        """Returns the default cost for tags with these names, in the order of their indices.

        Raises:
            ValueError: if the cost is not defined for such tags.
        """
        return cls()

    @property
    def ngram_order(self) -> int | None:
        """The smallest known n such that it is a sum over aligned n-grams, up to a factor that depends on the target only.

        Such a cost is additive over states that hold the last n − 1 tags. None if no such n is known.
        """
        return 1 if self.is_additive else None

    @property
    def shared_ngram(self) -> int | None:
        """An n such that sequences without a common n-gram at the same place cost 1; None if no such n is known.

        `SimilarSequences(n)` then covers all sequences that cost less than 1.
        """
        return 1 if self.is_one_if_all_wrong else None

    @property
    def is_zero_only_if_equal(self) -> bool:
        """Whether the target is the only sequence with cost 0, so that it is the unique maximiser of the similarity."""
        return False

    @property
    def is_error_fraction(self) -> bool:
        """Whether it is the number of wrong tags divided by the number of tags."""
        return False

    @property
    def num_tags(self) -> int | None:
        """The number of tags that it is made for; None for any."""
        return None

    def check(self, num_tags: int) -> None:  # noqa: B027  # Most costs accept any number of tags.
        """Raises ValueError if the cost is made for another number of tags."""

    @abstractmethod
    def between(
        self, prediction: Tensor, target: Tensor, mask: Tensor | None = None, *, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        """Returns ℓ(prediction, target) (…) of sequences along the last dimension; 0 for empty sequences.

        Args:
            prediction: (…, L) tags. It broadcasts with `target`: (M, 1, L) and (M, L) give all pairs.
            target: (…, L) tags.
            mask: (…, L) booleans: the position has a tag. Masked tags may have any value.
            dtype: dtype of the result.

        Time and memory O(number of pairs of tags compared).
        """

    def site_weight(self, target: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Returns the weights (…) of positions with true tags `target` (…) in a loss over single-tag changes.

        Only for costs where all wrong tags at a position cost the same. Not called if all positions have equal weight.

        Raises:
            ValueError: if the cost does not define such weights.
        """
        advice = "use 'hamming', or `structured`, which accepts every cost"
        raise ValueError(complaint("cost", "define `site_weight`", type(self).__name__, advice))

    def site_costs(self, target: Tensor, num_tags: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Returns the cost (…, |Y|) of each tag at positions with true tags `target` (…), 0 for `target`; if `is_additive`.

        The cost of a sequence is the sum of these over its positions, times a factor that depends on the target only.
        """
        raise NotImplementedError

    def log_similarity_mass(self, target: Tensor, mask: Tensor, num_tags: int) -> Tensor | None:
        """Returns log Σ_{y'} (1 − ℓ(y', y)) (…), float64, over all sequences y'; None without a closed form.

        Args:
            target: (…, L) tags y, arbitrary where masked.
            mask: (…, L) booleans: the position has a tag.
            num_tags: |Y|.
        """
        return None
