"""What a cost is: a number for every answer and truth, and what is known about it."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from linearcore._checks import complaint


class Cost(ABC):
    """ℓ(answer, truth) in [0, 1], and 0 where the two are equal.

    A new cost is one subclass in one file and one line in `COSTS`. It must have a `name` and `between`, which is enough for
    `Sequences`, the consistency lab and `LinearCoreChain.structured`. What else is known about it it declares: the facts
    below, `site_weight`, `site_costs` and `log_similarity_mass`. Whoever needs one that is not declared refuses the cost.
    """

    name: ClassVar[str]
    #: Whether every wrong answer costs 1.
    is_constant: ClassVar[bool] = False
    #: Whether it is a sum over sites, up to a factor that depends on the truth alone; then it has `site_costs`.
    is_additive: ClassVar[bool] = False
    #: Whether an answer that agrees with the truth nowhere costs 1, so that `SimilarSequences` reaches all that cost less.
    is_one_apart: ClassVar[bool] = False

    @property
    def is_share(self) -> bool:
        """Whether it is the number of wrong sites over the number of sites."""
        return False

    def check(self, num_tags: int) -> None:  # noqa: B027  # Most costs are for any number of tags.
        """Raises ValueError if the cost is made for another number of tags."""

    @abstractmethod
    def between(
        self, answer: Tensor, truth: Tensor, mask: Tensor | None = None, *, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        """(…): ℓ(answer, truth) of sequences that lie along the last dimension. Without any site it is 0.

        Args:
            answer: (…, L) tags. It broadcasts with `truth`, so that (M, 1, L) and (M, L) give all pairs.
            truth: (…, L) tags.
            mask: (…, L) booleans: there is a site here. Tags that are masked out may be anything.
            dtype: of the result.

        Time and memory O(number of pairs of tags compared).
        """

    def site_weight(self, truth: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """(…): how much a site with the true tag `truth` (…) counts in a loss over single-site changes.

        Only for costs that charge every wrong tag of a site alike. Not asked for where all sites count alike.

        Raises:
            ValueError: if the cost has no such weights.
        """
        advice = "take 'hamming', or train with `structured`, which takes every cost"
        raise ValueError(complaint("cost", "have a weight for each site", type(self).__name__, advice))

    def site_costs(self, truth: Tensor, num_tags: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """(…, |Y|): what each tag costs at a site with the true tag `truth` (…), 0 for `truth` itself; if `is_additive`.

        The cost of an answer is the sum of these over its sites, times a factor that depends on the truth alone.
        """
        raise NotImplementedError

    def log_similarity_mass(self, truth: Tensor, mask: Tensor, num_tags: int) -> Tensor | None:
        """(…), float64: log Σ_{y'} (1 − ℓ(y', y)) over all sequences y' of a truth (…, L); None without a closed form.

        Args:
            truth: (…, L) tags, any tag where masked.
            mask: (…, L) booleans: there is a site here.
            num_tags: |Y|.
        """
        return None
