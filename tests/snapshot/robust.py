"""`robust_loss`, and the layer `NormedScores`."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

import linearcore as lc
from tests.snapshot.calls import BACKENDS, robust_loss, robust_module
from tests.snapshot.derivatives import derivatives
from tests.snapshot.inputs import DTYPES, fixed
from tests.snapshot.record import Entry, Results
from tests.snapshot.targets import REDUCTIONS, Kind, kinds

SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "short core": {"surrogate": lc.LinearCore("gamma", tau=0.5, sharpness=2.0), "radius": 1.5, "scale": 0.25},
}
KINDS = (
    "index", "ignored", "probabilities", "smoothing", "weight", "weight and probabilities", "sample_weight", "masked",
    "scores (2, 5, 3)",
)  # fmt: skip


def robust() -> Iterator[Entry]:
    """The loss, its gradients and Hessian-vector products; outputs, statistics and gradients of the layer."""
    for dtype_name, dtype in DTYPES.items():
        for setting_name, setting in SETTINGS.items():
            for kind_name in KINDS:
                if setting and kind_name not in ("index", "sample_weight"):
                    continue
                kind = kinds(dtype)[kind_name]
                for reduction in REDUCTIONS:
                    name = f"robust/{setting_name}/{kind_name}/{reduction}/{dtype_name}"
                    given = {**setting, "reduction": reduction}
                    of = () if reduction == "sum" else ("scores",)
                    yield Entry(name, lambda kind=kind, given=given, of=of: _one(kind, given, of))
                    for via, backend in BACKENDS.items():
                        same = {**given, "backend": backend}
                        yield Entry(name, lambda kind=kind, given=same, of=of: _one(kind, given, of), via)
                    yield Entry(
                        name, lambda kind=kind, given=given: {"value": _by_module(kind, given)}, "module, validate=True"
                    )
        yield Entry(f"robust/NormedScores/{dtype_name}", lambda dtype=dtype: _layer(dtype))


def _one(kind: Kind, options: dict[str, Any], of: tuple[str, ...]) -> Results:
    # Only the default is differentiated twice, to save time.
    is_default = "backend" not in options
    return derivatives(
        lambda **tensors: robust_loss(**tensors, **kind.rest, **options), kind.tensors, of=of, second=is_default
    )


def _by_module(kind: Kind, options: dict[str, Any]) -> Tensor:
    given = {**kind.tensors, **kind.rest, **options}
    call = {name: given.pop(name) for name in ("scores", "target", "sample_weight") if name in given}
    return robust_module(**given, validate=True)(**call)


def _layer(dtype: torch.dtype) -> Results:
    """Derivatives of a batch in training mode; then what two such batches leave behind, and how it is used in evaluation."""

    def fresh() -> lc.NormedScores:
        return lc.NormedScores(4).to(dtype)

    batch = fixed(30, 6, 4, dtype=dtype)
    results = derivatives(lambda scores: fresh()(scores), {"scores": batch})
    layer = fresh()
    results["two batches"] = torch.cat([layer(batch), layer(fixed(31, 5, 4, dtype=dtype))])
    results |= {f"state/{name}": tensor for name, tensor in layer.state_dict().items()}
    layer.eval()
    evaluated = derivatives(layer, {"scores": fixed(32, 3, 4, dtype=dtype)})
    return results | {f"evaluation/{name}": tensor for name, tensor in evaluated.items()}
