"""Random tags, random runs of positions and sequences without masked positions, used by the proposals."""

import torch
from torch import Tensor

from linearcore.proposals.sequences._base import num_sites
from linearcore.structures import Sites


def random_tags(num_tags: int, num_samples: int, sites: Sites, generator: torch.Generator | None) -> Tensor:
    """Returns tags (K, L, B), each uniform over all |Y| tags."""
    size = (num_samples, *sites.mask.shape)
    return torch.randint(num_tags, size, generator=generator, device=sites.mask.device)


def other_tags(tags: Tensor, num_tags: int, num_samples: int, sites: Sites, generator: torch.Generator | None) -> Tensor:
    """Returns tags (K, L, B), each uniform over the |Y| − 1 tags that differ from `tags`, (L, B) or (K, L, B)."""
    return (tags + 1 + random_tags(num_tags - 1, num_samples, sites, generator)) % num_tags


def random_run(width: int, num_samples: int, sites: Sites, generator: torch.Generator | None) -> Tensor:
    """Returns booleans (K, L, B): a uniform run of `width` unmasked positions, or all of them if there are fewer."""
    lengths = num_sites(sites)
    num_starts = (lengths - width + 1).clamp(min=1)
    uniform = torch.rand(num_samples, len(lengths), dtype=torch.float64, generator=generator, device=lengths.device)
    first = (uniform * num_starts).long().unsqueeze(1)
    rank = sites.mask.cumsum(0) - 1  # Index among the unmasked positions of the sequence.
    return sites.mask & (rank >= first) & (rank < first + width)


def without_holes(tags: Tensor, sites: Sites) -> Tensor:
    """Returns the tags (K, L, B), or (1, L, B), with unmasked positions first; 0 after them."""
    tags = tags if tags.dim() == 3 else tags.unsqueeze(0)
    length = len(sites.mask)
    index = torch.where(sites.mask, sites.mask.cumsum(0) - 1, length)
    padded = tags.new_zeros(len(tags), length + 1, tags.shape[-1])
    return padded.scatter(1, index.expand_as(tags), tags)[:, :length]
