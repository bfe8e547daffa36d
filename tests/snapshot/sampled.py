"""`sampled_multiclass_loss` with every proposal, and the draws of the proposals themselves."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

import linearcore as lc
from linearcore.proposals import InBatch, Proposal, Uniform, hard_negatives
from tests.snapshot.calls import FORMS, candidates, sampled_multiclass_loss
from tests.snapshot.derivatives import derivatives
from tests.snapshot.inputs import DTYPES, fixed, generator, whole
from tests.snapshot.proposals import proposals
from tests.snapshot.record import Entry, Results, refused
from tests.snapshot.targets import REDUCTIONS

ROWS, WIDTH, CLASSES, SAMPLES, SEED = 4, 3, 9, 6, 51
FORM_NAMES = ("logodds", "pairwise-sum", "pairwise-mean")
SURROGATES = {"LinearCore": lc.LinearCore(), "LinearCore(gamma)": lc.LinearCore("gamma", 0.625, 1, 2.5)}


def sampled() -> Iterator[Entry]:
    """Candidates and their weights; losses, and their gradients, sparse and dense."""
    for name, proposal in proposals(CLASSES).items():
        yield Entry(f"sampled/proposals/{name}", lambda proposal=proposal: _draws(proposal))
        for dtype_name, dtype in DTYPES.items():
            for form in FORM_NAMES:
                for phi in SURROGATES if name in ("Uniform", "InBatch") else ("LinearCore",):
                    options = {"proposal": proposal, "form": FORMS[form], "surrogate": SURROGATES[phi]}
                    entry = f"sampled/{form}/{phi}/{name}/mean/{dtype_name}"
                    yield Entry(entry, lambda dtype=dtype, options=options: _dense(dtype, options))
                    yield Entry(entry, lambda dtype=dtype, options=options: _sparse(dtype, options), "sparse gradients")
    for dtype_name, dtype in DTYPES.items():
        for reduction in REDUCTIONS:
            options = {"proposal": InBatch(), "reduction": reduction, "ignored": True, "sample_weight": True, "bias": False}
            entry = f"sampled/logodds/LinearCore/ignored, weighted, no bias/{reduction}/{dtype_name}"
            yield Entry(entry, lambda dtype=dtype, options=options: _dense(dtype, options))
    centered = {"proposal": Uniform(), "form": FORMS["centered-mean"]}
    yield Entry("sampled/centered", lambda: refused(lambda: _sparse(torch.float64, centered)))
    yield Entry("sampled/hardest", lambda: {"table": hard_negatives(fixed(52, CLASSES, WIDTH), 3, chunk=4)})


def _draws(proposal: Proposal) -> Results:
    picked = candidates(proposal, _target(), CLASSES, SAMPLES, generator(SEED))
    every = torch.arange(CLASSES)
    return {
        "index": picked.index,
        "log_weight": picked.log_weight,
        "log_prob": proposal.log_prob(every, CLASSES),
        "sample": proposal.sample((5, 4), CLASSES, every, generator(SEED)),
    }


def _dense(dtype: torch.dtype, options: dict[str, Any]) -> Results:
    return derivatives(*_call(dtype, {**options, "sparse": False}))


def _sparse(dtype: torch.dtype, options: dict[str, Any]) -> Results:
    return derivatives(*_call(dtype, {**options, "sparse": True}), second=False)


def _target() -> Tensor:
    return whole(53, CLASSES, ROWS)


def _call(dtype: torch.dtype, options: dict[str, Any]) -> tuple[Any, dict[str, Tensor]]:
    options = dict(options)
    tensors = {"hidden": fixed(54, ROWS, WIDTH, dtype=dtype), "linear_weight": fixed(55, CLASSES, WIDTH, dtype=dtype)}
    if options.pop("bias", True):
        tensors["linear_bias"] = fixed(56, CLASSES, dtype=dtype)
    target = _target()
    if options.pop("ignored", False):
        target[1] = -100
    if options.pop("sample_weight", False):
        tensors["sample_weight"] = fixed(57, ROWS, dtype=dtype, low=0.25)

    def loss(**tensors: Tensor) -> Tensor:
        return sampled_multiclass_loss(target=target, **tensors, num_samples=SAMPLES, generator=generator(SEED), **options)

    return loss, tensors
