"""The consistency lab: certificates, transforms, risks, regrets, rates, gaps, and the Fenchel–Young loss."""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

import linearcore as lc
from linearcore import analysis as lab
from linearcore.structures import Sequences
from tests.snapshot.calls import FORMS
from tests.snapshot.derivatives import derivatives
from tests.snapshot.inputs import DTYPES, fixed, simplex
from tests.snapshot.record import SOLVED, Entry, Results
from tests.snapshot.surrogates import SURROGATES
from tests.snapshot.targets import REDUCTIONS, kinds

#: Pairs that no theorem decides, so that certifying them is a search of a second or so; on three classes.
SEARCHED = (
    ("LinearCore", "pairwise-sum"),
    ("LinearCore", "logodds"),
    ("LinearCore(quartic)", "pairwise-mean"),
    ("LinearCore(exponential, sides=2)", "centered-sum"),
    ("Hinge", "pairwise-sum"),
    ("Logistic", "pairwise-sum"),
    ("Logistic", "logodds"),
)
#: Pairs of which nothing can be certified.
UNKNOWN = (("LinearCore(quartic)", "logodds"), ("Hinge", "logodds"))
STARTS = 8
PROBABILITIES = (0.45, 0.3125, 0.2375)
STRUCTURED = ("structured-sum", "structured-centered", "local-pairwise", "local-centered", "local-logodds")


def analysis() -> Iterator[Entry]:
    """Results of solvers are compared with the tolerance `SOLVED`."""
    points = torch.arange(0, 11, dtype=torch.float64).numpy() / 10
    for name, surrogate in SURROGATES.items():
        entry = f"analysis/transform/{name}"
        yield Entry(entry, lambda phi=surrogate: {"value": lab.transform(phi, points)}, tolerance=SOLVED)
        yield Entry(f"analysis/rate/coin/{name}", lambda phi=surrogate: _rate(lab.rate(phi)), tolerance=SOLVED)
        for form_name, form in FORMS.items():
            entry = f"analysis/conditional_risk/{form_name}/{name}"
            yield Entry(entry, lambda phi=surrogate, form=form: {"value": _risk(phi, form)})
    yield from _solved()
    yield from _certificates()
    yield from _gaps()
    yield from _fenchel_young()


def _risk(surrogate: lc.Surrogate, form: lc.Form) -> float:
    return lab.conditional_risk(surrogate, form, [0.5, -0.25, 1.125], PROBABILITIES)


def _solved() -> Iterator[Entry]:
    path = {"path": lambda delta: [0.4 + delta, 0.4 - delta, 0.2], "deltas": [1e-3, 1e-2, 1e-1]}
    for name in ("LinearCore", "LinearCore(gamma)", "LinearCore(algebraic)", "Hinge", "Logistic"):
        phi = SURROGATES[name]
        for form_name, form in FORMS.items():
            if name == "Hinge" and form_name == "logodds":
                continue
            entry = f"analysis/solved/{form_name}/{name}"
            yield Entry(entry, lambda phi=phi, form=form: _minimum(phi, form), tolerance=SOLVED)
            yield Entry(entry, lambda phi=phi, form=form: _regret(phi, form), tolerance=SOLVED)
            if name == "LinearCore":
                entry = f"analysis/rate/{form_name}/{name}"
                yield Entry(entry, lambda phi=phi, form=form: _rate(lab.rate(phi, form, **path)), tolerance=SOLVED)
    for form in STRUCTURED:
        for cost, family in (("zero-one", "free"), ("hamming", "unary"), ("hamming", "chain")):
            entry = f"analysis/solved/{form}/{cost}/{family}"
            options: dict[str, Any] = {"outputs": Sequences(2, 2), "cost": cost, "family": family}
            yield Entry(entry, lambda form=form, o=options: _structured(form, o), tolerance=SOLVED)


def _minimum(surrogate: lc.Surrogate, form: Any) -> Results:
    least = lab.minimal_risk(surrogate, form, PROBABILITIES)
    # The hinge's minimisers are a whole polytope.
    return {"minimal_risk": least.value} | ({"minimiser": least.scores} if surrogate.is_c1 else {})


def _regret(surrogate: lc.Surrogate, form: Any) -> Results:
    found = lab.regret_ratio(surrogate, form, PROBABILITIES, 1)
    return {"ratio": found.ratio, "surrogate_regret": found.surrogate_regret, "target_regret": found.target_regret}


def _structured(form: str, options: dict[str, Any]) -> Results:
    p = simplex(100, 4).numpy()
    least = lab.minimal_risk(lc.LinearCore(), form, p, **options)
    prediction = int(p.argmin())
    found = lab.regret_ratio(lc.LinearCore(), form, p, prediction, **options)
    risk = lab.conditional_risk(lc.LinearCore(), form, fixed(101, 4), p, outputs=options["outputs"], cost=options["cost"])
    return {"minimal_risk": least.value, "ratio": found.ratio, "conditional_risk": risk}


