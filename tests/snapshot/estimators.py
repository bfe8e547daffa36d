"""Estimators of chain losses from draws, with fixed seeds: candidates at every site, and whole sequences."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

import linearcore as lc
from linearcore.proposals import InBatch, Uniform
from tests.snapshot.calls import FORMS, sampled_chain_loss, structured_loss
from tests.snapshot.chain_inputs import (
    BATCH,
    LENGTH,
    TAGS,
    build,
    constraints,
    emissions,
    masks,
    parameters,
    tags,
    with_parameters,
)
from tests.snapshot.derivatives import derivatives
from tests.snapshot.inputs import DTYPES, fixed, generator
from tests.snapshot.proposals import proposals
from tests.snapshot.record import Entry, Results, refused
from tests.snapshot.sequences import sequence_proposals

WIDTH, SAMPLES, SEED = 3, 4, 80
REDUCTIONS = ("none", "sum", "mean", "token_mean")
OBJECTIVES = ("raw", "normalised", "self-normalised")


def estimators() -> Iterator[Entry]:
    """Every proposal, form and objective."""
    for dtype_name, dtype in DTYPES.items():
        for name, (head, call) in _sampled().items():
            entry = f"estimators/sampled/{name}/{dtype_name}"
            yield Entry(entry, lambda h=head, c=call, d=dtype: _sampled_loss(h, c, d, sparse=False))
            yield Entry(entry, lambda h=head, c=call, d=dtype: _sampled_loss(h, c, d, sparse=True), "sparse gradients")
            yield Entry(entry, lambda h=head, c=call, d=dtype: _from_layer(h, c, d), "nn.Linear")
        for name, (head, call) in _structured().items():
            entry = f"estimators/structured/{name}/{dtype_name}"
            yield Entry(entry, lambda h=head, c=call, d=dtype: _structured_loss(h, c, d))
    centered: tuple[dict[str, Any], dict[str, Any]] = {"form": FORMS["centered-sum"]}, {"proposal": Uniform()}
    yield Entry("estimators/sampled/centered", lambda: refused(lambda: _sampled_loss(*centered, torch.float64, sparse=True)))


def _sampled() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Options of the head, and of the call."""
    cases: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for name, proposal in proposals(TAGS).items():
        for form in ("logodds", "pairwise-sum"):
            cases[f"{form}/{name}"] = {"form": FORMS[form]}, {"proposal": proposal}
    shared, own = InBatch(), Uniform(shared=False)
    for form in ("logodds", "pairwise-mean"):
        for name, proposal in (("InBatch", shared), ("Uniform, own draws", own)):
            options = {"form": FORMS[form], "unary": 0.5}
            cases[f"{form}/{name}/rank=2"] = {**options, "rank": 2}, {"proposal": proposal}
            cases[f"{form}/{name}/constraints"] = {**options, "constraints": constraints()}, {"proposal": proposal}
    for mask_name, mask in masks().items():
        for reduction in REDUCTIONS:
            options = {"proposal": shared, "mask": mask, "reduction": reduction}
            cases[f"logodds/InBatch/{mask_name}/{reduction}"] = {}, options
    return cases


def _structured() -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Options of the head, and of the call."""
    cases: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    laws = sequence_proposals()
    for objective in OBJECTIVES:
        call = {"objective": objective}
        for form in ("pairs", "centered"):
            cases[f"{form}/{objective}/default"] = {}, {**call, "form": form}
            for name, law in laws.items():
                cases[f"{form}/{objective}/outer={name}"] = {}, {**call, "form": form, "proposal": law}
        for name, law in laws.items():
            cases[f"pairs/{objective}/inner={name}"] = {}, {**call, "inner": law}
    for mask_name, mask in masks().items():
        for reduction in REDUCTIONS:
            for form in ("pairs", "centered"):
                options = {"form": form, "mask": mask, "reduction": reduction}
                cases[f"{form}/{mask_name}/{reduction}"] = {}, options
    for form in ("pairs", "centered"):
        # Short chains and many draws, since only the truth itself has a weight for pairs.
        cases[f"{form}/cost=zero-one"] = {"cost": "zero-one"}, {"form": form, "mask": masks()["padding"], "num_samples": 25}
        cases[f"{form}/rank=2"] = {"rank": 2}, {"form": form}
    return cases


def _sampled_loss(head: dict[str, Any], call: dict[str, Any], dtype: torch.dtype, *, sparse: bool) -> Results:
    module = build(lc.LinearCoreChain, dtype, **head)
    own = tags(allowed="constraints" in head)

    def loss(hidden: Tensor, weight: Tensor, bias: Tensor, **given: Tensor) -> Tensor:
        options = {**call, "num_samples": SAMPLES, "sparse": sparse, "generator": generator(SEED)}
        return with_parameters(module, given, lambda head: sampled_chain_loss(head, hidden, (weight, bias), own, **options))

    inputs = {
        "hidden": fixed(81, LENGTH, BATCH, WIDTH, dtype=dtype),
        "weight": fixed(82, TAGS, WIDTH, dtype=dtype),
        "bias": fixed(83, TAGS, dtype=dtype),
        **parameters(module),
    }
    return derivatives(loss, inputs, second=not sparse)


def _from_layer(head: dict[str, Any], call: dict[str, Any], dtype: torch.dtype) -> Results:
    """The value again, with an nn.Linear for the projection and `batch_first`."""
    module = build(lc.LinearCoreChain, dtype, batch_first=True, **head)
    layer = torch.nn.Linear(WIDTH, TAGS, dtype=dtype)
    layer.load_state_dict({"weight": fixed(82, TAGS, WIDTH), "bias": fixed(83, TAGS)})
    hidden, own = fixed(81, LENGTH, BATCH, WIDTH, dtype=dtype).transpose(0, 1), tags(allowed="constraints" in head).t()
    mask = call.get("mask")
    options = {**call, "mask": None if mask is None else mask.t(), "num_samples": SAMPLES, "generator": generator(SEED)}
    return {"value": sampled_chain_loss(module, hidden, layer, own, **options)}


def _structured_loss(head: dict[str, Any], call: dict[str, Any], dtype: torch.dtype) -> Results:
    module = build(lc.LinearCoreChain, dtype, **head)

    def loss(emissions: Tensor, **given: Tensor) -> Tensor:
        options = {"num_samples": SAMPLES, **call, "generator": generator(SEED)}
        return with_parameters(module, given, lambda head: structured_loss(head, emissions, tags(), **options))

    return derivatives(loss, {"emissions": emissions(dtype), **parameters(module)}, of=_few(call))


def _few(call: dict[str, Any]) -> tuple[str, ...] | None:
    """Gradients of all inputs for the default objective and reduction, of the emissions alone for the others."""
    return None if call.get("objective", "normalised") == "normalised" and "reduction" not in call else ("emissions",)
