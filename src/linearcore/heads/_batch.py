"""What users hand to a chain head, checked and brought to one layout."""

from typing import NamedTuple

import torch
from torch import Tensor

from linearcore._checks import complaint, floating
from linearcore.structures import Sites

#: A tag that counts as masked, as in torch.nn.CrossEntropyLoss and in Hugging Face's token classification.
IGNORED_TAG = -100


class Batch(NamedTuple):
    """A batch of chains, time first.

    Attributes:
        emissions: (L, B, |Y|).
        tags: (L, B), 0 where there is none; None where only decoding is asked for.
        sites: where the tags sit.
    """

    emissions: Tensor
    tags: Tensor | None
    sites: Sites


def check_shapes(num_tags: int, emissions: Tensor, tags: Tensor | None, mask: Tensor | None) -> None:
    """Raises unless the shapes and dtypes fit; the sentences are torchcrf's, what to do is added. Reads no device."""
    floating("emissions", emissions, "pass the scores of the network, one for every position and tag")
    if emissions.dim() != 3:
        advice = "add the missing dimension, for example with `emissions.unsqueeze(0)`"
        raise ValueError(f"emissions must have dimension of 3, got {emissions.dim()}; {advice}")
    if emissions.size(2) != num_tags:
        advice = "give the last layer of the network one output for every tag"
        raise ValueError(f"expected last dimension of emissions is {num_tags}, got {emissions.size(2)}; {advice}")
    for name, given in (("tags", tags), ("mask", mask)):
        if given is None:
            continue
        if not isinstance(given, Tensor):
            raise TypeError(complaint(name, "be a torch tensor", type(given).__name__, "wrap it in torch.as_tensor"))
        if emissions.shape[:2] != given.shape:
            raise ValueError(
                f"the first two dimensions of emissions and {name} must match, got {tuple(emissions.shape[:2])} and "
                f"{tuple(given.shape)}; is `batch_first` what you mean?"
            )
    if tags is not None and (tags.is_floating_point() or tags.is_complex() or tags.dtype == torch.bool):
        raise TypeError(complaint("tags", "be integers", tags.dtype, "convert them with `.long()`"))


def to_batch(num_tags: int, emissions: Tensor, tags: Tensor | None, mask: Tensor | None, *, look: bool) -> Batch:
    """Tags of −100 masked out, everything time first as it is given.

    With `look` the numbers are checked as well: the mask begins with True, tags are in range. One read of the device, which
    also tells whether any position is off; where none is, there is less to do.
    """
    shown = None if mask is None else mask.bool()
    problems: list[Tensor] = []
    if look and shown is not None:
        problems.append(~shown[:1].all())
    if tags is not None:
        tags, ignored = tags.long(), tags == IGNORED_TAG
        counted = ~ignored if shown is None else shown & ~ignored
        if look:
            problems.append((((tags < 0) | (tags >= num_tags)) & counted).any())
            problems.append(~counted.all())
        tags, shown = tags.masked_fill(~counted, 0), counted
    elif look and shown is not None:
        problems.append(~shown.all())
    found = torch.stack(problems).tolist() if problems else []
    if mask is not None and found and found[0]:
        advice = "leave the positions before the first tag out of emissions, tags and mask, or give them the tag -100"
        raise ValueError(f"mask of the first timestep must all be on; {advice}")
    if tags is not None and found and found[-2]:
        got = f"tags from {int(tags.min())} to {int(tags.max())}"
        raise ValueError(complaint("tags", f"be in [0, {num_tags}) or {IGNORED_TAG}", got, "look for wrong labels"))
    is_full = not found[-1] if found else shown is None
    if shown is None:
        shown = torch.ones(emissions.shape[:2], dtype=torch.bool, device=emissions.device)
    return Batch(emissions, tags, Sites.of(shown, is_full=is_full))


def can_read(tensor: Tensor) -> bool:
    """Whether Python may look at numbers now: not while operations are recorded or transformed instead of run."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active() or tensor.device.type == "meta":
        return False
    return not (tensor.is_cuda and torch.cuda.is_current_stream_capturing())
