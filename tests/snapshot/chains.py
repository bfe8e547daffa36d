"""Losses of the chain heads, with gradients of emissions and of all parameters."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

import linearcore as lc
from linearcore.structures import Hamming
from tests.snapshot.calls import FORMS, chain_loss
from tests.snapshot.chain_inputs import TAGS, build, constraints, emissions, masks, parameters, tags, with_parameters
from tests.snapshot.derivatives import derivatives
from tests.snapshot.inputs import DTYPES, fixed
from tests.snapshot.record import Entry, Results, refused
from tests.snapshot.surrogates import SURROGATES

REDUCTIONS = ("none", "sum", "mean", "token_mean")


class Head(NamedTuple):
    """A kind of head, its options, and whether it is a variation, which has derivatives under one mask alone."""

    make: type[lc.LinearCoreChain] | type[lc.ChainCRF] | type[lc.ChainSSVM]
    options: dict[str, Any]
    is_variation: bool = False

    @property
    def tags(self) -> Tensor:
        """Tags that obey the constraints, where there are any."""
        return tags(allowed=self.options.get("constraints") is not None)

    def differentiated(self, mask: str, reduction: str) -> tuple[str, ...] | None:
        """The inputs to differentiate by; None means all."""
        if reduction == "token_mean":
            return () if self.is_variation and mask != "holes" else None
        return ("emissions",) if reduction == "none" and mask == "holes" else ()


def chains() -> Iterator[Entry]:
    """Every reduction. Derivatives for "token_mean", and by the emissions for "none" under the mask with holes."""
    for head_name, head in _heads().items():
        for mask_name, mask in masks().items():
            for dtype_name, dtype in DTYPES.items():
                for reduction in REDUCTIONS:
                    name = f"chains/{head_name}/{mask_name}/{reduction}/{dtype_name}"
                    of = head.differentiated(mask_name, reduction)
                    yield Entry(name, lambda h=head, m=mask, d=dtype, r=reduction, of=of: _losses(h, m, d, r, of))
                    yield Entry(
                        name,
                        lambda h=head, m=mask, d=dtype, r=reduction, of=of: _losses(h, m, d, r, of, batch_first=True),
                        "batch_first",
                    )
                    yield Entry(name, lambda h=head, m=mask, d=dtype, r=reduction: _ignored_tags(h, m, d, r), "tags of −100")
    for form in ("pairwise", "centered", "logodds"):
        head = Head(lc.LinearCoreChain, {"form": form})
        yield Entry(f"chains/by name/{form}", lambda h=head: _losses(h, None, torch.float64, "sum", ()))
    two_sided = {"surrogate": lc.LinearCore(sides=2), "form": "centered"}
    yield Entry("chains/centered, two-sided", lambda: refused(lambda: lc.LinearCoreChain(TAGS, **two_sided)))


def _heads() -> dict[str, Head]:
    heads: dict[str, Head] = {}
    for form_name, form in FORMS.items():
        for rank in (None, 2):
            for unary in (0.0, 0.5):
                options = {"form": form, "rank": rank, "unary": unary}
                heads[f"LinearCoreChain/{form_name}/rank={rank}/unary={unary}"] = Head(lc.LinearCoreChain, options)
        weighted = Hamming(fixed(70, TAGS, low=0.25))
        more: dict[str, dict[str, Any]] = {"cost=zero-one": {"cost": "zero-one"}, "weighted cost": {"cost": weighted}}
        for name, options in more.items():
            heads[f"LinearCoreChain/{form_name}/{name}"] = Head(lc.LinearCoreChain, {"form": form, **options}, True)
        for name in ("LinearCore(gamma)", "Hinge"):
            options = {"form": form, "surrogate": SURROGATES[name]}
            heads[f"LinearCoreChain/{form_name}/surrogate={name}"] = Head(lc.LinearCoreChain, options, True)
        for rank in (None, 2):
            options = {"form": form, "rank": rank, "unary": 0.25, "constraints": constraints()}
            heads[f"LinearCoreChain/{form_name}/constraints/rank={rank}"] = Head(lc.LinearCoreChain, options, True)
    for rank in (None, 2):
        for name, limits in (("free", None), ("constraints", constraints())):
            options = {"rank": rank, "constraints": limits}
            heads[f"ChainCRF/{name}/rank={rank}"] = Head(lc.ChainCRF, options)
            for cost in ("hamming", "zero-one"):
                own = {**options, "cost": cost}
                heads[f"ChainSSVM/{name}/rank={rank}/cost={cost}"] = Head(lc.ChainSSVM, own, limits is not None)
    heads["ChainSSVM/weighted cost"] = Head(lc.ChainSSVM, {"cost": Hamming(fixed(70, TAGS, low=0.25))})
    return heads


def _losses(
    head: Head,
    mask: Tensor | None,
    dtype: torch.dtype,
    reduction: str,
    of: tuple[str, ...] | None,
    *,
    batch_first: bool = False,
) -> Results:
    """With `batch_first` the head gets transposed views, and gives the same numbers."""
    module = build(head.make, dtype, batch_first=batch_first, **head.options)
    own = head.tags.t() if batch_first else head.tags
    here = mask.t() if batch_first and mask is not None else mask

    def loss(emissions: Tensor, **given: Tensor) -> Tensor:
        scores = emissions.transpose(0, 1) if batch_first else emissions
        return with_parameters(module, given, lambda module: chain_loss(module, scores, own, here, reduction))

    inputs = {"emissions": emissions(dtype), **parameters(module)}
    return derivatives(loss, inputs, of=of, second=not batch_first)


def _ignored_tags(head: Head, mask: Tensor | None, dtype: torch.dtype, reduction: str) -> Results:
    """The mask as tags of −100."""
    module = build(head.make, dtype, **head.options)
    ignored = head.tags if mask is None else head.tags.masked_fill(~mask, -100)
    return {"value": chain_loss(module, emissions(dtype), ignored, None, reduction)}
