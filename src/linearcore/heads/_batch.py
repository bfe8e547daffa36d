"""Checks the inputs of a chain head and converts them to one layout."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from linearcore._checks import complaint, floating, in_range
from linearcore._torch import is_on_host, is_transformed
from linearcore.kernels import fused_kernels_for
from linearcore.structures import Sites

#: Positions with this tag are masked out, as in torch.nn.CrossEntropyLoss and in Hugging Face's token classification.
IGNORED_TAG = -100


class Batch(NamedTuple):
    """A batch of sequences, time first.

    Attributes:
        emissions: (L, B, |Y|).
        tags: (L, B), 0 where masked; None for decoding.
        sites: positions of the tags and their neighbours.
        has_invalid_tag: (B,) booleans: a tag of the sequence is out of range, so its loss is NaN. None if all are valid.
    """

    emissions: Tensor
    tags: Tensor | None
    sites: Sites
    has_invalid_tag: Tensor | None = None

    @property
    def loss_inputs(self) -> tuple[Tensor, Tensor, Sites]:
        """Emissions, tags and sites; only for a batch with tags."""
        assert self.tags is not None
        return self.emissions, self.tags, self.sites


def check_shapes(num_tags: int | None, emissions: Tensor, tags: Tensor | None, mask: Tensor | None) -> None:
    """Raises if shapes or dtypes do not fit, with torchcrf's messages plus advice. Does not synchronise with a GPU.

    If `num_tags` is None, `emissions` are hidden states whose last dimension may have any size.
    """
    name, content = "emissions", "the scores of the network, one for every position and tag"
    if num_tags is None:
        name, content = "hidden", "the input of the last layer"
    floating(name, emissions, f"pass {content}")
    if emissions.dim() != 3:
        advice = f"add the missing dimension, for example with `{name}.unsqueeze(0)`"
        raise ValueError(f"{name} must have dimension of 3, got {emissions.dim()}; {advice}")
    if num_tags is not None and emissions.size(2) != num_tags:
        advice = "give the last layer of the network one output for every tag"
        raise ValueError(f"expected last dimension of emissions is {num_tags}, got {emissions.size(2)}; {advice}")
    for argument, tensor in (("tags", tags), ("mask", mask)):
        if tensor is None:
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(complaint(argument, "be a torch tensor", type(tensor).__name__, "wrap it in torch.as_tensor"))
        if emissions.shape[:2] != tensor.shape:
            raise ValueError(
                f"the first two dimensions of {name} and {argument} must match, got {tuple(emissions.shape[:2])} and "
                f"{tuple(tensor.shape)}; check `batch_first`"
            )
    if tags is not None and (tags.is_floating_point() or tags.is_complex() or tags.dtype == torch.bool):
        raise TypeError(complaint("tags", "be integers", tags.dtype, "convert them with `.long()`"))


def to_batch(
    num_tags: int, emissions: Tensor, tags: Tensor | None, mask: Tensor | None, *, check_values: bool, strict: bool
) -> Batch:
    """Masks out tags of −100 and returns a time-first `Batch`.

    With `check_values`, tags must be in range, and with `strict` the first position must be unmasked or have tag −100.
    The check synchronises with the GPU once. It also detects batches without masked positions, which are faster.
    """
    unmasked = None if mask is None else mask.bool()
    tags = None if tags is None else tags.long()  # Before any comparison: unsigned types cannot hold −100.
    kernels = None if is_transformed() else fused_kernels_for(emissions)
    given = unmasked if tags is None else tags
    if kernels is not None and given is not None and given.device == emissions.device:
        layout = kernels.chain_layout(given, unmasked, num_tags)
        return _checked_batch(num_tags, emissions, tags, unmasked, layout, check_values=check_values, strict=strict)
    flags = _value_flags(num_tags, tags, unmasked) if check_values else {}
    _check_flags(flags, num_tags, tags, unmasked, strict=strict)
    is_full = not flags["some masked"] if check_values else tags is None and unmasked is None
    if is_full:
        full_mask = torch.ones(emissions.shape[:2], dtype=torch.bool, device=emissions.device)
        return Batch(emissions, tags, Sites.of(full_mask, is_full=True))
    if tags is not None:
        unmasked = tags != IGNORED_TAG if unmasked is None else unmasked & (tags != IGNORED_TAG)
        tags = tags.masked_fill(~unmasked, 0)  # As in torchcrf, masked tags may have any value.
    assert unmasked is not None
    has_invalid_tag = None
    if tags is not None and not check_values:
        tags, is_invalid = in_range("tags", tags, num_tags, str(IGNORED_TAG))
        has_invalid_tag = None if is_invalid is None else is_invalid.any(0)
    return Batch(emissions, tags, Sites.of(unmasked), has_invalid_tag)


def _checked_batch(
    num_tags: int, emissions: Tensor, tags: Tensor | None, unmasked: Tensor | None, layout: Any, *,
    check_values: bool, strict: bool,
) -> Batch:  # fmt: skip
    """Returns the batch with a `kernels.fused.Layout`; checks its facts with one synchronisation, if any."""
    is_full = False
    if check_values or is_on_host(emissions):
        has_masked, first_is_masked, is_out_of_range = layout.facts.cpu().any(1).tolist()
        is_full = not has_masked
        flags = {"first is masked": check_values and first_is_masked, "out of range": tags is not None and is_out_of_range}
        _check_flags(flags, num_tags, tags, unmasked, strict=strict)
    sites = Sites(layout.mask, layout.previous, layout.following, is_full)
    if tags is None:
        return Batch(emissions, None, sites)
    return Batch(emissions, layout.tags, sites, None if check_values else layout.facts[2])


def _check_flags(
    flags: Mapping[str, bool], num_tags: int, tags: Tensor | None, unmasked: Tensor | None, *, strict: bool
) -> None:
    if strict and flags.get("first is masked"):
        advice = "remove the positions before the first tag, or create the head with `strict_mask=False` to skip them"
        raise ValueError(f"mask of the first timestep must all be on; {advice}")
    if flags.get("out of range"):
        assert tags is not None
        used_tags = tags[tags != IGNORED_TAG] if unmasked is None else tags[unmasked & (tags != IGNORED_TAG)]
        got = f"tags from {int(used_tags.min())} to {int(used_tags.max())}"
        raise ValueError(complaint("tags", f"be in [0, {num_tags}) or {IGNORED_TAG}", got, "correct the labels"))


def _value_flags(num_tags: int, tags: Tensor | None, unmasked: Tensor | None) -> dict[str, bool]:
    """Facts about the values of tags and mask, computed with one GPU synchronisation."""
    if unmasked is None:
        if tags is None or tags.numel() == 0:
            return {"some masked": False}
        smallest, largest = torch.stack(torch.aminmax(tags)).tolist()
        if smallest >= 0:
            return {"out of range": largest >= num_tags, "some masked": False}
        unmasked = torch.ones_like(tags, dtype=torch.bool)
    first_is_valid = unmasked[:1] if tags is None else unmasked[:1] | (tags[:1] == IGNORED_TAG)
    flags = {"first is masked": ~first_is_valid.all()}
    if tags is not None:
        unmasked = unmasked & (tags != IGNORED_TAG)
        flags["out of range"] = (((tags < 0) | (tags >= num_tags)) & unmasked).any()
    flags["some masked"] = ~unmasked.all()
    return dict(zip(flags, torch.stack(list(flags.values())).tolist(), strict=True))
