"""Losses of other papers: all in the registry, and early-learning regularisation."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from tests.snapshot.calls import baseline_module, early_learning_loss, early_learning_module
from tests.snapshot.calls import baselines as registry
from tests.snapshot.derivatives import derivatives
from tests.snapshot.inputs import DTYPES, simplex
from tests.snapshot.record import Entry, Results
from tests.snapshot.targets import CLASSES, REDUCTIONS, ROWS, Kind, kinds

#: Options other than the defaults.
OPTIONS: dict[str, dict[str, Any]] = {
    "generalized_cross_entropy": {"q": 0.5, "truncation": 0.0625},
    "asymmetric_generalized_cross_entropy": {"a": 1.5, "q": 0.25},
    "reverse_cross_entropy": {"log_zero": -4.0},
    "symmetric_cross_entropy": {"alpha": 2.0, "beta": 0.5, "log_zero": -4.0},
    "active_passive_cross_entropy": {"alpha": 2.0, "beta": 0.5, "log_zero": -4.0},
    "unhinged": {"normalize": False},
    "weston_watkins": {"normalize": True},
}
FACTS = ("is_symmetric", "is_convex", "is_bounded")


def baselines() -> Iterator[Entry]:
    """The losses, their gradients and Hessian-vector products, facts, and the history of early learning."""
    for name, loss in registry().items():
        yield Entry(f"baselines/{name}", lambda loss=loss: {fact: getattr(loss, fact) for fact in FACTS})
        for setting, options in {"default": {}, "options": OPTIONS.get(name, {})}.items():
            if setting == "options" and not options:
                continue
            for dtype_name, dtype in DTYPES.items():
                yield from _losses(name, loss, setting, options, dtype_name, dtype)
    for dtype_name, dtype in DTYPES.items():
        for kind_name, kind in _kinds(dtype).items():
            for reduction in REDUCTIONS:
                name = f"baselines/early_learning/{kind_name}/{reduction}/{dtype_name}"
                yield Entry(name, lambda kind=kind, reduction=reduction: _early_learning(kind, reduction))
        yield Entry(f"baselines/EarlyLearning/{dtype_name}", lambda dtype=dtype: _memory(dtype))


def _kinds(dtype: torch.dtype) -> dict[str, Kind]:
    return {name: kind for name, kind in kinds(dtype).items() if "class_margin" not in kind.tensors}


def _losses(
    name: str, loss: Any, setting: str, options: dict[str, Any], dtype_name: str, dtype: torch.dtype
) -> Iterator[Entry]:
    for kind_name, kind in _kinds(dtype).items():
        if options and kind_name not in ("index", "probabilities"):
            continue
        for reduction in REDUCTIONS:
            entry = f"baselines/{name}/{setting}/{kind_name}/{reduction}/{dtype_name}"
            given = {**options, "reduction": reduction}
            of = ("scores",) if reduction == "mean" else ()
            yield Entry(entry, lambda kind=kind, given=given, of=of: _one(loss, kind, given, of))
            yield Entry(
                entry, lambda kind=kind, given=given: {"value": _by_module(name, kind, given)}, "module, validate=True"
            )


def _one(loss: Any, kind: Kind, options: dict[str, Any], of: tuple[str, ...]) -> Results:
    return derivatives(lambda **tensors: loss(**tensors, **kind.rest, **options), kind.tensors, of=of)


def _by_module(name: str, kind: Kind, options: dict[str, Any]) -> Tensor:
    given = {**kind.tensors, **kind.rest, **options}
    call = {key: given.pop(key) for key in ("scores", "target", "sample_weight") if key in given}
    return baseline_module(name, **given, validate=True)(**call)


def _early_learning(kind: Kind, reduction: str) -> Results:
    scores = kind.tensors["scores"]
    classes = min(1, scores.dim() - 1)
    moved = scores.movedim(classes, -1)
    history = (simplex(40, *moved.shape, dtype=scores.dtype) / 2).movedim(-1, classes)

    def call(**tensors: Tensor) -> tuple[Tensor, Tensor]:
        return early_learning_loss(**tensors, **kind.rest, history=history, reduction=reduction)

    of = () if reduction == "sum" else ("scores",)
    results = derivatives(lambda **tensors: call(**tensors)[0], kind.tensors, of=of)
    return results if reduction == "none" else results | {"history": call(**kind.tensors)[1]}


def _memory(dtype: torch.dtype) -> Results:
    """Two calls in training mode and one in evaluation mode."""
    kind = kinds(dtype)["index"]
    scores, target = kind.tensors["scores"], kind.rest["target"]
    module = early_learning_module(2 * ROWS, CLASSES, momentum=0.5, strength=2.0).to(dtype)
    index = torch.tensor([7, 0, 3, 2])
    losses = [module(scores * factor, target, index) for factor in (1, -1)]
    module.eval()
    losses.append(module(scores, target, index))
    return {"losses": torch.stack(losses), "history": module.history}
