"""`binary_loss`: surrogates × kinds of targets × reductions × dtypes."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from tests.snapshot.calls import BACKENDS, binary_loss, binary_module
from tests.snapshot.derivatives import derivatives
from tests.snapshot.inputs import DTYPES, fixed, whole
from tests.snapshot.record import Entry, Results
from tests.snapshot.surrogates import SURROGATES
from tests.snapshot.targets import REDUCTIONS, Kind

FULLY_CROSSED = ("LinearCore", "LinearCore(quartic, sides=2)", "Logistic")
KINDS_OF_THE_REST = ("probabilities",)


def binary() -> Iterator[Entry]:
    """The loss, its gradients and Hessian-vector products."""
    for dtype_name, dtype in DTYPES.items():
        for surrogate_name, surrogate in SURROGATES.items():
            for kind_name, kind in _kinds(dtype).items():
                is_full = surrogate_name in FULLY_CROSSED
                if not is_full and kind_name not in KINDS_OF_THE_REST:
                    continue
                for reduction in REDUCTIONS:
                    name = f"binary/{surrogate_name}/{kind_name}/{reduction}/{dtype_name}"
                    given = {"surrogate": surrogate, "reduction": reduction}
                    of = ("scores",) if reduction == "mean" or (reduction == "none" and is_full) else ()
                    yield Entry(name, lambda kind=kind, given=given, of=of: _one(kind, given, of))
                    for via, backend in BACKENDS.items():
                        same = {**given, "backend": backend}
                        yield Entry(name, lambda kind=kind, given=same, of=of: _one(kind, given, of), via)
                    yield Entry(
                        name, lambda kind=kind, given=given: {"value": _by_module(kind, given)}, "module, validate=True"
                    )
                if len(kind.tensors) > 1 and is_full:
                    name = f"binary/{surrogate_name}/{kind_name}/mean/{dtype_name}/by all inputs"
                    given = {"surrogate": surrogate}
                    yield Entry(name, lambda kind=kind, given=given: _one(kind, given, tuple(kind.tensors)))


def _kinds(dtype: torch.dtype) -> dict[str, Kind]:
    scores = fixed(20, 4, 3, dtype=dtype)
    bits = whole(21, 2, 4, 3)
    probabilities = fixed(22, 4, 3, dtype=dtype, low=0.0, high=1.0)
    pos_weight, sample_weight = fixed(23, 3, dtype=dtype, low=0.25), fixed(24, 4, 1, dtype=dtype, low=0.25)
    return {
        "bool": Kind({"scores": scores}, {"target": bits.bool()}),
        "integers": Kind({"scores": scores}, {"target": bits}),
        "probabilities": Kind({"scores": scores, "target": probabilities}, {}),
        "signed": Kind({"scores": scores}, {"target": 2 * bits - 1, "signed": True}),
        "signed numbers": Kind({"scores": scores, "target": 2 * probabilities - 1}, {"signed": True}),
        "pos_weight": Kind({"scores": scores, "pos_weight": pos_weight}, {"target": bits}),
        "sample_weight": Kind({"scores": scores, "sample_weight": sample_weight}, {"target": bits}),
        "all options": Kind(
            {"scores": scores, "target": probabilities, "pos_weight": pos_weight, "sample_weight": sample_weight}, {}
        ),
    }


def _one(kind: Kind, options: dict[str, Any], of: tuple[str, ...]) -> Results:
    # Only the default is differentiated twice, to save time.
    is_default = "backend" not in options
    return derivatives(
        lambda **tensors: binary_loss(**tensors, **kind.rest, **options), kind.tensors, of=of, second=is_default
    )


def _by_module(kind: Kind, options: dict[str, Any]) -> Tensor:
    given = {**kind.tensors, **kind.rest, **options}
    call = {name: given.pop(name) for name in ("scores", "target", "sample_weight") if name in given}
    return binary_module(**given, validate=True)(**call)
