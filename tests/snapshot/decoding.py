"""Decoders of the chain heads, marginals and confidence."""

import json
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

import linearcore as lc
from linearcore.heads import ChainHead
from tests.snapshot.calls import FORMS
from tests.snapshot.chain_inputs import build, constraints, emissions, masks, tags
from tests.snapshot.inputs import DTYPES
from tests.snapshot.record import Entry, Results

CONFIDENT: dict[str, tuple[Any, dict[str, Any]]] = {
    **{f"LinearCoreChain/{name}": (lc.LinearCoreChain, {"form": form}) for name, form in FORMS.items()},
    "LinearCoreChain/gamma": (lc.LinearCoreChain, {"surrogate": lc.LinearCore("gamma", 0.625, 1, 2.5)}),
    "ChainCRF": (lc.ChainCRF, {}),
    "ChainSSVM": (lc.ChainSSVM, {}),
}


def decoding() -> Iterator[Entry]:
    """Decoding depends on the parameters alone, so that one head stands for all; confidence depends on the head."""
    for dtype_name, dtype in DTYPES.items():
        for mask_name, mask in masks().items():
            for rank in (None, 2):
                for limit_name, limits in (("free", None), ("constraints", constraints())):
                    name = f"decoding/{limit_name}/rank={rank}/{mask_name}/{dtype_name}"
                    options = {"rank": rank, "constraints": limits}
                    for kind in (lc.LinearCoreChain, lc.ChainCRF, lc.ChainSSVM):
                        via = "" if kind is lc.LinearCoreChain else kind.__name__
                        yield Entry(name, lambda k=kind, d=dtype, m=mask, o=options: _decoders(build(k, d, **o), d, m), via)
                    turned = {**options, "batch_first": True}
                    yield Entry(name, lambda d=dtype, m=mask, o=turned: _turned(d, m, o), "batch_first")
                    yield Entry(name, lambda d=dtype, m=mask, o=options: _marginals(build(lc.ChainCRF, d, **o), d, m))
                    for head_name, (kind, own) in CONFIDENT.items():
                        entry = f"decoding/{limit_name}/rank={rank}/{mask_name}/{head_name}/{dtype_name}"
                        given = {**options, **own}
                        yield Entry(entry, lambda k=kind, d=dtype, m=mask, o=given: _confidence(build(k, d, **o), d, m))


def _decoders(head: ChainHead, dtype: torch.dtype, mask: Tensor | None) -> Results:
    scores = emissions(dtype)
    results: dict[str, Any] = {}
    results["viterbi/tags"], results["viterbi/scores"] = head.viterbi(scores, mask)
    for width in (1, 3):
        results[f"beam {width}/tags"], results[f"beam {width}/scores"] = head.beam(scores, mask, width=width)
    results["kbest/tags"], results["kbest/scores"] = head.kbest(scores, mask, k=4)
    results["decode"] = json.dumps(head.decode(scores, mask))
    results["decode, width=2"] = json.dumps(head.decode(scores, mask, width=2))
    return results


def _turned(dtype: torch.dtype, mask: Tensor | None, options: dict[str, Any]) -> Results:
    """The same from a head with `batch_first`, laid out as the record is."""
    head = build(lc.LinearCoreChain, dtype, **options)
    scores, mask = emissions(dtype).transpose(0, 1), None if mask is None else mask.t()
    return {
        "viterbi/tags": head.viterbi(scores, mask)[0].t(),
        "kbest/tags": head.kbest(scores, mask, k=4)[0].transpose(1, 2),
        "decode": json.dumps(head.decode(scores, mask)),
    }


def _marginals(head: lc.ChainCRF, dtype: torch.dtype, mask: Tensor | None) -> Results:
    return {"marginals": head.marginals(emissions(dtype), mask)}


def _confidence(head: ChainHead, dtype: torch.dtype, mask: Tensor | None) -> Results:
    scores = emissions(dtype)
    given = head.confidence(scores, mask, tags(allowed=True))
    return {"confidence": head.confidence(scores, mask), "confidence of given tags": given}
