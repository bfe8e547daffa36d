"""Inputs that are large or extreme enough for code that small ones do not reach; of gradients, sums are recorded."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

import linearcore as lc
from linearcore.heads import ChainHead
from tests.snapshot.calls import BACKENDS, FORMS, chain_loss, multiclass_loss
from tests.snapshot.derivatives import derivatives
from tests.snapshot.inputs import DTYPES, fixed, simplex, whole
from tests.snapshot.record import Entry, Results

LENGTH, BATCH, TAGS = 24, 3, 300
#: Of emissions and of the head's own scores: flat, sharp ones that let decoding skip most tags, and such as underflow in
#: the CRF's scaled recursion.
FACTORS = {"flat": (0.25, 0.5), "sharp": (2.0, 1.0), "extreme": (400.0, 400.0)}
SUMS = 40
HEADS = (lc.LinearCoreChain, lc.ChainCRF, lc.ChainSSVM)


def large() -> Iterator[Entry]:
    """Rows in several blocks, and chains with many tags or with extreme scores."""
    for dtype_name, dtype in DTYPES.items():
        for form_name, form in FORMS.items():
            for kind in ("index", "probabilities", "smoothing"):
                name = f"large/multiclass/{form_name}/{kind}/{dtype_name}"
                yield Entry(name, lambda k=kind, f=form, d=dtype: _rows(k, f, d))
                for via, backend in BACKENDS.items():
                    yield Entry(name, lambda k=kind, f=form, d=dtype, b=backend: _rows(k, f, d, backend=b), via)
        for factor_name, factors in FACTORS.items():
            for make in HEADS:
                name = f"large/chains/{make.__name__}/{factor_name}/{dtype_name}"
                yield Entry(name, lambda m=make, x=factors, d=dtype: _chain(m, *x, d))
            name = f"large/decoding/{factor_name}/{dtype_name}"
            yield Entry(name, lambda x=factors, d=dtype: _decoding(*x, d))


def _part(results: dict[str, Tensor]) -> Results:
    """About forty weighted sums of the entries of every large tensor."""
    return {name: tensor if tensor.numel() <= SUMS else _sums(tensor) for name, tensor in results.items()}


def _sums(tensor: Tensor) -> Tensor:
    # Weights of both signs, so that roundings which all go one way do not add up.
    weighted = tensor.double().flatten() * fixed(149, tensor.numel())
    return torch.stack([chunk.sum() for chunk in weighted.tensor_split(SUMS)]).to(tensor.dtype)


def _rows(kind: str, form: lc.Form, dtype: torch.dtype, **options: Any) -> Results:
    """More numbers than fit into one block; with probabilities the cost is quadratic in the classes."""
    rows, classes = (600, 1000) if kind == "index" else (160, 64)
    given: dict[str, Any] = {"target": whole(141, classes, rows), **options}
    if kind == "probabilities":
        given["target"] = simplex(142, rows, classes, dtype=dtype)
    if kind == "smoothing":
        given["label_smoothing"] = 0.25
    scores = {"scores": fixed(140, rows, classes, dtype=dtype)}
    found = derivatives(lambda scores: multiclass_loss(scores, form=form, **given), scores, second=False)
    # The mean divides by the rows, and numbers far below 1 would hardly be compared.
    return _part({name: tensor if name == "value" else tensor * rows for name, tensor in found.items()})


def _head(make: Any, factor: float, dtype: torch.dtype) -> ChainHead:
    head: ChainHead = make(TAGS).to(dtype)
    with torch.no_grad():
        for place, (_, parameter) in enumerate(sorted(head.named_parameters())):
            parameter.copy_(factor * fixed(145 + place, *parameter.shape, dtype=dtype, low=-1.0, high=1.0))
    return head


def _inputs(factor: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    emissions = factor * fixed(143, LENGTH, BATCH, TAGS, dtype=dtype)
    return emissions, torch.arange(LENGTH).unsqueeze(-1) < torch.tensor([LENGTH, 15, 20])


def _chain(make: Any, factor: float, own_factor: float, dtype: torch.dtype) -> Results:
    head = _head(make, own_factor, dtype)
    emissions, mask = _inputs(factor, dtype)
    tags = whole(144, TAGS, LENGTH, BATCH)
    results = {}
    for name, given in (("no mask", None), ("padding", mask)):
        losses = derivatives(
            lambda emissions, given=given: chain_loss(head, emissions, tags, given, "none"),
            {"emissions": emissions},
            second=False,
        )
        results |= {f"{name}/{part}": tensor for part, tensor in losses.items()}
        parameters = dict(sorted(head.named_parameters()))
        found = torch.autograd.grad(chain_loss(head, emissions, tags, given, "sum"), list(parameters.values()))
        results |= {f"{name}/gradient/{part}": one for part, one in zip(parameters, found, strict=True)}
    return _part(results)


def _decoding(factor: float, own_factor: float, dtype: torch.dtype) -> Results:
    head = _head(lc.ChainCRF, own_factor, dtype)
    emissions, mask = _inputs(factor, dtype)
    results = {}
    for name, given in (("no mask", None), ("padding", mask)):
        for decoder, (tags, scores) in {
            "viterbi": head.viterbi(emissions, given),
            "beam": head.beam(emissions, given, width=4),
            "kbest": head.kbest(emissions, given, k=2),
        }.items():
            results |= {f"{name}/{decoder}/tags": tags, f"{name}/{decoder}/scores": scores}
    results["marginals"] = _sums(head.marginals(emissions, mask))
    return results