def _rate(found: lab.Rate) -> Results:
    numbers = {name: getattr(found, name) for name in ("target", "surrogate", "slopes", "limit", "fit")}
    return numbers | {"interval": torch.tensor(found.interval, dtype=torch.float64)}


def _certificates() -> Iterator[Entry]:
    pairs = [(name, form, 3) for name, form in (*SEARCHED, *UNKNOWN)]
    for name, surrogate in SURROGATES.items():
        if surrogate.core is not None:  # Here theorems decide.
            pairs += [(name, form, 2) for form in FORMS]
            if surrogate.core[0] == -math.inf:
                pairs += [(name, "centered-sum", 3), (name, "centered-mean", 5)]
    for name, form, classes in pairs:
        call = (SURROGATES[name], FORMS[form], classes)
        entry = f"analysis/certify/{form}/{name}/{classes} classes"
        yield Entry(entry, lambda c=call: _certificate(lab.certify(*c, starts=STARTS)), tolerance=SOLVED)
    for form in ("pairwise", "centered", "logodds"):
        entry = f"analysis/certify/by name/{form}"
        call = (lc.LinearCore(), form, 3 if form == "centered" else 2)
        yield Entry(entry, lambda c=call: _certificate(lab.certify(*c)), tolerance=SOLVED)
    for form in STRUCTURED:
        options: dict[str, Any] = {"outputs": Sequences(2, 2), "cost": "hamming", "family": "unary", "starts": STARTS}
        if form.startswith("structured"):
            options |= {"cost": "zero-one", "family": "free"}
        entry = f"analysis/certify/{form}/{options['cost']}/{options['family']}"
        yield Entry(entry, lambda f=form, o=options: _certificate(lab.certify(lc.LinearCore(), f, **o)), tolerance=SOLVED)
    yield Entry("analysis/counterexample", _counterexample, tolerance=SOLVED)


def _counterexample() -> Results:
    found = lab.counterexample(lc.LinearCore(), FORMS["pairwise-sum"], 3, starts=STARTS, seed=1)
    names = ("ratio", "probabilities", "prediction", "target_regret", "regrets", "ratios", "refutes", "scale")
    return {name: getattr(found, name) for name in names}


def _certificate(found: lab.Certificate) -> Results:
    results: dict[str, Any] = {"convex": found.convex, "c1": found.c1, "c2": found.c2}
    for name in ("consistent", "linear_bound"):
        finding = getattr(found, name)
        results[f"{name}/verdict"] = finding.verdict
        if finding.constant is not None:
            results[f"{name}/constant"] = float(finding.constant)
        if finding.counterexample is not None and name == "linear_bound":
            results["refutes"] = finding.counterexample.refutes
            results["ratio"] = finding.counterexample.ratio
    return results


def _gaps() -> Iterator[Entry]:
    features = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.5, 0.25], [0.5, 0.25]]
    labels = [0, 0, 1, 1, 2, 0]
    for form_name, form in FORMS.items():
        for intercept in (True, False):
            entry = f"analysis/gap/{form_name}/intercept={intercept}"
            call = (lc.LinearCore("truncated_quadratic"), form, features, labels)
            yield Entry(entry, lambda c=call, i=intercept: _gap(lab.minimizability_gap(*c, intercept=i)), tolerance=SOLVED)
    yield Entry("analysis/gap/zero-one", lambda: _gap(lab.zero_one_gap(features, labels)), tolerance=SOLVED)


def _gap(found: lab.MinimizabilityGap) -> Results:
    return {name: getattr(found, name) for name in ("gap", "best_in_class", "pointwise")}


def _fenchel_young() -> Iterator[Entry]:
    for dtype_name, dtype in DTYPES.items():
        for kind_name in ("index", "ignored", "probabilities", "scores (2, 5, 3)"):
            kind = kinds(dtype)[kind_name]
            for reduction in REDUCTIONS:
                entry = f"analysis/fenchel_young_loss/{kind_name}/{reduction}/{dtype_name}"
                of = () if reduction == "sum" else ("scores",)
                yield Entry(entry, lambda k=kind, r=reduction, of=of: _fenchel_young_loss(k, r, of))
        entry = f"analysis/fenchel_young_point/{dtype_name}"
        yield Entry(entry, lambda d=dtype: _point(kinds(d)["index"].tensors["scores"]))
    ratio = lab.fenchel_young_regret_ratio
    for prediction in (1, 2):
        entry = f"analysis/fenchel_young_regret_ratio/{prediction}"
        yield Entry(entry, lambda k=prediction: {"ratio": ratio(PROBABILITIES, k).ratio})


def _fenchel_young_loss(kind: Any, reduction: str, of: tuple[str, ...]) -> Results:
    def loss(**tensors: Tensor) -> Tensor:
        return lab.fenchel_young_loss(**tensors, **kind.rest, reduction=reduction)

    return derivatives(loss, kind.tensors, of=of)


def _point(scores: Tensor) -> Results:
    found = lab.fenchel_young_point(scores)
    return {name: getattr(found, name) for name in ("conjugate", "mixture", "probability")}
