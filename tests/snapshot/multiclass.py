"""`multiclass_loss`: surrogates × forms × kinds of targets × reductions × dtypes."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

import linearcore as lc
from tests.snapshot.calls import BACKENDS, FORMS, multiclass_loss, multiclass_module
from tests.snapshot.derivatives import derivatives
from tests.snapshot.inputs import DTYPES
from tests.snapshot.record import Entry, Results, refused
from tests.snapshot.surrogates import SURROGATES
from tests.snapshot.targets import REDUCTIONS, Kind, kinds

#: These meet all kinds of targets: a tail without end, one with two knots, two sides (refused by centered), kinks.
FULLY_CROSSED = ("LinearCore", "LinearCore(truncated_quadratic)", "LinearCore(exponential, sides=2)", "Hinge")
KINDS_OF_THE_REST = ("index", "probabilities", "all options")


def multiclass() -> Iterator[Entry]:
    """The loss, its gradients and Hessian-vector products; what is refused; what the names of forms mean."""
    for name, surrogate in SURROGATES.items():
        for form_name, form in FORMS.items():
            if _is_refused(surrogate, form):
                entry = f"multiclass/{form_name}/{name}"
                yield Entry(entry, lambda phi=surrogate, form=form: refused(lambda: _index_loss(phi, form)))
            else:
                yield from _losses(f"multiclass/{form_name}/{name}", name, {"surrogate": surrogate, "form": form})
    logistic = {"surrogate": lc.Logistic(), "form": "logodds", "normalize": True}
    yield Entry("multiclass/logodds, normalize=True", lambda: refused(lambda: _index_loss(**logistic)))
    for form in ("pairwise", "centered", "logodds", None):
        for normalize in (None, False) if form in ("logodds", None) else (None, False, True):
            options: dict[str, Any] = {"normalize": normalize} | ({"form": form} if form else {})
            entry = f"multiclass/by name/form={form}, normalize={normalize}"
            yield Entry(entry, lambda options=options: {"value": _index_loss(**options)})


def _losses(entry: str, surrogate: str, options: dict[str, Any]) -> Iterator[Entry]:
    is_full = surrogate in FULLY_CROSSED
    for dtype_name, dtype in DTYPES.items():
        for kind_name, kind in kinds(dtype).items():
            if not is_full and kind_name not in KINDS_OF_THE_REST:
                continue
            for reduction in REDUCTIONS:
                name = f"{entry}/{kind_name}/{reduction}/{dtype_name}"
                given = {**options, "reduction": reduction}
                of = ("scores",) if reduction == "mean" or (reduction == "none" and is_full) else ()
                yield Entry(name, lambda kind=kind, given=given, of=of: _one(kind, given, of))
                for via, backend in BACKENDS.items():
                    same = {**given, "backend": backend}
                    yield Entry(name, lambda kind=kind, given=same, of=of: _one(kind, given, of), via)
                yield Entry(name, lambda kind=kind, given=given: {"value": _by_module(kind, given)}, "module, validate=True")
            if len(kind.tensors) > 1:
                name = f"{entry}/{kind_name}/mean/{dtype_name}/by all inputs"
                yield Entry(name, lambda kind=kind: _one(kind, options, tuple(kind.tensors)))


def _one(kind: Kind, options: dict[str, Any], of: tuple[str, ...]) -> Results:
    # Only the default is differentiated twice, to save time.
    is_default = "backend" not in options
    return derivatives(
        lambda **tensors: multiclass_loss(**tensors, **kind.rest, **options), kind.tensors, of=of, second=is_default
    )


def _by_module(kind: Kind, options: dict[str, Any]) -> Tensor:
    given = {**kind.tensors, **kind.rest, **options}
    call = {name: given.pop(name) for name in ("scores", "target", "sample_weight") if name in given}
    return multiclass_module(**given, validate=True)(**call)


def _index_loss(surrogate: Any = None, form: Any = None, **options: Any) -> Tensor:
    given = {"surrogate": surrogate, "form": form}
    kind = kinds(DTYPES["float64"])["index"]
    options |= {name: value for name, value in given.items() if value is not None}
    return multiclass_loss(**kind.tensors, **kind.rest, **options)


def _is_refused(surrogate: lc.Surrogate, form: lc.Form) -> bool:
    """centered refuses two-sided surrogates, logodds rising ones."""
    if isinstance(form, lc.Centered):
        return surrogate.core is not None and surrogate.core[0] > -float("inf")
    return isinstance(form, lc.LogOdds) and not surrogate.is_monotone
