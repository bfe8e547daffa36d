"""Base class of proposals over tag sequences."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from linearcore._checks import complaint, shape
from linearcore.structures import Sites


class SequenceProposal(ABC):
    """Distribution D(· | y) over tag sequences, given a reference y, usually the true sequence.

    A sequence has J tags, the unmasked positions of `sites`, so there are |Y|^J sequences. The only sequence with J = 0 is
    the empty one; it is sampled as zeros with probability 1.

    To add a proposal, derive a frozen dataclass and implement `_sample`, which may return any tag at masked positions, and
    `_log_prob`, which may return any value for empty sequences. Neither may synchronise with the GPU.

    Attributes:
        min_num_tags: smallest |Y| for which the proposal is defined.
    """

    min_num_tags: ClassVar[int] = 1

    @property
    def has_full_support(self) -> bool:
        """Whether every sequence has a positive probability for every reference."""
        return False

    def sample(
        self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int, generator: torch.Generator | None = None
    ) -> Tensor:
        """Returns K independent samples (K, L, B) for each sequence, 0 where masked.

        Args:
            tags: (L, B) in [0, |Y|), the references y; arbitrary where masked. Or (K, L, B), one reference for each
                sample, as for y'' given y' in Algorithm 1.
            sites: positions of the tags and their neighbours.
            num_tags: |Y|.
            num_samples: K.
            generator: random number generator on the device of `tags`; None for torch's default.

        Raises:
            TypeError: if `num_tags` or `num_samples` is not an integer.
            ValueError: if `num_tags` or `num_samples` is too small, or the shape of `tags` does not fit.

        Time and memory O(K·L·B) for any |Y|. No GPU synchronisation.
        """
        self._check(tags, sites, num_tags, num_samples)
        return self._sample(tags, sites, num_tags, num_samples, generator).masked_fill(~sites.mask, 0)

    def log_prob(self, draws: Tensor, tags: Tensor, sites: Sites, num_tags: int) -> Tensor:
        """Returns log D(y' | y) (K, B) of `draws`, float64; −inf for sequences outside the support.

        Args:
            draws: (K, L, B) in [0, |Y|), from this proposal or any other source; arbitrary where masked.
            tags: (L, B) or (K, L, B), the references y as in `sample`.
            sites: positions of the tags and their neighbours.
            num_tags: |Y|.

        Raises:
            TypeError: if `num_tags` is not an integer.
            ValueError: if `num_tags` is too small, or the shape of `draws` or `tags` does not fit.

        Time and memory O(K·L·B). No GPU synchronisation.
        """
        num_samples = len(draws) if draws.dim() == 3 else 1
        shape("draws", draws, (num_samples, *sites.mask.shape), "pass K sequences for each example, time before batch")
        self._check(tags, sites, num_tags, num_samples)
        return self._log_prob(draws, tags, sites, num_tags).masked_fill(num_sites(sites) == 0, 0.0)

    def log_count(self, sites: Sites, num_tags: int) -> Tensor | None:
        """Returns the log of the number of sequences in the support (B,), float64, if it excludes the reference.

        None if the number is unknown, or if the support contains all sequences other than the reference.
        """
        return None

    @abstractmethod
    def _sample(
        self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int, generator: torch.Generator | None
    ) -> Tensor: ...

    @abstractmethod
    def _log_prob(self, draws: Tensor, tags: Tensor, sites: Sites, num_tags: int) -> Tensor: ...

    def _check(self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int) -> None:
        self._check_num_tags(num_tags)
        check_count("num_samples", num_samples, 1, "pass the number of samples per sequence")
        sample_shape = (num_samples,) if tags.dim() == 3 else ()
        shape("tags", tags, (*sample_shape, *sites.mask.shape), "pass one reference for each sequence, or for each sample")

    def _check_num_tags(self, num_tags: int) -> None:
        check_count("num_tags", num_tags, self.min_num_tags, "this proposal needs at least that many")


def num_sites(sites: Sites) -> Tensor:
    """Returns J (B,), the number of tags of each sequence."""
    return sites.mask.sum(0)


def check_count(name: str, number: int, minimum: int, advice: str) -> None:
    """Raises unless `number` is an integer of at least `minimum`."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(complaint(name, "be an integer", repr(number), advice))
    if number < minimum:
        raise ValueError(complaint(name, f"be at least {minimum}", number, advice))
