"""What the samplers are made of: random tags, other tags, and sites in a row."""

import torch
from torch import Tensor

from linearcore.proposals.sequences._base import num_sites
from linearcore.structures import Sites


def any_tags(num_tags: int, num_samples: int, sites: Sites, generator: torch.Generator | None) -> Tensor:
    """(K, L, B): every tag uniform over all |Y|."""
    size = (num_samples, *sites.mask.shape)
    return torch.randint(num_tags, size, generator=generator, device=sites.mask.device)


def other_tags(tags: Tensor, num_tags: int, num_samples: int, sites: Sites, generator: torch.Generator | None) -> Tensor:
    """(K, L, B): every tag uniform over the |Y| − 1 that differ from the reference `tags`, (L, B) or (K, L, B)."""
    return (tags + 1 + any_tags(num_tags - 1, num_samples, sites, generator)) % num_tags


def row_of_sites(width: int, num_samples: int, sites: Sites, generator: torch.Generator | None) -> Tensor:
    """(K, L, B) booleans: `width` sites in a row, all places being equally likely; all sites of a chain with fewer."""
    count = num_sites(sites)
    places = (count - width + 1).clamp(min=1)
    chance = torch.rand(num_samples, len(count), dtype=torch.float64, generator=generator, device=count.device)
    first = (chance * places).long().unsqueeze(1)
    order = sites.mask.cumsum(0) - 1  # The number of a site in its own chain; holes are not counted.
    return sites.mask & (order >= first) & (order < first + width)
