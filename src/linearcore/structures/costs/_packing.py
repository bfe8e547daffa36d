"""Moves the tags of masked sequences together."""

import torch
from torch import Tensor

#: Value after the last tag of a packed sequence.
PADDING = -1


def packed(tags: Tensor, mask: Tensor | None, padding: int = PADDING) -> tuple[Tensor, Tensor]:
    """Returns the unmasked tags (…, L) in order, then `padding`, and the number of tags (…).

    Masked positions inside a sequence are removed, so the tags around them become neighbours.

    Example:
        >>> packed(torch.tensor([7, 8, 9]), torch.tensor([True, False, True]))
        (tensor([ 7,  9, -1]), tensor(2))
    """
    if mask is None:
        return tags, torch.full(tags.shape[:-1], tags.shape[-1], device=tags.device)
    length = mask.sum(-1)
    order = mask.to(torch.uint8).argsort(dim=-1, descending=True, stable=True)
    is_tag = torch.arange(tags.shape[-1], device=tags.device) < length.unsqueeze(-1)
    tags, order = torch.broadcast_tensors(tags, order)
    return tags.gather(-1, order).masked_fill(~is_tag, padding), length
