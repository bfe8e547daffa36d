"""What users hand to a chain head, checked and brought to one layout."""

from typing import NamedTuple

import torch
from torch import Tensor

from linearcore._checks import complaint, floating, in_range
from linearcore.structures import Sites

#: A tag that counts as masked, as in torch.nn.CrossEntropyLoss and in Hugging Face's token classification.
IGNORED_TAG = -100


class Batch(NamedTuple):
    """A batch of chains, time first.

    Attributes:
        emissions: (L, B, |Y|).
        tags: (L, B), 0 where there is none; None where only decoding is asked for.
        sites: where the tags sit.
        wrong: (B,) booleans: a tag of the chain is out of range, and its loss NaN. None where all are known to be right.
    """

    emissions: Tensor
    tags: Tensor | None
    sites: Sites
    wrong: Tensor | None = None

    @property
    def tagged(self) -> tuple[Tensor, Tensor, Sites]:
        """Emissions, tags and sites, where there are tags."""
        assert self.tags is not None
        return self.emissions, self.tags, self.sites


def check_shapes(num_tags: int | None, emissions: Tensor, tags: Tensor | None, mask: Tensor | None) -> None:
    """Raises unless the shapes and dtypes fit; the sentences are torchcrf's, what to do is added. Reads no device.

    Without `num_tags` the emissions are hidden states, whose last dimension may be of any size.
    """
    name, wanted = "emissions", "the scores of the network, one for every position and tag"
    if num_tags is None:
        name, wanted = "hidden", "what goes into the last layer"
    floating(name, emissions, f"pass {wanted}")
    if emissions.dim() != 3:
        advice = f"add the missing dimension, for example with `{name}.unsqueeze(0)`"
        raise ValueError(f"{name} must have dimension of 3, got {emissions.dim()}; {advice}")
    if num_tags is not None and emissions.size(2) != num_tags:
        advice = "give the last layer of the network one output for every tag"
        raise ValueError(f"expected last dimension of emissions is {num_tags}, got {emissions.size(2)}; {advice}")
    for label, given in (("tags", tags), ("mask", mask)):
        if given is None:
            continue
        if not isinstance(given, Tensor):
            raise TypeError(complaint(label, "be a torch tensor", type(given).__name__, "wrap it in torch.as_tensor"))
        if emissions.shape[:2] != given.shape:
            raise ValueError(
                f"the first two dimensions of {name} and {label} must match, got {tuple(emissions.shape[:2])} and "
                f"{tuple(given.shape)}; is `batch_first` what you mean?"
            )
    if tags is not None and (tags.is_floating_point() or tags.is_complex() or tags.dtype == torch.bool):
        raise TypeError(complaint("tags", "be integers", tags.dtype, "convert them with `.long()`"))


def to_batch(
    num_tags: int, emissions: Tensor, tags: Tensor | None, mask: Tensor | None, *, look: bool, strict: bool
) -> Batch:
    """Tags of −100 masked out, everything time first as it is given.

    With `look` the numbers are checked as well: tags are in range, and if it is `strict` the mask begins with True, but for
    tags of −100. One read of the device, which also tells whether any position is off; where none is, there is less to do.
    """
    shown = None if mask is None else mask.bool()
    tags = None if tags is None else tags.long()  # First of all: −100 is no number of an unsigned type.
    flags = _flags(num_tags, tags, shown) if look else {}
    if strict and flags.get("starts off"):
        advice = "leave out what is before the first tag, or make the head with `strict_mask=False` to have it skipped"
        raise ValueError(f"mask of the first timestep must all be on; {advice}")
    if flags.get("out of range"):
        assert tags is not None
        seen = tags[tags != IGNORED_TAG] if shown is None else tags[shown & (tags != IGNORED_TAG)]
        got = f"tags from {int(seen.min())} to {int(seen.max())}"
        raise ValueError(complaint("tags", f"be in [0, {num_tags}) or {IGNORED_TAG}", got, "look for wrong labels"))
    is_full = not flags["some off"] if look else tags is None and shown is None
    if is_full:
        full = torch.ones(emissions.shape[:2], dtype=torch.bool, device=emissions.device)
        return Batch(emissions, tags, Sites.of(full, is_full=True))
    if tags is not None:
        shown = tags != IGNORED_TAG if shown is None else shown & (tags != IGNORED_TAG)
        tags = tags.masked_fill(~shown, 0)  # torchcrf asks nothing of tags under a mask.
    assert shown is not None
    wrong = None
    if tags is not None and not look:
        tags, wrong = in_range("tags", tags, num_tags, str(IGNORED_TAG))
        wrong = None if wrong is None else wrong.any(0)
    return Batch(emissions, tags, Sites.of(shown), wrong)


def _flags(num_tags: int, tags: Tensor | None, shown: Tensor | None) -> dict[str, bool]:
    """What the numbers say, with as few operations as there can be and one read of the device."""
    if shown is None:
        if tags is None or tags.numel() == 0:
            return {"some off": False}
        least, most = torch.stack(torch.aminmax(tags)).tolist()
        if least >= 0:
            return {"out of range": most >= num_tags, "some off": False}
        shown = torch.ones_like(tags, dtype=torch.bool)
    starts = shown[:1] if tags is None else shown[:1] | (tags[:1] == IGNORED_TAG)
    flags = {"starts off": ~starts.all()}
    if tags is not None:
        shown = shown & (tags != IGNORED_TAG)
        flags["out of range"] = (((tags < 0) | (tags >= num_tags)) & shown).any()
    flags["some off"] = ~shown.all()
    return dict(zip(flags, torch.stack(list(flags.values())).tolist(), strict=True))
