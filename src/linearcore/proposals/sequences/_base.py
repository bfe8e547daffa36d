"""What a proposal over tag sequences is: a sampler that knows its own probabilities."""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from linearcore._checks import complaint, shape
from linearcore.structures import Sites


class SequenceProposal(ABC):
    """A law D(· | y) on the tag sequences of each chain of a padded batch, given a reference y, mostly the truth.

    Only sites count: a chain has J of them, the positions of `sites.mask` that are on, and |Y|^J sequences. A chain
    without any has one, the empty sequence, which is drawn as zeros with probability 1.

    To add one, derive a frozen dataclass and write `_sample`, which may put any tag where masked, and `_log_prob`, which
    may give anything for a chain without tags. Neither may read a tensor back from its device.

    Attributes:
        fewest_tags: the least |Y| for which there is something to draw.
    """

    fewest_tags: ClassVar[int] = 1

    def sample(
        self, tags: Tensor, sites: Sites, num_tags: int, num_samples: int, generator: torch.Generator | None = None
    ) -> Tensor:
        """(K, L, B): K independent draws for every chain, 0 where masked.

        Args:
            tags: (L, B) in [0, |Y|), the references y; any number where masked. Or (K, L, B), one reference for each
                draw, as for y'' given y' in Algorithm 1.
            sites: where the tags sit.
            num_tags: |Y|.
            num_samples: K.
            generator: on the device of `tags`; None is torch's own.

        Raises:
            TypeError: if `num_tags` or `num_samples` is no integer.
            ValueError: if one of them is too small, or `tags` has another shape.

        Time and memory O(K·L·B), whatever |Y| is. Reads nothing back from a device.
        """
        self._check(tags, sites, num_tags, num_samples)
        return self._sample(tags, sites, num_tags, num_samples, generator).masked_fill(~sites.mask, 0)

    def log_prob(self, draws: Tensor, tags: Tensor, sites: Sites, num_tags: int) -> Tensor:
        """(K, B): log D(y' | y) of `draws`, float64; −inf where it cannot be drawn.

        Args:
            draws: (K, L, B) in [0, |Y|), from this proposal or from anywhere; any number where masked.
            tags: (L, B) or (K, L, B), the references y as in `sample`.
            sites: where the tags sit.
            num_tags: |Y|.

        Raises:
            TypeError: if `num_tags` is no integer.
            ValueError: if it is too small, or `draws` or `tags` has another shape.

        Time and memory O(K·L·B). Reads nothing back from a device.
        """
        num_samples = len(draws) if draws.dim() == 3 else 1
        shape("draws", draws, (num_samples, *sites.mask.shape), "give K sequences for every chain, time before batch")
        self._check(tags, sites, num_tags, num_samples)
        return self._log_prob(draws, tags, sites, num_tags).masked_fill(num_sites(sites) == 0, 0.0)

    def log_count(self, sites: Sites, num_tags: int) -> Tensor | None:
        """(B,), float64: the log of the number of sequences that can be drawn, all of them not the reference.

        None: this is not known, or all that differ from the reference can be drawn.
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
        _check_count("num_samples", num_samples, 1, "say how many sequences a chain gets")
        each = (num_samples,) if tags.dim() == 3 else ()
        shape("tags", tags, (*each, *sites.mask.shape), "give one reference for every chain, or for every draw of it")

    def _check_num_tags(self, num_tags: int) -> None:
        _check_count("num_tags", num_tags, self.fewest_tags, "there is nothing to choose from")


def num_sites(sites: Sites) -> Tensor:
    """(B,): J, the number of tags of every chain."""
    return sites.mask.sum(0)


def _check_count(name: str, number: int, least: int, advice: str) -> None:
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(complaint(name, "be an integer", repr(number), advice))
    if number < least:
        raise ValueError(complaint(name, f"be at least {least}", number, advice))
